// What long work may still use, and whether it is to stop: one answer for everything that takes
// long.
//
// Purpose     Loops whose length the input decides call spend(); tables whose size it decides are
//             announced with expect_bytes(). Either throws WorkEnded when the bounds of the meter
//             are reached, or when somebody asked for a stop. within() catches it and says why:
//             no exception leaves it, and what was found before stands.
// Which meter That of the innermost WorkScope of the calling thread. It is no argument, as a stop
//             concerns everything below, and because memory is counted where it is allocated.
//             Without a scope spend() does nothing. Threads that help enter the meter of the
//             thread that they help.
// Units       One unit of work is a step of a loop, some nanoseconds. A stop is seen within
//             kPortion units: well below a millisecond.
// Repeatable  The bound on work is met at the same step in every run. What helpers may compute
//             ahead has bounds of its own and is not counted (WorkScope::Counted), or results
//             would depend on how many threads there are.
// Effort      A meter may be given more or less than the usual effort: bounds on work that do not follow from
//             what a caller asks for are multiplied by it (WorkBudget, with_effort()), bounds on memory are not.
// Memory      Counted only where the program replaces the allocation functions
//             (tools/allocator.cpp), and then of all that is allocated inside the scope, on all of
//             the meter's threads, less what is freed there; of what a scope inside allocates, too.
//             expect_bytes() works everywhere.
// Inputs      Whatever is in an input, what it takes of memory is bounded by its size: within_input().
//             Readers say with more_input() what they find that is not in the size of the file.
// Heaps       If the program has heaps (HeapHooks), each thread of a scope with Heap::kOwn gets
//             one, which ends with the scope. What outlives the scope is to be copied inside a
//             WorkPause. A heap in which something is left is handed over, not destroyed: what was
//             forgotten costs memory and is never freed under somebody.
// Thread-safety: a meter may be used by several threads; a scope belongs to its thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>

namespace tsomon {

// A request to end, which a signal handler or another thread makes and nobody takes back.
class StopFlag {
 public:
  void ask() noexcept { asked_.store(true, std::memory_order_relaxed); }
  bool asked() const noexcept { return asked_.load(std::memory_order_relaxed); }

 private:
  static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");
  std::atomic<bool> asked_{false};
};

enum class WorkLimit : uint8_t { kStopped, kWork, kMemory };
// As notes of reports have it: "interrupted" ...
const char* limit_text(WorkLimit limit);

class WorkEnded : public std::exception {
 public:
  explicit WorkEnded(WorkLimit limit) : limit_(limit) {}
  WorkLimit limit() const { return limit_; }
  const char* what() const noexcept override { return limit_text(limit_); }

 private:
  WorkLimit limit_;
};

struct WorkBounds {
  uint64_t max_work = UINT64_MAX;
  uint64_t max_bytes = UINT64_MAX;
  bool grows = false;  // max_bytes does, with more_input()
};

// Bounds that grow with the input. The work is that of the usual effort.
struct WorkBudget {
  uint64_t work_at_first = UINT64_MAX;
  uint64_t work_per_event = 0;
  uint64_t bytes_at_first = UINT64_MAX;
  uint64_t bytes_per_event = 0;

  WorkBounds of(uint64_t events) const;
};

class WorkMeter {
 public:
  // It also ends when the meter of the calling thread is asked to stop, and when `stop` is. What
  // that one has left bounds it, too, and is used by it when it ends, if this thread's work is
  // counted.
  explicit WorkMeter(WorkBounds bounds = {}, const StopFlag* stop = nullptr);
  ~WorkMeter();
  WorkMeter(const WorkMeter&) = delete;
  WorkMeter& operator=(const WorkMeter&) = delete;

  uint64_t work() const { return work_.load(std::memory_order_relaxed); }
  double effort() const { return effort_; }
  // Before anything is done. That of meters inside is the same.
  void set_effort(double effort) { effort_ = effort; }
  int64_t most_bytes() const { return most_bytes_.load(std::memory_order_relaxed); }
  bool stop_asked() const {
    return (stop_ != nullptr && stop_->asked()) || (outer_ != nullptr && outer_->stop_asked());
  }

  // For this file and the allocation functions.
  void add_work(uint64_t work) { work_.fetch_add(work, std::memory_order_relaxed); }
  bool over_work() const { return work() > bounds_.max_work; }
  // False: too much is in use.
  bool add_bytes(int64_t bytes) noexcept;
  // It, or one around it, once was.
  bool over_bytes() const {
    return over_bytes_.load(std::memory_order_relaxed) ||
           (outer_ != nullptr && outer_->over_bytes());
  }
  bool bounds_bytes() const {
    return max_bytes() != UINT64_MAX || (outer_ != nullptr && outer_->bounds_bytes());
  }
  uint64_t max_bytes() const { return max_bytes_.load(std::memory_order_relaxed); }
  // Of a table that is not there yet.
  bool has_room_for(uint64_t bytes) const {
    return bytes <= max_bytes() && (outer_ == nullptr || outer_->has_room_for(bytes));
  }
  // Raises its bound and those of the meters around it, as far as they are bounds that grow.
  void grow(uint64_t bytes) noexcept;
  uint64_t max_work() const { return bounds_.max_work; }

