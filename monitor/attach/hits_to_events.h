// Hits become events: units, accesses with their intervals, locks.
//
// Purpose     What the checkers read. Each thread of the target is a stream of an EventMerge.
// Input       Hits in the order of their time, each thread's in program order.
// Intervals   hit.h tells why an access lies between its hit and the thread's next one. An access
//             is given out when the next hit has come, or when the thread was seen inside a system
//             call, not running: it has left the access behind by then, and no thread is put to
//             sleep with stores in its buffer, so that is also a fence. Where a thread stays
//             silent otherwise the end is left open after kPatience.
// Units       A stack of entered functions for each thread. A function has been left when its
//             `ret` is hit, or when a hit shows a stack pointer above the one it was entered with
//             (at another entry: above or at it). Far jumps of the stack pointer (another stack:
//             signal handlers, coroutines) say nothing. What was entered before the probes were
//             there ends unseen:
//             accesses of such a unit, and of threads that were there before and have entered no
//             unit since, are left out. (Their locks are not known, so they would look like
//             violations.)
// Locks       First acquisition and last release by a thread, so recursive locks count once. Before
//             a release whose acquisition was not seen (it came before the probes) one is told: the
//             lock was held since before everything that is told, so nobody else had it meanwhile.
// Begin       Probes go live one after another, those of locks first. What comes before the last of
//             them is live (all_live_from()) is not told: a unit would be without its locks, or
//             without some of its accesses. It says which locks are held, though, and these are
//             told as acquired when everything is live. A thread that was waiting in a lock
//             function may return with a lock that is not known, and that others have held since:
//             until it gives that back, its accesses are left out. (When it holds still another
//             lock of before, the first that it gives back is taken for that one.)
// End         Probes go one after another, too: what comes after ends_at() is not told.
// Values      Given only on request (hit_values.h). They let the checkers conclude an order from
//             "this value can only come from that store", which is sound only when every function
//             that stores to these locations is watched.
// Gaps        Between two hits of one thread that follow each other straight on, with few
//             instructions in between, lies the whole of what a hit costs (overhead.h).
// Complexity  O(1) a hit, but for the depth of nested units.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "monitor/attach/hit.h"
#include "monitor/attach/hit_values.h"
#include "monitor/attach/plan.h"
#include "online/stream/event_merge.h"
#include "tso/model/trace.h"

namespace tsomon::attach {

// The access after which a watch point was hit; size 0: none that could be told.
struct WatchedAccess {
  x86::AccessKind kind = x86::AccessKind::kLoad;
  bool also_stores = false;  // an unlocked read-modify-write: a load, then a store
  bool probed = false;       // a uprobe tells it as well
  uint64_t address = 0;
  uint32_t size = 0;
  uint32_t location = Event::kNoLocation;
};

struct HitsToEventsOptions {
  Values values = Values::kNone;
  // Whether the process's memory was its only thread's alone then (hit_values.h). Absent: never.
  std::function<bool(int64_t time)> alone;
  // Whether the thread sleeps inside a system call now. Absent: not known.
  std::function<bool(uint32_t thread)> in_system_call;
  // What a hit of a watch point stands for.
  std::function<WatchedAccess(const Hit&)> watched;
};

class HitsToEvents {
 public:
  static constexpr int64_t kPatience = 250'000'000;  // nanoseconds
  static constexpr size_t kMaxGaps = 4096;

  HitsToEvents(const Plan& plan, Symbols& symbols, EventMerge& merge, HitsToEventsOptions options);

  void add(const Hit& hit);
  // Nothing earlier than `time` follows: hands over what is ready.
  void advance(int64_t time);
  void thread_ended(uint32_t thread);
  // Every probe of the plan is live at `time`: what came before is not told.
  void all_live_from(int64_t time) { live_from_ = time; }
  // The probes of the group count from then on, or until then: some were not there before, or are
  // not after. Those of locks count from then on also before all is live.
  void group_live_from(uint32_t group, int64_t time);
  void group_gone_at(uint32_t group, int64_t time);
  void watching_ends_at(int64_t time) { watching_ends_at_ = time; }
  // The first probe goes: what comes after that is not told.
  void ends_at(int64_t time) { ends_at_ = time; }
  // Probes of units were set, at first or once more, while these threads were there: what they do
  // before their next unit may belong to one that was not seen to begin.
  void units_were_set(const std::vector<pid_t>& threads);
  // Hits are missing, of any thread.
  void lost(uint64_t hits);
  void finish();

