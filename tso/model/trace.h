// A trace: events in issue order, with the tables that give their ids a meaning.
//
// Purpose     The common currency of decoders and checkers. A decoder fills EventBlocks against
//             one Symbols; a checker that needs the whole trace appends the blocks to a Trace.
// Order       Events of one thread are in program order. Across threads the intervals decide
//             (theory section 5.2); the position in `events` is only the order of the input.
// Loss        `complete` is part of the trace, so that no reader can forget it: with anything
//             lost, a clean verdict is `inconclusive`. So is `sampled`: only a part of the accesses
//             was looked at, and an order that seems open may be fixed by what was not seen; what
//             is certain stays so.
// Choice      `selection`: the user chose what is in the trace. Nothing is missing then, verdicts
//             are about what was chosen, and reports say so. What is definite is definite in the
//             whole run, too (tests/tso/selection_test.cpp).
// Memory      32 bytes an event, 8 more for each value or long interval.
// Thread-safety: const access is safe; building is not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tso/model/event.h"
#include "tso/support/interner.h"

namespace tsomon {

// The locations that `set(name;x,y)` declared (theory section 7). Keys as in Event.
struct LocationKey {
  uint64_t address = 0;
  uint32_t size = 0;
  bool operator==(const LocationKey&) const = default;
};

struct AtomicSet {
  std::string name;
  std::vector<LocationKey> members;
};

// Members are as long as an access may be; what is longer becomes several of them.
void add_range(std::vector<LocationKey>* members, uint64_t address, uint64_t size);

// What memory held before the first event. Text traces start with every location at 0 unless a
// header says otherwise; captures of a running program know nothing.
struct InitialValue {
  LocationKey location;
  uint64_t value = 0;
};

struct Symbols {
  Interner threads;    // by ThreadId
  Interner names;      // of locations and locks with size 0; empty when those are raw addresses
  Interner labels;     // "label" or "label;set1,set2" of units; texts of calls and returns
  Interner locations;  // source locations as text
  std::vector<AtomicSet> sets;
  std::vector<InitialValue> initial_values;
  bool initial_zero = true;  // locations without an entry above start at 0; false: unknown

  // Source location ids: numbers below 2^31 are stored in the id itself, so that traces with one
  // location a line need no table; everything else is interned.
  uint32_t intern_location(std::string_view text);
  std::string location_text(uint32_t location) const;  // "" for Event::kNoLocation
  // Several places may have one text ("f file.cpp:12") and be told apart by what follows it ("34"). They matter where
  // loops are looked for (idle_iterations.h); for everything else they are the location of their text.
  static constexpr char kWithin = '\x1f';  // in between; in the text of a location it becomes '_'
  uint32_t intern_place(std::string_view text, std::string_view within);
  std::string place_text(uint32_t location, char between = ':') const;  // with what follows
  uint32_t without_place(uint32_t location) const;
  // "x", "0x7f10+8" or, for a lock without a name, "0x7f10".
  std::string access_text(const Event& event) const;
};

// Of two places with kWithin in between: the same line, inlined by the same calls.
bool same_line(std::string_view a, std::string_view b);

// The part of a label before the first ';', and the declared atomic sets after it.
std::string_view unit_label(std::string_view label);
std::vector<std::string_view> unit_sets(std::string_view label);

struct EventBlock {
  std::vector<Event> events;
  std::vector<uint64_t> extras;

  void clear() {
    events.clear();
    extras.clear();
  }
  int64_t lo(const Event& event) const { return event.lo; }
  int64_t hi(const Event& event) const {
    if (!event.has_extras()) {
      return event.lo + event.span_or_extra;
    }
    return event.has_hi ? static_cast<int64_t>(extras[event.span_or_extra]) : event.lo;
  }
  std::optional<uint64_t> read_value(const Event& event) const {
    if (!event.has_read_value) {
      return std::nullopt;
    }
    return extras[event.span_or_extra + event.has_hi];
  }
  std::optional<uint64_t> write_value(const Event& event) const {
    if (!event.has_write_value) {
      return std::nullopt;
    }
    return extras[event.span_or_extra + event.has_hi + event.has_read_value];
  }
  bool has_read_values() const;  // any
  // What an access of more than 8 bytes has for a value is a digest: the same for the same contents. It serves to find
  // idle iterations (idle_iterations.h); for everything else the event has none.
  static void drop_digests(Event& event);
  // Appends the events of another block, or those from `begin` up to `end`, with their extras.
  void append(const EventBlock& from) { append(from, 0, from.events.size()); }
  void append(const EventBlock& from, size_t begin, size_t end);
  // The event of another block as one of this block: its extras are appended, the event is not.
  Event with_extras(const EventBlock& from, Event event) {
    if (event.has_extras()) {
      const auto extra = from.extras.begin() + event.span_or_extra;
      event.span_or_extra = static_cast<uint32_t>(extras.size());
      extras.insert(extras.end(), extra,
                    extra + event.has_hi + event.has_read_value + event.has_write_value);
    }
    return event;
  }
  // Gives an event without extras, which is or becomes one of this block, its end and its values.
  // Requires event.lo <= hi.
  void complete(Event& event, int64_t hi, std::optional<uint64_t> read_value = {},
                std::optional<uint64_t> write_value = {});
  // Appends `event` (without extras) with the given interval and values. Requires lo <= hi.
  void add(Event event, int64_t lo, int64_t hi, std::optional<uint64_t> read_value = {},
           std::optional<uint64_t> write_value = {});
  // The same for an event without values that begins at its `lo`.
  void add_until(const Event& event, int64_t hi) {
    const uint64_t span = static_cast<uint64_t>(hi) - static_cast<uint64_t>(event.lo);
    if (hi < event.lo || span > 0xFFFFFFFFU) {
      return add(event, event.lo, hi);
    }
    events.push_back(event);
    events.back().span_or_extra = static_cast<uint32_t>(span);
  }
};

struct Selection {
  // "accesses=sets": accesses to the declared sets alone, and the fences of other locked
  // instructions.
  bool only_sets = false;
  // "outside=stores": outside of units no plain loads.
  bool stores_outside = false;

  bool any() const { return only_sets || stores_outside; }
  std::vector<std::string_view> names() const {  // as above
    std::vector<std::string_view> all;
    if (only_sets) {
      all.emplace_back("accesses=sets");
    }
    if (stores_outside) {
      all.emplace_back("outside=stores");
    }
    return all;
  }
};

// A word that is a lock by the values of all that came before (tso/model/word_lock.h).
struct LockWord {
  LocationKey word;
  uint32_t free = 0;  // which values are
};

struct Trace : EventBlock {
  Symbols symbols;
  bool complete = true;
  bool sampled = false;
  Selection selection;
  uint64_t lost_events = 0;  // known number of lost events; may be 0 in an incomplete trace
  // The first events, of a slice of a longer input: what may have been in a store buffer when it
  // begins. Memory holds its initial values then, and these stores commit before or after.
  uint32_t pending_prefix = 0;
  std::vector<LockWord> lock_words;  // of a slice
};

}  // namespace tsomon
