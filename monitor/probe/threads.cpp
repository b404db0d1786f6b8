// Threads: creation, start, end, join.
//
// fork    stamp taken before pthread_create: the child cannot run before it, and has larger stamps
// begin   first record of the thread, before its start routine. Signals are blocked until then: the
//         thread has nowhere to record what a handler does
// end     in the last round of the destructors of thread-specific data, as the last of those whose
//         keys lie in the C library's first block, and after the destructors of C++ thread_local
//         objects; so also for pthread_exit and cancellation. Signals stay blocked from there on;
//         what hooks still come are counted as lost. When the last thread of the program ends so,
//         and not the process with it, the process is ended here: the C library would wait for the
//         runtime's own thread
// join    stamp taken after the join returned, larger than those of the thread
// Missed: threads made by clone(2) directly.
#include <cerrno>
#include <climits>
#include <cstdlib>

#include <sched.h>

#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/blocks.h"
#include "monitor/probe/chunk_writer.h"
#include "monitor/probe/function_units.h"
#include "monitor/probe/guard.h"
#include "monitor/probe/real.h"
#include "monitor/probe/recorded_threads.h"
#include "monitor/probe/slices.h"

TSOMON_REAL(pthread_detach)
TSOMON_REAL(pthread_tryjoin_np)
TSOMON_REAL(pthread_timedjoin_np)

namespace tsomon::probe {
namespace {

struct Start {
  void* (*routine)(void*);
  void* argument;
  Thread* thread;
  sigset_t mask;   // with which the routine begins
  bool own_stack;  // one that the caller has given it
};

// The C library keeps the data of so many keys in the thread itself and allocates memory for the
// others. In each round it goes through the keys in ascending order.
constexpr pthread_key_t kLastOfFirstBlock = 31;

pthread_key_t end_key;
bool end_key_made = false;
std::atomic<int64_t> running{1};  // threads of the program; the first one is there

void block_signals(sigset_t* before) {
  sigset_t all;
  sigfillset(&all);
  real_pthread_sigmask(SIG_SETMASK, &all, before);
}

// The stack of the thread, with its thread-local storage, which the next thread may get. One that
// the program has given it is a block of the program's, or a part of one.
__thread struct {
  uint64_t begin = 0;
  uint64_t size = 0;  // 0: not known
} stack;

void find_stack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) {
    return;
  }
  void* begin = nullptr;
  size_t size = 0;
  if (pthread_attr_getstack(&attributes, &begin, &size) == 0) {
    stack.begin = reinterpret_cast<uint64_t>(begin);
    stack.size = size;
  }
  pthread_attr_destroy(&attributes);
}

bool stack_is_block() { return stack.size != 0 && !options.only_sets; }

void at_thread_end(void* rounds) {
  const auto left = reinterpret_cast<uintptr_t>(rounds);
  if (left > 1 && pthread_setspecific(end_key, reinterpret_cast<void*>(left - 1)) == 0) {
    return;
  }
  if (stack_is_block()) {
    block_ends(stack.begin, stack.size, 0);
  }
  // Nobody may ever join it.
  if (local.thread != nullptr) {
    drain_before_sleeping(0);
  }
  if (running.fetch_sub(1, std::memory_order_acq_rel) == 1 && (recording || controlled)) {
    std::exit(0);  // what its functions do is this thread's
  }
  block_signals(nullptr);
  end_thread();
  leave_calls();
  leave_alternate_stack();
}

void end_with_destructors() {
  if (end_key_made) {
    pthread_setspecific(end_key, reinterpret_cast<void*>(uintptr_t{PTHREAD_DESTRUCTOR_ITERATIONS}));
  }
}

void* run(void* data) {
  const Start start = *static_cast<Start*>(data);
  end_with_destructors();
  use_alternate_stack();
  if (!start.own_stack) {
    find_stack();
  }
  begin_thread(start.thread);
  if (stack_is_block()) {
    block_begins(stack.begin, stack.size, 0);
  }
  std::free(data);  // the allocator may be the program's
  real_pthread_sigmask(SIG_SETMASK, &start.mask, nullptr);
  return start.routine(start.argument);
}

