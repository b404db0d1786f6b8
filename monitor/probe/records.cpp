#include "monitor/probe/records.h"

#include <cerrno>

#include "monitor/probe/record_stamps.h"
#include "monitor/probe/slices.h"

namespace tsomon::probe {

// A handler that came between the stamp and the look at the last one has left a later one, and that
// says nothing about the clock. What it has recorded comes before what is recorded now, in the
// order of the thread, so another stamp is as true: as the end of an interval it is later, and
// what begins with it has not begun yet.
__attribute__((noinline)) uint64_t stamp_again(const Context& context, uint64_t now,
                                               uint32_t interruptions) {
  for (;;) {
    const uint64_t last = last_stamp(context);
    asm volatile("" : : : "memory");  // a handler counts itself before it leaves a stamp
    const uint32_t by_now = *const_cast<volatile uint32_t*>(&local.interruptions);
    if (now >= last) {
      return now;
    }
    if (by_now == interruptions) {
      note_backwards(last - now);
      return last;
    }
    interruptions = by_now;
    now = stamp();
  }
}

uint64_t put_point_now(RecordType type, uint64_t address, uint64_t pc) {
  Context* const context = writable();
  if (context == nullptr) {
    return 0;
  }
  const uint64_t now = new_stamp(*context);
  capture::put_point(context->encoder, type, address, pc, now);
  context->stamped = context->encoder.end;
  return now;
}

uint64_t put_point_after(RecordType type, uint64_t address, uint64_t pc, uint64_t last) {
  Context* const context = writable();
  if (context == nullptr) {
    return 0;
  }
  uint64_t now = new_stamp(*context);
  if (TSOMON_UNLIKELY(now <= last)) {
    note_backwards(last - now);
    now = last + 1;
  }
  capture::put_point(context->encoder, type, address, pc, now);
  context->stamped = context->encoder.end;
  return now;
}

void put_send(uint64_t channel, uint64_t pc) {
  if (local.thread == nullptr) {
    return;
  }
  const int error = errno;
  drain_before_sleeping(pc);
  if (const uint64_t now = put_point_now(RecordType::kSend, channel, pc); now != 0) {
    leave_stamp(channel, now, true);
  }
  errno = error;
}

void put_receive(uint64_t channel, uint64_t pc) {
  if (local.thread != nullptr) {
    const int error = errno;
    put_point_after(RecordType::kReceive, channel, pc, last_stamp(channel));
    errno = error;
  }
}

void put_drain(uint64_t released, uint64_t pc) {
  Context* context = local.context;
  if (released == 0) {
    return;
  }
  // Behind a point there is room for another record.
  if (TSOMON_LIKELY(is_last(*context, context->stamped) && context->encoder.stamp == released)) {
    capture::put_drain(context->encoder);
    context->stamped = context->encoder.end;
  } else if ((context = writable()) != nullptr && released >= local.thread->began) {
    // Else the thread has begun anew meanwhile, in another slice, with an empty store buffer.
    // The encoder goes back to an earlier stamp; those to come do not.
    context->floor = last_stamp(*context);
    capture::put_open_fence(context->encoder, pc, released);
  }
}

void put_object(uint64_t address, uint64_t size, uint64_t pc) {
  if (Context* const context = writable()) {
    const uint64_t now = new_stamp(*context);
    capture::put_record(
        context->encoder,
        {RecordType::kAllocate, 0, capture::kSeparates, 3, address, pc, {now, now, size}});
    context->stamped = context->encoder.end;
  }
}

void put_count(sem_t* semaphore, uint64_t pc) {
  int count = 0;
  Context* const context = writable();
  // Who takes no part in a slice may change it.
  if (context == nullptr || controlled || sem_getvalue(semaphore, &count) != 0) {
    return;
  }
  const uint64_t now = new_stamp(*context);
  capture::put_record(context->encoder, {RecordType::kCount,
                                         0,
                                         capture::kSeparates,
                                         3,
                                         reinterpret_cast<uint64_t>(semaphore),
                                         pc,
                                         {now, now, static_cast<uint64_t>(count < 0 ? 0 : count)}});
  context->stamped = context->encoder.end;
}

void put_request(Waited what, uint64_t address, uint64_t pc) {
  if (Context* const context = writable()) {
    const uint64_t now = new_stamp(*context);
    capture::put_record(context->encoder, {RecordType::kRequest,
                                           0,
                                           capture::kSeparates,
                                           3,
                                           address,
                                           pc,
                                           {now, now, static_cast<uint64_t>(what)}});
    context->stamped = context->encoder.end;
  }
}

void requested_in_vain(uint64_t pc) { drain_before_sleeping(pc); }

void put_stamp_now() {
  if (Context* const context = writable()) {
    put_stamp(*context);
  }
}

void put_boundary(RecordType type, uint64_t address, uint64_t pc) {
  if (TSOMON_UNLIKELY(choosy || local.waiting != 0) && wait_with_boundary(type, address, pc)) {
    return;
  }
  if (type == RecordType::kUnitBegin) {
    ++local.units;
  } else if (local.units != 0) {
    --local.units;
  }
  // Of a unit that was not recorded.
  if (local.thread == nullptr && type != RecordType::kUnitBegin) {
    return;
  }
  put_boundary_now(type, address, pc);
}

void put_boundary_now(RecordType type, uint64_t address, uint64_t pc) {
  Context* const context = writable();
  if (context == nullptr) {
    return;
  }
  if (options.stamp_max_age == 0) {
    put_point_now(type, address, pc);
    return;
  }
  const bool begins = type == RecordType::kUnitBegin;
  const bool stamped = is_last(*context, context->stamped);
  const bool owed = owes_stamp(*context);
  if (!begins && !stamped && (owed || !stamped_within(*context, options.stamp_max_age))) {
    put_point_now(type, address, pc);
    return;
  }
  if (!capture::put_bare_cached(context->encoder, type, address, pc)) {
    capture::put_bare(context->encoder, type, address, pc);
  }
  context->stamped = stamped ? context->encoder.end : kNowhere;
  if (begins) {
    context->begun = context->encoder.end;
    context->owed = owed ? context->encoder.end : kNowhere;
    if (capture::expects_access(context->encoder)) {
      look_at_clock(*context);
    }
  }
}

__attribute__((noinline)) Context* begin_open(bool load) {
  Context* const context = writable();
  const bool repeats = context != nullptr && is_last(*context, context->repeats.end);
  if (context != nullptr && load && is_last(*context, context->locked)) {
    context->load_follows[context->locked_slot] = true;
  }
  if (context != nullptr &&
      (owes_stamp(*context) ? !load : !stamped_within(*context, options.stamp_max_age))) {
    put_stamp(*context);
    context->repeats.end = repeats ? context->encoder.end : kNowhere;
  }
  return context;
}

__attribute__((noinline)) void put_open(Context* context, uint64_t key,
                                        const volatile void* address, uint64_t value) {
  const bool owed = owes_stamp(*context);
  capture::put_open(context->encoder, key, reinterpret_cast<uint64_t>(address), value);
  if (owed) {
    put_stamp(*context);
  }
}

}  // namespace tsomon::probe
