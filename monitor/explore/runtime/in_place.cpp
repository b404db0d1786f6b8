#include "monitor/explore/runtime/in_place.h"

#include <algorithm>
#include <climits>

#include <linux/futex.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "monitor/explore/runtime/cells.h"
#include "monitor/explore/runtime/kernel.h"
#include "monitor/explore/runtime/memory_image.h"
#include "monitor/explore/runtime/policy.h"
#include "monitor/explore/runtime/system_calls.h"
#include "monitor/explore/runtime/threads.h"

namespace tsomon::explore::in_place {
namespace {

constexpr uint64_t kStack = uint64_t{1} << 18;
// Of glibc's at the thread pointer, where the kernel writes the processor that a thread is on.
constexpr uint64_t kPthread = 0x900;
constexpr unsigned long kMayUseWrfsbase = 2;

enum class Left : uint8_t { kEnded, kNeedsThread, kGaveUp };

// It stays as it is from execution to execution.
struct Executor {
  Context supervisor;
  Context first;  // the program at its first thread
  Context nobody;
  Context started[kMaxThreads + 1];
  bool is_started[kMaxThreads + 1];
  size_t stack_size[kMaxThreads + 1];
  uint32_t parked[kMaxThreads + 1];
  void (*begin)();
  uint32_t served;
  uint32_t needed;
  Left left;
  alignas(64) uint8_t stack[kStack];
};

Executor* executor = nullptr;

[[noreturn]] void leave(Left how) {
  executor->left = how;
  tsomon_switch(&executor->nobody, &executor->supervisor);
  __builtin_unreachable();
}

// Memory is what it was at the first thread. False: it is not any more, or could not be.
bool start_thread(uint32_t number) {
  pthread_t handle{};
  if (!start_real_thread(number, executor->stack_size[number], &handle)) {
    return false;
  }
  while (__atomic_load_n(&executor->parked[number], __ATOMIC_ACQUIRE) == 0) {
    kernel_call(SYS_futex, &executor->parked[number], FUTEX_WAIT, 0);
  }
  threads[number].handle = handle;
  const Context& at = executor->started[number];
  const uint64_t begin = stack_begin(number);
  // What its start left below is not the same every time.
  const uint64_t used = at.stack & ~uint64_t{4095};
  kernel_call(SYS_madvise, begin, used - begin, MADV_DONTNEED);
  for (uint64_t word = used; word < at.stack; word += 8) {
    *reinterpret_cast<volatile uint64_t*>(word) = 0;
  }
  executor->is_started[number] = true;
  return image::add(begin, executor->stack_size[number], {at.thread_pointer, kPthread}) &&
         image::renew();
}

void answer() {
  channel->done.store(executor->served + 1);
  if (channel->sleepers.load() != 0) {
    kernel_call(SYS_futex, &channel->done, FUTEX_WAKE, INT_MAX);
  }
}

void wait_for_request() {
  while (channel->request.load(std::memory_order_acquire) == executor->served) {
    channel->sleepers.fetch_add(1);
    kernel_call(SYS_futex, &channel->request, FUTEX_WAIT, executor->served);
    channel->sleepers.fetch_sub(1);
  }
  executor->served = channel->request.load(std::memory_order_acquire);
}

// Who made this process makes another one for the execution.
void ask_for_fork() {
  channel->forks_asked.fetch_add(1, std::memory_order_release);
  kernel_call(SYS_futex, &channel->forks_asked, FUTEX_WAKE, INT_MAX);
}

void say_why(const char* why) {
  const size_t room = sizeof channel->forked_because - 1;
  size_t at = 0;
  for (; at < room && why[at] != 0; ++at) {
    channel->forked_because[at] = why[at];
  }
  channel->forked_because[at] = 0;
}

[[noreturn]] void stop(const char* why) {
  say_why(why);
  channel->no_executor.store(1, std::memory_order_release);
  ask_for_fork();
  kernel_call(SYS_exit_group, 0);
  __builtin_unreachable();
}

template <typename T>
void append(uint8_t** at, const T* from, uint32_t count) {
  probe::copy(*at, from, count * sizeof(T));
  *at += count * sizeof(T);
}

// The run that has ended goes to the log, and the next request of the queue takes its place. False:
// there is none, or the explorer has to see this run first.
bool go_on_with_next() {
  Channel& c = *channel;
  const uint32_t taken = at_most(c.taken, kMaxAhead);
  if (taken == at_most(c.queued, kMaxAhead) || taken == kMaxAhead || c.found_count != 0 ||
      c.wrote_errors.load() != 0) {
    return false;
  }
  LoggedRun run{};
  run.end = c.end;
  run.status = c.status;
  run.wait_status = c.wait_status;
  run.step_count = std::min(c.step_count.load(std::memory_order_relaxed), kMaxSteps);
  run.mark_count = at_most(c.mark_count, kMaxMarks);
  run.waiting_count = at_most(c.waiting_count, kMaxThreads + 1);
  run.outcome_bytes = at_most(c.outcome_bytes, kOutcomeBytes);
  run.unsaid = c.unsaid;
  run.cut_waits = c.cut_waits;
  run.freed_compared = c.freed_compared;
  run.fault_pc = c.fault_pc;
  probe::copy(run.detail, c.detail, sizeof run.detail);
  probe::copy(run.not_understood, c.not_understood, sizeof run.not_understood);
  const uint64_t bytes = sizeof run + uint64_t{run.step_count} * sizeof(Step) +
                         uint64_t{run.mark_count} * sizeof(Mark) +
                         uint64_t{run.waiting_count} * sizeof(Waiting) + run.outcome_bytes;
  run.bytes = static_cast<uint32_t>((bytes + alignof(LoggedRun) - 1) & ~(alignof(LoggedRun) - 1));
  const uint32_t used = at_most(c.log_bytes, kLogBytes);
  if (run.bytes > kLogBytes - used) {
    return false;
  }
  uint8_t* at = c.log + used;
  append(&at, &run, 1);
  append(&at, c.steps, run.step_count);
  append(&at, c.marks, run.mark_count);
  append(&at, c.waiting_threads, run.waiting_count);
  append(&at, c.outcomes, run.outcome_bytes);
  c.log_bytes = used + run.bytes;
  const QueuedRequest& next = c.queue[taken];
  c.seed = next.seed;
  c.waiting = next.waiting;
  const uint32_t begin = at_most(next.prefix_begin, kAheadChoices);
  const uint32_t size = at_most(next.prefix_size, std::min(kMaxSteps, kAheadChoices - begin));
  c.prefix_size = size;
  probe::copy(c.prefix, c.queue_choices + begin, size * sizeof(Choice));
  c.taken = taken + 1;
  return true;
}

[[noreturn]] void supervise() {
  if (!begin_system_calls() ||
      !image::begin(image_memory(), {executor->first.thread_pointer, kPthread})) {
    stop("its memory cannot be protected");
  }
  for (;;) {
    executor->begin();
    watch_system_calls(true);
    tsomon_switch(&executor->supervisor, &executor->first);
    watch_system_calls(false);
    bool goes_on = false;
    if (executor->left == Left::kEnded) {
      ++channel->in_place;
      goes_on = go_on_with_next();
      if (!goes_on) {
        answer();
      }
    }
    forget_owners();
    forget_cells();
    image::restore();
    if (executor->left == Left::kNeedsThread) {
      if (!start_thread(executor->needed)) {
        stop("a thread cannot be started");
      }
      continue;
    }
    if (executor->left == Left::kGaveUp) {
      ask_for_fork();
    }
    if (!goes_on) {
      wait_for_request();
    }
  }
}

}  // namespace

bool is_on() { return executor != nullptr; }

void begin(void (*begin_execution)()) {
  if (const char* const why = why_not_watched(); why != nullptr) {
    stop(why);
  }
  executor = static_cast<Executor*>(take_zeroed(sizeof(Executor)));
  take_system_calls();
  keep_cells();
  executor->begin = begin_execution;
  executor->served = channel->request.load(std::memory_order_acquire);
  tsomon_has_wrfsbase = (getauxval(AT_HWCAP2) & kMayUseWrfsbase) != 0 ? 1 : 0;
  asm("movq %%fs:0, %0" : "=r"(executor->first.thread_pointer));
  executor->supervisor.thread_pointer = executor->first.thread_pointer;
  threads[0].context.thread_pointer = executor->first.thread_pointer;
  grow_first_stack();
  // What tsomon_switch() takes off, and where supervise() would return to, which it does not.
  auto* top = reinterpret_cast<uint64_t*>(executor->stack + kStack) - 9;
  top[0] = uint64_t{0x037F} << 32 | 0x1F80;  // what floating-point registers begin with
  top[7] = reinterpret_cast<uint64_t>(&supervise);
  executor->supervisor.stack = reinterpret_cast<uint64_t>(top);
  tsomon_switch(&executor->first, &executor->supervisor);
}

void go_to(uint32_t thread) { tsomon_switch(&threads[self].context, &threads[thread].context); }

void stay() {
  uint64_t all = ~uint64_t{0};
  kernel_call(SYS_rt_sigprocmask, 2, &all, 0, sizeof all);
  tsomon_park(&executor->started[self], &executor->parked[self]);
}

void need_thread(uint32_t number, size_t stack_size) {
  if (!executor->is_started[number]) {
    executor->stack_size[number] = stack_size;
    executor->needed = number;
    leave(Left::kNeedsThread);
  }
  if (executor->stack_size[number] != stack_size) {
    give_up("a thread's stack has another size");
  }
  threads[number].context = executor->started[number];
}

bool map(uint64_t address, uint64_t size) {
  if (image::is_in(address)) {
    return true;
  }
  const long at =
      kernel_call(SYS_mmap, address, size, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (static_cast<uint64_t>(at) != address) {
    return false;
  }
  if (!image::add(address, size)) {
    give_up("it takes too much memory");
  }
  return true;
}

void end() { leave(Left::kEnded); }

void end_by_signal(int number) {
  channel->wait_status = number;
  leave(Left::kEnded);
}

void give_up(const char* why) {
  say_why(why);
  leave(Left::kGaveUp);
}

}  // namespace tsomon::explore::in_place