// Without a stack of the caller the end of the stack is 0.
bool has_own_stack(const pthread_attr_t* attributes) {
  void* stack = nullptr;
  size_t size = 0;
  return pthread_attr_getstack(attributes, &stack, &size) == 0 &&
         reinterpret_cast<uint64_t>(stack) + size != 0;
}

// The attributes of a new thread, but for the signal mask: all are blocked.
class Attributes {
 public:
  // `mask`: of the thread that creates, then the one that the new thread shall have.
  Attributes(const pthread_attr_t* given, sigset_t* mask) : used_(given) {
    sigset_t wanted;
    if (given == nullptr ||
        pthread_attr_getsigmask_np(given, &wanted) == PTHREAD_ATTR_NO_SIGMASK_NP) {
      return;  // it is inherited
    }
    *mask = wanted;
    sigset_t all;
    sigfillset(&all);
    used_ = &own_;
    is_own_ = pthread_attr_init(&own_) == 0;
    complete_ = is_own_ && copy(given) && pthread_attr_setsigmask_np(&own_, &all) == 0;
  }
  ~Attributes() {
    if (is_own_) {
      pthread_attr_destroy(&own_);
    }
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  const pthread_attr_t* get() const { return used_; }
  bool complete() const { return complete_; }

 private:
  bool copy(const pthread_attr_t* given) {
    int number = 0;
    size_t size = 0;
    void* stack = nullptr;
    bool done = pthread_attr_getdetachstate(given, &number) == 0 &&
                pthread_attr_setdetachstate(&own_, number) == 0 &&
                pthread_attr_getguardsize(given, &size) == 0 &&
                pthread_attr_setguardsize(&own_, size) == 0 &&
                pthread_attr_getstacksize(given, &size) == 0 &&
                pthread_attr_setstacksize(&own_, size) == 0;
    if (has_own_stack(given)) {
      done = done && pthread_attr_getstack(given, &stack, &size) == 0 &&
             pthread_attr_setstack(&own_, stack, size) == 0;
    }
    if (pthread_attr_getinheritsched(given, &number) == 0 && number == PTHREAD_EXPLICIT_SCHED) {
      sched_param parameters{};
      int policy = 0;
      done = done && pthread_attr_setinheritsched(&own_, number) == 0 &&
             pthread_attr_getschedpolicy(given, &policy) == 0 &&
             pthread_attr_setschedpolicy(&own_, policy) == 0 &&
             pthread_attr_getschedparam(given, &parameters) == 0 &&
             pthread_attr_setschedparam(&own_, &parameters) == 0;
    }
    cpu_set_t processors[8];
    // All of them when none were chosen.
    done = done && pthread_attr_getaffinity_np(given, sizeof processors, processors) == 0;
    if (done && CPU_COUNT_S(sizeof processors, processors) != 8 * sizeof processors) {
      done = pthread_attr_setaffinity_np(&own_, sizeof processors, processors) == 0;
    }
    return done;
  }

  pthread_attr_t own_;
  const pthread_attr_t* used_;
  bool is_own_ = false;
  bool complete_ = true;
};

// The thread that was started with this handle and has not been joined.
struct Found {
  Thread* thread = nullptr;
  uint32_t life = 0;  // it is another thread's once this has changed
};
Found find(pthread_t handle) {
  if (!recording) {
    return {};
  }
  const Guard guard(&threads_lock);
  for (Thread* thread = threads(); thread != nullptr; thread = thread->next) {
    if (!thread->gone && pthread_equal(thread->handle, handle) != 0) {
      return {thread, thread->life};
    }
  }
  return {};
}

void joined(const Found& found, uint64_t pc) {
  Thread* const thread = found.thread;
  if (thread == nullptr || thread->life != found.life) {
    return;
  }
  thread->gone = true;
  if (takes_part(thread)) {
    put_point_after(RecordType::kJoin, thread->number, pc, thread->ended);
  }
}

}  // namespace

void prepare_threads() {
  // The destructor comes after those of the program's keys: that of the last key in the block.
  pthread_key_t below[kLastOfFirstBlock];
  size_t count = 0;
  while ((end_key_made = pthread_key_create(&end_key, at_thread_end) == 0) &&
         end_key < kLastOfFirstBlock && count < kLastOfFirstBlock) {
    below[count++] = end_key;
  }
  while (count != 0) {
    pthread_key_delete(below[--count]);
  }
  end_with_destructors();
}