  std::vector<uint32_t> threads() const;             // that are known, as the kernel numbers them
  uint64_t unmatched() const { return unmatched_; }  // hits that could not be made sense of
  const std::vector<uint64_t>& hits_of_groups() const { return hits_of_groups_; }
  uint64_t hits_of_watch_points() const { return hits_of_watch_points_; }
  uint64_t hits_of_watch_point(size_t source) const {
    return source < hits_by_watch_point_.size() ? hits_by_watch_point_[source] : 0;
  }
  // Hits and accesses that were not told because of what was not seen before them.
  uint64_t left_out() const { return left_out_; }
  const ValueCounts& values() const { return values_; }
  // The gaps since the last call, nanoseconds, at most kMaxGaps.
  std::vector<int64_t> take_gaps() { return std::exchange(gaps_, {}); }

 private:
  static constexpr uint32_t kNoSite = UINT32_MAX;
  struct Frame {
    Action::Kind kind = Action::Kind::kEnter;
    LockRole role = LockRole::kAcquire;
    uint64_t stack = 0;  // the stack pointer at the entry
    uint64_t lock = 0;
    uint32_t label = 0;
    uint32_t function = 0;
  };
  struct Held {
    uint32_t depth = 0;
    bool shared = false;
  };
  struct Thread {
    ThreadId id = 0;
    EventMerge::Stream stream = 0;
    int64_t last = 0;  // time of its last hit
    bool any = false;  // it has one
    uint32_t last_site = kNoSite;
    bool between = true;         // it may be inside a unit that began before the probes were there
    bool drained = true;         // it was seen asleep since
    uint32_t unknown_locks = 0;  // that it came back with from calls that were not seen to begin
    std::vector<Frame> frames;
    std::vector<PendingAccess> pending;
    std::unordered_map<uint64_t, Held> locks;
    EventBlock block;
  };

  struct Live {
    int64_t from = kTimeMin;
    int64_t until = kTimeMax;
  };

  Thread& thread_of(uint32_t number);
  bool counts(const Hit& hit) const;
  void before_all_is_live(const Hit& hit);
  void tell_held_locks();
  void note_gap(const Thread& thread, const Site& site, const Hit& hit);
  void settle(Thread& thread, int64_t hi);
  void leave_what_is_left(Thread& thread, uint64_t stack, bool at_entry);
  void end_frame(Thread& thread, int64_t time);
  void act(Thread& thread, const Hit& hit, const Site& site, const Action& action);
  bool inside_old_unit(const Thread& thread, const Action& action) const;
  void access(Thread& thread, const Hit& hit, const Site& site, const Action& action);
  void slept(Thread& thread, int64_t time);
  void watched(Thread& thread, const Hit& hit);
  void acquire(Thread& thread, int64_t time, uint64_t lock, bool shared);
  void release(Thread& thread, int64_t time, uint64_t lock, LockRole role);
  void point(Thread& thread, EventKind kind, uint64_t address, int64_t time);

  const Plan& plan_;
  Symbols& symbols_;
  EventMerge& merge_;
  HitsToEventsOptions options_;
  std::unordered_map<uint32_t, Thread> threads_;
  EventMerge::Stream control_;
  std::vector<uint64_t> hits_of_groups_;
  std::set<uint32_t> old_threads_;  // that have not been at a probe since the units were set
  std::vector<int64_t> gaps_;
  ValueCounts values_;
  std::vector<Live> live_;  // by group, where it is not always
  int64_t live_from_ = kTimeMin;
  int64_t ends_at_ = kTimeMax;
  int64_t watching_ends_at_ = kTimeMax;
  std::vector<uint64_t> hits_by_watch_point_;
  bool telling_ = true;  // not while a hit before live_from_ is looked at
  bool began_ = false;   // what is held at live_from_ was told
  uint64_t hits_of_watch_points_ = 0;
  uint64_t unmatched_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace tsomon::attach
