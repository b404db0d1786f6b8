// Says whether a reordered trace is one that the same run could have produced.
//
// Purpose     The last word about every prediction, whoever found it. It replays the witness event
//             by event and shares with the searches only the definitions: cells, hard edges, and
//             which reads are bound (Cai et al., ESEC/FSE 2021, definition 2.3).
// Witness     Events of the trace in their new order:
//               - of each thread the first ones, in program order;
//               - after every event that a hard edge puts before (hard_edges.h);
//               - a lock is acquired when no other thread holds it in a mode that excludes it;
//               - a semaphore is taken when its count is not 0;
//               - a read sees for each cell the same write as in the trace, or as there what memory
//                 held at first, unless it is free. The read of a read-modify-write is bound as
//                 soon as its thread does anything more or another thread sees what it wrote.
// Buffers     Under TSO (witness.h) stores and releases wait in the buffer of their thread, first in
//             first out, until they are committed. A load is forwarded the youngest store there to
//             its cells, which has to cover it whole; what drains, and a join of the thread, finds
//             the buffer empty. The hard edge from a store is one from its commit. A store is where
//             it commits in atomicity, where no access is a load that was forwarded, and where it
//             is issued in races.
// Race        The last two events of the witness are the two accesses, of different threads, that
//             conflict. Nothing follows them, so what they read is free.
// Use         The last event is an access to a block of memory, or to a lock, that another event has
//             ended before. What it read is free.
// Atomicity   The last event closes a cycle: it and an earlier event of its unit conflict with
//             events of another thread, the earlier one comes before its partner there, and the
//             other partner, of the same unit or later in that thread, before the last event. What
//             the last event and, if it is of another thread, the one before it read is free.
// Start       Witnesses begin with the first events of the trace in its order (witness.h), which are
//             not replayed: what they leave behind is known. A read of the tail whose write is
//             among them sees it unless the tail has written the cell.
// Window      What was carried to the beginning of a window is what every witness begins with, in that
//             order: it has happened, and holds its locks.
// Complexity  O(n) to make, O(log n + events and their cells) for the tail of a witness.
// Memory      About 8 bytes an event.
// Thread-safety: none; a validator has scratch memory.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "offline/predict/branches.h"
#include "offline/predict/cells.h"
#include "offline/predict/hard_edges.h"
#include "offline/predict/semaphores.h"
#include "tso/model/trace.h"
#include "tso/model/units.h"

namespace tsomon::predict {

class Validator {
 public:
  // `branches` is not kAuto. All arguments must outlive it. `carried`: so many events at the
  // beginning of the trace were carried to a window (window_start.h).
  Validator(const Trace& trace, const CellTable& cells, const std::vector<HardEdge>& edges,
            Branches branches, bool buffers = false, uint32_t carried = 0);

  // Empty: it is one. Otherwise what is wrong.
  std::string check_order(std::span<const uint32_t> tail, uint32_t start = 0);
  std::string check_race(std::span<const uint32_t> tail, uint32_t start = 0);
  // Of an end, or the beginning of a lock, and a use.
  std::string check_lifetime_race(std::span<const uint32_t> tail, uint32_t start);
  // The last event uses what `end` has ended before: memory that was freed, a lock.
  std::string check_use(std::span<const uint32_t> tail, uint32_t start, uint32_t end);
  // The four are events of the witness; see Detour in query.h.
  std::string check_atomicity(std::span<const uint32_t> tail, uint32_t start,
                              const std::array<uint32_t, 4>& detour, const UnitTable& units);
  // Of a cycle of three threads: the first event comes before the second one, which is of another
  // thread, the third one, of the second one's thread, before the fourth, of a third thread, and the
  // fifth, of that thread, before the last one, of the first one's unit; each two conflict. What the
  // last event reads is free.
  std::string check_circle(std::span<const uint32_t> tail, uint32_t start,
                           const std::array<uint32_t, 6>& events, const UnitTable& units);
  // After the witness each of the threads is about to acquire what the next one holds.
  std::string check_deadlock(std::span<const uint32_t> tail, std::span<const uint32_t> requests,
                             uint32_t start = 0);
  // The thread is about to give back its mutex and to wait, and all notifications of the condition
  // variable have been that do not need what it does after that.
  std::string check_lost(std::span<const uint32_t> tail, uint32_t release, uint32_t wait,
                         uint32_t start = 0);

