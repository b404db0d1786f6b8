// Idle iterations of waiting loops, which are left out before anything is judged.
//
// Source      Theory, "Waiting inside of a unit" (docs/theory.md).
// Purpose     A unit that begins before its thread has a lock, as functions do, contains the
//             attempts to get it. Those that failed have no effect on anything, and are no events.
// Iteration   A stretch of one thread's events with no store in it but locked operations that wrote
//             what they read, after which the thread does the same again: the same instructions on
//             the same bytes, until one of them reads another value or all is as it was. The
//             iteration that comes last, which gets through, counts. What goes by another line back to the line that it
//             came from, and to the same bytes, is in a loop, too, whatever is done there (`for (int now = x.load(); now == 0
//             || !x.compare_exchange_weak(now, 1);` with a load on the next line).
//             Also left out: a load right before a locked operation on the same bytes that reads
//             the same value (it might as well have looked then), and one right before a
//             compare-exchange that failed and is left out (which has put another value in the
//             place of what it read). And loads that found the lowest bit of a pointer set, right
//             before a locked operation that does nothing but set it: compilers give a loop's
//             first look an instruction of its own, and a pointer's lowest bit is a lock.
//             And a load right before an iteration that reads the same bytes and finds the same.
// Locks       Whoever needs several locks at once and does not get one of them gives the others back and tries again
//             (std::lock, std::scoped_lock). Such an attempt is idle: it acquires locks and releases them all, nothing else of
//             the thread comes in between or before it has them, and what it had was a part, not all, of what it has then; or,
//             where nothing is recorded of what it does with them, of what it had the last time. (A library that is not
//             recorded has sections that look empty; those have all that they need.) Of recordings only: locks with a
//             location and an interval of time stamps.
// Transparent Stores to memory of the thread's own (its stack, mostly), fences, control flow, and loads without a value: they stay, and do not end a loop. A
//             load without a value that others store to is thus an event as any other. A fence
//             of a thread that goes to sleep until something happens (kSleeps) does end it.
//             Memory that is allocated belongs to nobody yet.
// How         Loads and releases become kIdle, locked operations and acquisitions fences: they emptied the store buffer.
//             Nothing is taken out: events keep their numbers.
// Needs       Source locations and values, of more than 8 bytes digests (trace.h). Two loads without a source location are not known to be
//             of one loop.
// Misses      Loops that store anything: those that count themselves in and out again, or hand over
//             (MCS, CLH). Iterations of more than kLongest loads and locked operations. And what is
//             no loop, but looks like one: a function that is called twice in a row, whose
//             loads nothing of the thread comes between.
// Complexity  O(kLongest) for an event, O(1) where nothing repeats; of a lock O(locks that are tried for at once). Memory:
//             kLongest and kMostSteps a thread.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "tso/model/cancelled_units.h"
#include "tso/model/trace.h"
#include "tso/support/flat_map.h"

namespace tsomon {

// A load that is none: like the kinds of cancelled_units.h one that no checker looks at.
inline constexpr auto kIdle = static_cast<EventKind>(kKindsWithCancels);
// The address of such a fence.
inline constexpr uint64_t kSleeps = 1;
inline constexpr int kAllKinds = kKindsWithCancels + 1;
static_assert(kAllKinds <= Event::kAtomicKinds);

// Makes it one: a load, a locked operation that wrote what it read, or one of a lock.
void make_idle(Event& event);

// Which memory only one thread has touched so far: of pages that it was the first to touch, all but
// the words that others have touched since. There may be one of the latter on every stack.
class OwnMemory {
 public:
  // The next event. Whether it is an access to memory of the thread's own.
  bool add(const EventBlock& block, const Event& event);

 private:
  static constexpr ThreadId kNobody = 0xFFFFFFFFU;
  static constexpr ThreadId kSeveral = 0xFFFFFFFEU;
  static constexpr size_t kMostWords = size_t{1} << 16;

  struct Owner {
    ThreadId thread = kNobody;
    bool alone = true;
  };
  bool is_foreign(const Event& event) const;
  void make_foreign(const Event& event, Owner& owner);

  FlatMap<uint64_t, Owner> owners_;
  FlatMap<uint64_t, bool> foreign_;  // words of eight bytes
  struct Last {
    uint64_t page = ~uint64_t{0};
    uint64_t round = 0;
  };
  std::vector<Last> last_;  // by thread: a page that is its own in whole
  uint64_t round_ = 1;      // changes when pages change hands
};

class IdleIterations {
 public:
  static constexpr size_t kLongest = 16;
  static constexpr size_t kMostSteps = 4096;  // of attempts at several locks

  // Called with each number for which add() was true, once.
  using Decide = std::function<void(uint64_t number, bool idle)>;

  // Whether two locations are one place of the program: compilers make copies of a loop's first part. Asked about
  // different ones, of accesses to the same bytes.
  using SamePlace = std::function<bool(uint32_t a, uint32_t b)>;

  explicit IdleIterations(Decide decide) : decide_(std::move(decide)) {}
  // Without them they are one place, and on one line, when they are one location.
  void compare_places(SamePlace same, SamePlace same_line) {
    same_ = std::move(same);
    same_line_ = std::move(same_line);
  }

  // The next event of its thread. True: what comes decides whether it is idle; it goes by `number`.
  bool add(const EventBlock& block, const Event& event, uint64_t number);
  // The event waits; the thread has been in a loop there before.
  bool has_repeated(const Event& event) const;
  // Events are missing here, or there are no more: what waits counts.
  void lost(ThreadId thread);  // EventLoss::kUnknownThread, or any that is none: of all threads
  void finish();

 private:
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();

  struct Access {
    uint64_t number = 0;
    uint64_t address = 0;
    uint64_t value = 0;  // read
    uint32_t size = 0;
    uint32_t location = 0;
    bool load = false;    // not a locked operation
    bool failed = false;  // compare-exchange
    bool locked() const { return !load || failed; }
  };
  // Of a lock.
  struct Step {
    uint64_t number = 0;
    uint64_t address = 0;
    bool acquires = false;
  };
  // Candidates, and in them an iteration from `begin` up to `end`, whose first `again` the thread
  // has done once more.
  struct OfThread {
    std::vector<Access> waiting;
    size_t begin = kNone;
    size_t end = 0;
    uint32_t fence = Event::kNoLocation;  // right before
    uint64_t address = 0;                 // of what was left out last
    std::vector<Step> steps;              // since nothing else was done
    std::vector<uint64_t> held;           // locks, after them
  };

  bool same_place(const Access& a, const Access& b) const {
    return a.address == b.address && a.size == b.size && a.locked() == b.locked() &&
           (a.location == b.location || (same_ && same_(a.location, b.location)));
  }
  bool on_one_line(const Access& a, const Access& b) const {
    return a.location == b.location || (same_line_ && same_line_(a.location, b.location));
  }
  size_t begin_of_return(const OfThread& mine, const Access& now) const;
  void compare(OfThread& mine, const Access& now, bool stores);
  void leave_out(OfThread& mine);
  void leave_out_looks(OfThread& mine, const Access& now, std::optional<uint64_t> written);
  void count_all(OfThread& mine);
  bool add_step(OfThread& mine, const EventBlock& block, const Event& event, uint64_t number);
  void decide_steps(OfThread& mine);
  void count_steps(OfThread& mine);

  Decide decide_;
  SamePlace same_;
  SamePlace same_line_;
  OwnMemory memory_;
  std::vector<OfThread> threads_;
};

// Of whole traces, in each thread's order.
void resolve_idle_iterations(EventBlock& events, IdleIterations::SamePlace same_line = {});

}  // namespace tsomon