 private:
  WorkBounds bounds_;
  std::atomic<uint64_t> max_bytes_;
  const StopFlag* stop_;
  WorkMeter* outer_;
  bool counted_outside_;
  double effort_;
  std::atomic<uint64_t> work_{0};
  std::atomic<int64_t> bytes_{0};
  std::atomic<int64_t> most_bytes_{0};
  std::atomic<bool> over_bytes_{false};
};

// What a program with heaps of its own provides, before it starts threads.
struct HeapHooks {
  void* (*create)() noexcept = nullptr;
  void (*end)(void* heap) noexcept = nullptr;
};
void set_heap_hooks(const HeapHooks& hooks);

namespace work_internal {

inline constexpr uint64_t kPortion = uint64_t{1} << 14;

struct ThreadWork {
  WorkMeter* meter = nullptr;
  uint64_t pending = 0;  // work that the meter does not know of yet
  int64_t bytes = 0;     // the same
  void* heap = nullptr;  // for allocations; nullptr: the program's
  bool counted = true;   // work is
  bool bounded = false;  // allocations are
};
extern constinit thread_local ThreadWork this_thread;

void tell_meter();

}  // namespace work_internal

// So much has been done, or is about to be. Throws WorkEnded.
inline void spend(uint64_t work) {
  work_internal::ThreadWork& mine = work_internal::this_thread;
  mine.pending += work;
  if (mine.pending >= work_internal::kPortion) {
    work_internal::tell_meter();
  }
}

// A table of so many bytes is about to be made. Throws WorkEnded where that is more than all that
// the meter allows.
void expect_bytes(uint64_t bytes);

// What a bound on work is with the effort of the calling thread's meter; at least 1, if it is not 0.
uint64_t with_effort(uint64_t bound);

// Whether the meter of this thread was asked to stop; for those who end without an exception.
bool stop_asked();
// What threads that help hand over to their scopes; nullptr outside of scopes.
WorkMeter* current_meter();

// This thread works for the meter until the scope ends. nullptr: nothing changes.
class WorkScope {
 public:
  enum class Counted : uint8_t { kYes, kNo };
  enum class Heap : uint8_t { kShared, kOwn };

  explicit WorkScope(WorkMeter* meter, Counted counted = Counted::kYes, Heap heap = Heap::kShared);
  WorkScope(const WorkScope&) = delete;
  WorkScope& operator=(const WorkScope&) = delete;
  ~WorkScope();

 private:
  work_internal::ThreadWork before_;
  bool entered_;
  void* heap_ = nullptr;  // to be ended
};

// For what outlives the scope: allocated as if there were none, neither bounded nor stopped.
class WorkPause {
 public:
  WorkPause();
  WorkPause(const WorkPause&) = delete;
  WorkPause& operator=(const WorkPause&) = delete;
  ~WorkPause();

 private:
  work_internal::ThreadWork before_;
};

// Calls work() inside a scope with these bounds and a heap of its own. Nothing: it came to its end;
// otherwise why it did not. std::bad_alloc comes out of it when the machine, not the meter, has
// no more memory.
template <typename Work>
std::optional<WorkLimit> within(WorkBounds bounds, const Work& work) {
  WorkMeter meter(bounds);
  try {
    const WorkScope scope(&meter, WorkScope::Counted::kYes, WorkScope::Heap::kOwn);
    work();
  } catch (const WorkEnded& ended) {
    return ended.limit();
  } catch (const std::bad_alloc&) {
    if (!meter.over_bytes()) {
      throw;
    }
    return WorkLimit::kMemory;
  }
  return std::nullopt;
}

// What may be in use for an input of so many bytes: with what the allocator needs beside it no more
// than 256 MiB and 64 for each of them.
inline constexpr WorkBudget kInputBudget = {.bytes_at_first = uint64_t{192} << 20,
                                            .bytes_per_event = 48};
// What an event of an input counts whose size is not known before: from a pipe as much as a line of text, of a capture, which may pack
// thousands into a byte, what it takes unpacked.
inline constexpr uint64_t kBytesOfPipedEvent = 16;
inline constexpr uint64_t kBytesOfPackedEvent = 4;

// The input of this thread's work has so many bytes more than was known.
void more_input(uint64_t bytes);

// Calls work(), which does all that is asked of an input of so many bytes. Throws WorkEnded where it
// takes too much memory for that.
template <typename Work>
auto within_input(uint64_t bytes, const Work& work) {
  WorkBounds bounds = kInputBudget.of(bytes);
  bounds.grows = true;
  WorkMeter meter(bounds);
  const WorkScope scope(&meter);
  try {
    return work();
  } catch (const std::bad_alloc&) {
    if (meter.over_bytes()) {
      throw WorkEnded(WorkLimit::kMemory);
    }
    throw;
  }
}

struct WorkSpent {
  uint64_t work = 0;
  bool over = false;  // the bound on work was met
};

// Calls work() inside a scope with these bounds, which those of every within() inside keep to, and
// says what it took. What is thrown comes out of it.
template <typename Work>
WorkSpent measured(WorkBounds bounds, const Work& work) {
  WorkMeter meter(bounds);
  {
    const WorkScope scope(&meter);
    work();
  }
  return {meter.work(), meter.over_work()};
}

}  // namespace tsomon