void count_threads_after_fork() { running.store(1, std::memory_order_relaxed); }

}  // namespace tsomon::probe

using namespace tsomon::probe;

TSOMON_HOOK int pthread_create(pthread_t* handle, const pthread_attr_t* attributes,
                               void* (*routine)(void*), void* argument) {
  start();
  if (TSOMON_UNLIKELY(tsomon::explore::active)) {
    return tsomon::explore::create_thread(handle, attributes, routine, argument);
  }
  if (!(recording || controlled) || (local.off && local.thread == nullptr)) {
    return real_pthread_create(handle, attributes, routine, argument);
  }
  activate(0);
  auto* const data = static_cast<Start*>(std::malloc(sizeof(Start)));
  if (data == nullptr) {
    return EAGAIN;
  }
  Thread* const thread = new_thread();
  *data = {routine, argument, thread, {}, false};
  bool detached = false;
  if (attributes != nullptr) {
    int state = 0;
    pthread_attr_getdetachstate(attributes, &state);
    detached = state == PTHREAD_CREATE_DETACHED;
    data->own_stack = has_own_stack(attributes);
  }
  // Recorded before the call: the allocator that it may use can be instrumented. If it fails, the
  // capture has a thread without events.
  if (thread != nullptr) {
    thread->began = put_point_now(RecordType::kFork, thread->number, TSOMON_PC()) + 1;
  } else if (local.thread != nullptr) {
    count_lost();
  }
  running.fetch_add(1, std::memory_order_relaxed);
  sigset_t mask;
  block_signals(&mask);
  data->mask = mask;
  int result = EAGAIN;
  if (const Attributes blocking(attributes, &data->mask); blocking.complete()) {
    result = real_pthread_create(handle, blocking.get(), run, data);
  }
  real_pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  if (result != 0) {
    running.fetch_sub(1, std::memory_order_relaxed);
    std::free(data);
    abandon_thread(thread);
    return result;
  }
  if (thread != nullptr) {
    if (detached) {
      thread->gone = true;
    } else {
      thread->handle = *handle;
    }
  }
  return 0;
}

TSOMON_HOOK int pthread_join(pthread_t handle, void** value) {
  if (TSOMON_UNLIKELY(tsomon::explore::active)) {
    return tsomon::explore::join_thread(handle, value);
  }
  const Found thread = find(handle);
  drain_before_sleeping(TSOMON_PC());
  const bool waits = thread.thread != nullptr && local.thread != nullptr;
  if (waits) {
    put_request(tsomon::Waited::kThread, thread.thread->number, TSOMON_PC());
  }
  const int result = real_pthread_join(handle, value);
  if (result == 0) {
    joined(thread, TSOMON_PC());
  } else if (waits) {
    requested_in_vain(TSOMON_PC());
  }
  return result;
}

TSOMON_HOOK int pthread_tryjoin_np(pthread_t handle, void** value) {
  if (TSOMON_UNLIKELY(tsomon::explore::active)) {
    tsomon::explore::refuse("pthread_tryjoin_np");
  }
  const Found thread = find(handle);
  const int result = real_pthread_tryjoin_np(handle, value);
  if (result == 0) {
    joined(thread, TSOMON_PC());
  }
  return result;
}

TSOMON_HOOK int pthread_timedjoin_np(pthread_t handle, void** value, const timespec* time) {
  if (TSOMON_UNLIKELY(tsomon::explore::active)) {
    tsomon::explore::refuse("pthread_timedjoin_np");
  }
  const Found thread = find(handle);
  const int result = real_pthread_timedjoin_np(handle, value, time);
  if (result == 0) {
    joined(thread, TSOMON_PC());
  }
  return result;
}

TSOMON_HOOK int pthread_detach(pthread_t handle) {
  if (TSOMON_UNLIKELY(tsomon::explore::active)) {
    return tsomon::explore::detach_thread(handle);
  }
  const Found found = find(handle);
  const int result = real_pthread_detach(handle);
  if (result == 0 && found.thread != nullptr && found.thread->life == found.life) {
    found.thread->gone = true;
  }
  return result;
}
