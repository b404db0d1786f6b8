// Deadlock, as it happened: who waits for whom when a trace ends.
//
// Purpose     A trace that ends while threads wait has requests without acquisitions. Held and
//             waited for is what the last events of each thread leave; nothing is reordered.
// Stuck       The largest set of threads each of which waits without a limit of time for a lock
//             that one of the set, or a thread that was joined, holds against it; for one of the
//             set to end; or on a condition that nobody has notified since, when all threads that
//             live are in the set.
// Waits       A request waits until the thread gets what it asked for (an acquisition, a take, a
//             join), or anything else of it but loads, stores, locked operations and what memory
//             it gets and gives back: those may be a signal handler's. A wait on a condition ends
//             with the next acquisition.
// Overtaken   A thread whose lock another one acquires while it seems to hold it is not looked at:
//             its last events are missing, or it was given back by calls that nobody saw.
// Misses      Semaphores and barriers (handlers and other processes may post; how many a barrier
//             waits for is not known): who waits for one is taken to go on. What is spun for.
//             Threads that ended without being joined. Waits with a time limit.
// Complexity  O(log locks held) for each synchronisation event. Memory: what is held and waited for.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tso/model/trace.h"

namespace tsomon {

// An event that is the last of its kind to matter.
struct LastEvent {
  Event event;
  uint64_t index = 0;  // of the event in the input
};

struct StuckThread {
  enum class For : uint8_t { kLock, kThread, kCondition };
  ThreadId thread = 0;
  For waits_for = For::kLock;
  LastEvent wait;
  std::vector<LastEvent> holds;    // the acquisitions of what it holds, by event
  std::vector<ThreadId> held_by;   // whom it waits for
  std::optional<LastEvent> taken;  // the acquisition of the lock that it waits for
  bool in_circle = false;
};

// Two threads that hold one lock at once, each of them for writing, whatever the intervals leave open:
// no program does that, so the trace is not of one.
struct TwoHolders {
  LastEvent first;  // the acquisitions
  LastEvent second;
  LastEvent given_back;  // by the thread of the first, after the second
};

class LastWaits {
 public:
  // `first`: the index of the block's first event; `lines`, if any, those of all of them.
  void add(const EventBlock& block, uint64_t first, const std::vector<uint64_t>& lines);
  // Empty: no deadlock. Those of a circle, in its order, come first.
  std::vector<StuckThread> stuck() const;
  // The first such pair.
  const std::optional<TwoHolders>& two_holders() const { return two_holders_; }

 private:
  struct Hold {
    ThreadId thread = 0;
    bool shared = false;
    uint32_t times = 1;
    LastEvent taken;
    int64_t until = 0;  // when the acquisition was over
  };
  // Of a lock: a hold that another one has overtaken.
  struct Overtaken {
    Hold before;
    Hold by;
  };
  struct Wait {
    StuckThread::For kind = StuckThread::For::kLock;
    bool shared = false;
    LastEvent event;
  };
  struct State {
    bool seen = false;
    bool ended = false;
    bool overtaken = false;
    std::optional<Wait> wait;
    std::optional<uint64_t> tries;  // does not wait for it without a limit of time
  };

  State& state(ThreadId thread);
  void acquire(const LastEvent& taken, int64_t until, bool shared);
  void release(const LastEvent& given_back, bool shared);
  void forget(uint64_t begin, uint64_t end);
  bool blocks(const Wait& wait, const Hold& hold) const;

  std::vector<State> threads_;
  std::map<uint64_t, std::vector<Hold>> locks_;
  std::map<uint64_t, Overtaken> overtaken_;  // by lock, the last one
  std::optional<TwoHolders> two_holders_;
};

}  // namespace tsomon
