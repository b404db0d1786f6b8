// What threads hand over to each other without a location that could conflict: posts and takes of
// counted semaphores, sends and receives.
//
// Source      Theory, "Synchronisation" (docs/theory.md).
// Order       Events of one semaphore, or channel, come in the order of their `lo`, then of the
//             input, as events of locks do (lock_order.h): whoever makes them takes stamps that
//             grow from who hands over to who takes over. Their interval says only how they lie to
//             what is not of it. One that is open to the end has no stamp to be trusted: it orders nothing.
// Sends       Each send comes before every later receive of its address.
// Semaphores  Takes commute with takes, and posts with posts. A post comes before a take only where
//             the take could not have been without it: with `count` left after the take, all posts
//             before it but the last `count` of each thread. The count is known from an event of kind
//             kCount, or from a take that has a value: the count that it leaves (slices of longer
//             inputs, online/stream/history.h). Of a count that is not known, or that the
//             events contradict, nothing follows.
// Misses      What holds of several posts together: that one of two came before the take, say.
// Complexity  O(h log h + t h) for h such events of t threads that hand over to one another;
//             OpenHandOvers: O(log c) an event, of c channels.
// Thread-safety: pure functions; SemaphoreCounts, OpenHandOvers: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tso/model/channels.h"
#include "tso/model/trace.h"

namespace tsomon {

// The event has a place among those of its semaphore or channel.
inline bool has_place(const EventBlock& block, const Event& event) {
  return block.hi(event) != kTimeMax && hands_over(event.address);
}

// The counts of semaphores, one event after the other.
class SemaphoreCounts {
 public:
  // The count after the event, which is of a semaphore, or ends one; nothing: not known.
  std::optional<uint64_t> add(const EventBlock& block, const Event& event);
  void forget() { counts_.clear(); }  // events are missing here

  static constexpr uint32_t kKinds = kind_mask(EventKind::kCount) | kind_mask(EventKind::kPost) |
                                     kind_mask(EventKind::kTake) | kind_mask(EventKind::kDestroy);

 private:
  std::map<uint64_t, uint64_t> counts_;  // by address
};

// Channels, or semaphores, that threads hand over through in an order which is not known: that what
// follows a receive came after the send is not seen, so nothing without a violation is serializable.
class OpenHandOvers {
 public:
  // Not ordered: events of no channel have a place (--without locks).
  explicit OpenHandOvers(bool ordered) : ordered_(ordered) {}

  void add(const EventBlock& block, const Event& event);
  bool any() const { return any_; }

  static constexpr const char* kWhy =
      "what threads sent and posted to one another has no known order";

 private:
  struct Channel {
    ThreadId giver = 0, taker = 0;
    bool given = false, taken = false, open = false;
    bool several = false;  // threads that give, or that take
  };

  bool ordered_;
  bool any_ = false;
  std::map<std::pair<uint64_t, bool>, Channel> channels_;  // by address; semaphore or not
};

// Of a whole trace. `ordered`: as the constructor has it.
bool has_open_hand_overs(const EventBlock& block, bool ordered);

struct HandOver {
  uint32_t from = 0;  // events: a post or send
  uint32_t to = 0;    // a take or receive of another thread
  bool operator==(const HandOver&) const = default;
};

// By `to`, then `from`. What follows from others and the order of a thread's posts, sends, takes
// and receives may be missing.
std::vector<HandOver> hand_overs(const Trace& trace);

}  // namespace tsomon
