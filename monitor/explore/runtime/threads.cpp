// The program's threads: how they begin, end and wait for each other.
#include "monitor/explore/runtime/threads.h"

#include <cerrno>
#include <cstdlib>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "monitor/explore/runtime/in_place.h"
#include "monitor/explore/runtime/scheduler.h"
#include "monitor/probe/real.h"

extern "C" void* __libc_stack_end;

namespace tsomon::explore {
namespace {

constexpr uint64_t kStackBase = 0x200000000000;
constexpr uint64_t kStackStride = uint64_t{1} << 26;
constexpr uint64_t kStackSize = uint64_t{1} << 20;

pthread_key_t end_key;
uint32_t being_started = 0;

void at_end_of_thread(void* rounds) {
  const auto left = reinterpret_cast<uintptr_t>(rounds);
  if (left > 1 && pthread_setspecific(end_key, reinterpret_cast<void*>(left - 1)) == 0) {
    return;
  }
  Operation end;
  end.op = Op::kEnd;
  step(end);
  // Nobody waits for the kernel's thread.
  for (;;) {
    syscall(SYS_pause);
  }
}

void* begin_thread(void* argument) {
  self = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(argument));
  Thread& thread = threads[self];
  thread.stack_end = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  pthread_setspecific(end_key, reinterpret_cast<void*>(uintptr_t{PTHREAD_DESTRUCTOR_ITERATIONS}));
  if (in_place::is_on()) {
    in_place::stay();
  } else {
    wait_for_turn(thread);
  }
  new_step(Op::kBegin);
  publish();
  ++thread.operations;
  thread.result = thread.routine(thread.argument);
  return thread.result;
}

void at_exit(int status, void*) {
  make_stores();
  if (!concurrent || self != 0) {
    finish(status == 0 ? End::kFinished : End::kExited, status);
  }
  if (status != 0) {
    finish(End::kExited, status);
  }
  Operation end;
  end.op = Op::kEnd;
  step(end);
  for (;;) {
    syscall(SYS_pause);
  }
}

}  // namespace

uint32_t this_thread() { return self; }
bool is_concurrent() { return concurrent; }

void begin_threads() {
  // Apart from the rest, which is brought back after each execution: what these hold is told by how
  // many of them there are.
  auto* const buffers =
      static_cast<Buffered*>(take_zeroed(sizeof(Buffered) * kBufferSize * (kMaxThreads + 1)));
  auto* const reads =
      static_cast<LoopRead*>(take_zeroed(sizeof(LoopRead) * kRecent * (kMaxThreads + 1)));
  constexpr uint32_t kAll = kMaxThreads + 1;
  auto* const covered = static_cast<char*>(take_zeroed(kMostPlain * kAll));
  auto* const loads = static_cast<Loaded*>(take_zeroed(sizeof(Loaded) * 2 * kMostPlain * kAll));
  auto* const wakes = static_cast<WakeRead*>(take_zeroed(sizeof(WakeRead) * kWakeReads * kAll));
  for (uint32_t number = 0; number <= kMaxThreads; ++number) {
    threads[number].announced.covered = covered + number * kMostPlain;
    threads[number].loaded = loads + 2 * number * kMostPlain;
    threads[number].loading = threads[number].loaded + kMostPlain;
    threads[number].wake_reads = wakes + number * kWakeReads;
    threads[number].buffer = buffers + number * kBufferSize;
    threads[number].recent = reads + number * kRecent;
  }
  threads[0].exists = true;
  threads[0].handle = pthread_self();
  threads[0].stack_end = reinterpret_cast<uint64_t>(__libc_stack_end);
  active = true;
  pthread_key_create(&end_key, at_end_of_thread);
  on_exit(at_exit, nullptr);
}

