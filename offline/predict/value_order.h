// The order of a recording where the intervals of its events overlap, chosen so that loads return
// what was recorded.
//
// Purpose     Predictions start from one order of the events. A recording knows of many events only
//             an interval, and the order of their beginnings need not be one that happened: a
//             locked operation may seem to come before the one whose value it has read, and what
//             the two order would be lost.
// Method      Events are given out by the beginning of their intervals, those of a thread in program
//             order. One that reads a value which the location does not hold waits for the
//             store of another thread that brings it; one that would overwrite a value waits for
//             the loads that still have to read it. No recording has what a location held at first:
//             that is a value which is read and which no pending store brings, else what the first one
//             reads. A value that comes later is waited for where another one, which is over, has read what
//             nobody brought. Nothing waits for what certainly came later, and nobody in a circle, or beyond
//             where it has to be over: then one that only would overwrite a value goes on, as later
//             loads may find the value again, and of several the one that has to be over first.
// Misses      Orders that no such choice of one step at a time leads to; values that are not known,
//             and accesses to the same bytes with different sizes: they are taken as they come.
// Sleepers    What a thread does when it has slept seems to begin before it slept. A value that nobody has
//             brought by then is waited for as long as the interval lasts, kMostAhead events at most.
// Complexity  O(log(threads) + threads) for an event that waits, O(threads) for another one. Where no
//             value of the location is known yet: O(its pending loads) more for each look. Up to
//             kLookAhead events are kept, kMostAhead where a thread sleeps.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tso/model/event.h"

namespace tsomon::predict {

class ValueOrder {
 public:
  static constexpr size_t kLookAhead = 4096;
  static constexpr size_t kMostAhead = size_t{1} << 18;

  struct Item {
    Event event;
    int64_t hi = 0;
    std::optional<uint64_t> read;
    std::optional<uint64_t> written;
    uint64_t line = 0;  // of the input
  };

  // In the order of `lo`, those of one thread in program order.
  void add(const Item& item);
  // The next one in the order; nothing: add more, or finish() and ask again.
  std::optional<Item> next();
  void finish() { finished_ = true; }
  bool empty() const { return pending_ == 0; }

 private:
  using Place = std::pair<uint64_t, uint64_t>;  // address, size

  struct Thread {
    std::deque<Item> items;
    std::deque<int64_t> over;  // by when each is over: no later than those behind it
  };

  static Place place_of(const Event& event) { return {event.address, event.size}; }
  enum class Waits : uint8_t {
    kNot,
    kToOverwrite,  // for loads of what is there
    kForValue,     // that is not there
  };
  Waits waits(ThreadId thread, const Item& item, int64_t over) const;
  bool brings(ThreadId except, const Place& place, uint64_t value, int64_t until) const;
  bool may_come(int64_t until) const {
    return !finished_ && until > latest_ && pending_ < kMostAhead;
  }
  bool wants(ThreadId except, const Place& place, uint64_t value, int64_t until,
             int64_t over = INT64_MAX) const;
  bool begins_with_another(ThreadId except, const Place& place, uint64_t value, int64_t until,
                           int64_t over) const;
  Item take(ThreadId thread);

  std::vector<Thread> threads_;
  size_t pending_ = 0;
  int64_t latest_ = INT64_MIN;  // beginning of what was added
  bool finished_ = false;
  std::map<Place, uint64_t> memory_;  // values that are known
  // Who of the pending events writes, and reads, such a value there.
  struct Access {
    ThreadId thread = 0;
    int64_t lo = 0;
    int64_t hi = 0;
  };
  std::map<std::pair<Place, uint64_t>, std::vector<Access>> writers_;
  std::map<std::pair<Place, uint64_t>, std::vector<Access>> readers_;
};

}  // namespace tsomon::predict