 private:
  struct Lock {
    ThreadId owner = kNobody;
    uint32_t depth = 0;                                  // of the owner,
    uint32_t reads = 0;                                  // and how often it is a reader besides
    std::vector<std::pair<ThreadId, uint32_t>> readers;  // and how often each
  };
  static constexpr uint32_t kNobody = 0xFFFFFFFFU;
  static constexpr uint32_t kInitial = 0xFFFFFFFFU;  // what memory held at first

  std::vector<bool> needing(uint32_t event) const;
  bool entry_exists(uint32_t entry) const;
  std::string buffered_step(uint32_t entry, bool bound);
  std::string commit(uint32_t event);
  std::string buffered_load(uint32_t event, bool bound);
  bool committed(uint32_t event) const;
  void commit_releases();
  void group_locks();
  void find_plain();
  std::string replay(std::span<const uint32_t> tail, uint32_t start, size_t free_tail);
  std::string step(uint32_t event, bool bound);
  // Where the reordering has each of the events.
  std::string find_places(std::span<const uint32_t> tail, uint32_t start,
                          std::span<const uint32_t> events, std::span<size_t> at) const;
  bool executed(uint32_t event) const;
  bool next_in_thread(uint32_t event) const;
  bool hard_edges_kept(uint32_t event, uint32_t* missing) const;
  bool conflict(uint32_t a, uint32_t b) const;
  bool leads_on(uint32_t to, uint32_t from, const UnitTable& units) const;
  bool holds(ThreadId thread, const Event& request, LocationId lock);
  Lock& lock_now(LocationId lock);
  int64_t& count_now(uint32_t semaphore);
  static bool acquire(Lock& lock, const Event& event);
  static void release(Lock& lock, const Event& event);
  static void change(Lock& lock, const Event& event);
  std::span<const HardEdge> edges_to(uint32_t event) const;
  uint32_t size() const { return static_cast<uint32_t>(trace_.events.size()); }
  ThreadId thread_of(uint32_t event) const { return trace_.events[event].thread; }
  // The write that an event saw in a cell, if it reads it.
  uint32_t source(uint32_t event, uint32_t cell) const;
  void group_writes();
  void reset();

  const Trace& trace_;
  const CellTable& cells_;
  bool ends(uint32_t end, uint32_t use) const;
  bool begins(uint32_t begin, uint32_t use) const;
  std::string not_next(uint32_t event) const;

  const std::vector<HardEdge>& edges_;
  std::multimap<uint32_t, uint32_t> if_both_;  // HardEdge::if_both, from and to
  Branches branches_;
  bool buffers_;
  uint32_t carried_;
  const SemaphoreTable semaphores_;
  std::vector<uint32_t> previous_;  // event of the same thread, by event
  // By event: neither a lock nor a hard edge nor a cell that another thread uses. Only its thread's
  // order matters, which gives its reads what they saw.
  std::vector<bool> plain_;
  std::vector<bool> several_;                       // of a cell: more than one thread uses it
  std::vector<uint32_t> first_write_;               // to a cell, in writes_
  std::vector<uint32_t> writes_;                    // events, by cell
  std::vector<std::vector<uint32_t>> branches_of_;  // by thread
  std::vector<uint32_t> first_change_;              // of a lock, in changes_
  std::vector<uint32_t> changes_;                   // lock events, by lock
  std::vector<bool> free_before_;                   // such a change finds the lock free

  // Of the replay.
  std::vector<std::deque<uint32_t>> buffer_;  // stores and releases, by thread
  std::vector<uint32_t> forwarded_;           // loads
  uint32_t start_ = 0;
  std::vector<uint32_t> done_;         // last event of each thread in the tail so far
  std::vector<uint32_t> ends_;         // and in the whole tail
  std::vector<uint32_t> last_branch_;  // of each thread up to there; 0: none
  std::vector<ThreadId> used_threads_;
  std::vector<uint32_t> last_;  // write of the tail to each cell
  std::vector<uint32_t> touched_;
  std::vector<Lock> locks_;
  std::vector<bool> known_;  // locks whose state is in locks_
  std::vector<LocationId> used_locks_;
  FlatMap<uint32_t, int64_t> semaphore_counts_;
};

}  // namespace tsomon::predict
