// When records get a stamp of their own.
#pragma once

#include "monitor/probe/records.h"

namespace tsomon::probe {

inline bool stamp_due(const Context& context) {
  return options.stamp_every != 0 && context.since >= options.stamp_every;
}

// The stamp that the next record has. Until it is recorded it counts as announced.
inline uint64_t new_stamp(Context& context) {
  announce_stamp(context);
  context.since = 0;
  return stamp_in_order(context);
}

inline void put_stamp(Context& context) {
  capture::put_stamp(context.encoder, new_stamp(context));
  context.stamped = context.encoder.end;
}

// Whether nothing was recorded behind `place`.
inline bool is_last(const Context& context, uint32_t place) {
  return context.encoder.end == place && !capture::has_run(context.encoder);
}

// Whether an atomic load or store by a mov can be recorded as things are: there is room, and the last stamp is recent.
inline bool can_open(const Context& context) {
  return capture::has_room(context.encoder) && stamped_within(context, options.stamp_max_age);
}

// The stamp that a locked operation owes, in few stores (encoder.h).
inline void put_owed_stamp(Context& context) {
  const uint64_t now = new_stamp(context);
  if (!capture::put_stamp_soon(context.encoder, now)) {
    capture::put_stamp(context.encoder, now);
  }
  context.stamped = context.encoder.end;
}

// Before the first access behind a unit's beginning that did not look, or a locked operation.
inline void look_at_clock(Context& context) {
  context.begun = kNowhere;
  if (owes_stamp(context) || !stamped_within(context, options.stamp_max_age)) {
    put_stamp(context);
  }
}

}  // namespace tsomon::probe