int create_thread(pthread_t* handle, const pthread_attr_t* attributes, void* (*routine)(void*),
                  void* argument) {
  if (!concurrent) {
    serve_from_first_thread();
    concurrent = true;
    // From here on the thread is under control.
    threads[0].operations = 0;
  }
  Thread& parent = threads[self];
  const uint32_t child = ++parent.children;
  // The number of the thread is that of the same child of the same thread in other runs.
  uint32_t number = 1;
  while (number <= kMaxThreads && channel->threads[number].child != 0 &&
         (channel->threads[number].parent != self || channel->threads[number].child != child)) {
    ++number;
  }
  if (number > kMaxThreads) {
    end_run(End::kFailed, "more than 63 threads");
  }
  channel->threads[number] = {self, child};
  Operation create;
  create.op = Op::kCreate;
  create.a = number;
  create.pc = 0;
  step(create);
  size_t size = kStackSize;
  if (attributes != nullptr) {
    size_t asked = 0;
    pthread_attr_getstacksize(attributes, &asked);
    size = asked > size && asked < kStackStride / 2 && asked != (size_t{8} << 20) ? asked : size;
  }
  if (in_place::is_on()) {
    in_place::need_thread(number, size);
  }
  Thread& thread = threads[number];
  thread.routine = routine;
  thread.argument = argument;
  thread.pending = {};
  thread.pending.op = Op::kBegin;
  thread.exists = true;
  thread_count = number >= thread_count ? number + 1 : thread_count;
  if (!in_place::is_on() && !start_real_thread(number, size, &thread.handle)) {
    end_run(End::kFailed, "a thread cannot be started");
  }
  *handle = thread.handle;
  return 0;
}

// What the C library allocates for a thread is the thread's, whoever starts it and when.
uint32_t thread_being_started() { return being_started; }

uint64_t stack_begin(uint32_t number) { return kStackBase + number * kStackStride; }

bool start_real_thread(uint32_t number, size_t stack_size, pthread_t* handle) {
  void* const stack =
      mmap(reinterpret_cast<void*>(stack_begin(number)), stack_size, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) {
    return false;
  }
  pthread_attr_t own;
  pthread_attr_init(&own);
  pthread_attr_setstack(&own, stack, stack_size);
  being_started = number;
  const int result = probe::real_pthread_create(handle, &own, begin_thread,
                                                reinterpret_cast<void*>(uintptr_t{number}));
  being_started = 0;
  pthread_attr_destroy(&own);
  return result == 0;
}

bool others_may_run() {
  for (uint32_t number = 0; number < thread_count; ++number) {
    if (number != self && threads[number].exists && threads[number].joined_by != self + 1) {
      return true;
    }
  }
  return false;
}

void set_thread_result(void* value) { threads[self].result = value; }

int join_thread(pthread_t handle, void** value) {
  for (uint32_t number = 0; number < thread_count; ++number) {
    Thread& thread = threads[number];
    if (!thread.exists || thread.joined || pthread_equal(thread.handle, handle) == 0) {
      continue;
    }
    if (number == self) {
      return EDEADLK;
    }
    Operation join;
    join.op = Op::kJoin;
    join.a = number;
    step(join);
    thread.joined = true;
    thread.joined_by = self + 1;
    if (value != nullptr) {
      *value = thread.result;
    }
    return 0;
  }
  return ESRCH;
}

int detach_thread(pthread_t handle) {
  for (uint32_t number = 0; number < thread_count; ++number) {
    if (threads[number].exists && !threads[number].joined &&
        pthread_equal(threads[number].handle, handle) != 0) {
      threads[number].joined = true;
      return 0;
    }
  }
  return ESRCH;
}

// The runtime's own words are in the channel and in the table of threads.
bool controls_futex(long address) {
  const auto at = static_cast<uint64_t>(address);
  const auto table = reinterpret_cast<uint64_t>(threads);
  const auto begin = reinterpret_cast<uint64_t>(channel);
  return !(at >= table && at < table + sizeof threads) &&
         !(at >= begin && at < begin + sizeof(Channel));
}

bool on_stack(uint64_t address, uint64_t from) {
  return address >= from && address < threads[self].stack_end;
}

}  // namespace tsomon::explore
