// Threads: creation, start, end, join.
//
// fork    stamp taken before pthread_create: the child cannot run before it
// begin   first record of the thread, before its start routine
// end     in the last round of the destructors of thread-specific data, after the destructors of
//         C++ thread_local objects; so also for pthread_exit and cancellation. When the last
//         thread of the program ends so, and not the process with it, the process is ended here:
//         the C library would wait for the runtime's own thread
// join    stamp taken after the join returned
// Missed: threads made by clone(2) directly.
#include <climits>
#include <cstdlib>

#include "monitor/probe/handover.h"
#include "monitor/probe/patterns.h"
#include "monitor/probe/real.h"

TSOMON_REAL(pthread_join)
TSOMON_REAL(pthread_detach)
TSOMON_REAL(pthread_tryjoin_np)
TSOMON_REAL(pthread_timedjoin_np)

namespace tsomon::probe {
namespace {

struct Start {
  void* (*routine)(void*);
  void* argument;
  Thread* thread;
};

pthread_key_t end_key;
bool end_key_made = false;
std::atomic<int64_t> running{1};  // threads of the program; the first one is there

void at_thread_end(void* rounds) {
  const auto left = reinterpret_cast<uintptr_t>(rounds);
  if (left > 1 && pthread_setspecific(end_key, reinterpret_cast<void*>(left - 1)) == 0) {
    return;
  }
  // Nobody may ever join it.
  if (local.thread != nullptr) {
    drain_before_sleeping(0);
  }
  end_thread();
  leave_calls();
  leave_alternate_stack();
  if (running.fetch_sub(1, std::memory_order_acq_rel) == 1 && recording) {
    std::exit(0);
  }
}

void end_with_destructors() {
  if (end_key_made) {
    pthread_setspecific(end_key, reinterpret_cast<void*>(uintptr_t{PTHREAD_DESTRUCTOR_ITERATIONS}));
  }
}

void* run(void* data) {
  const Start start = *static_cast<Start*>(data);
  std::free(data);
  end_with_destructors();
  use_alternate_stack();
  begin_thread(start.thread);
  return start.routine(start.argument);
}

// The thread that was started with this handle and has not been joined.
Thread* find(pthread_t handle) {
  if (!recording) {
    return nullptr;
  }
  for (Thread* thread = threads(); thread != nullptr; thread = thread->next) {
    if (!thread->gone && pthread_equal(thread->handle, handle) != 0) {
      return thread;
    }
  }
  return nullptr;
}

void joined(Thread* thread, uint64_t pc) {
  if (thread != nullptr) {
    thread->gone = true;
    put_point_now(RecordType::kJoin, thread->number, pc);
  }
}

}  // namespace

void prepare_threads() {
  end_key_made = pthread_key_create(&end_key, at_thread_end) == 0;
  end_with_destructors();
}

void count_threads_after_fork() { running.store(1, std::memory_order_relaxed); }

}  // namespace tsomon::probe

using namespace tsomon::probe;

TSOMON_HOOK int pthread_create(pthread_t* handle, const pthread_attr_t* attributes,
                               void* (*routine)(void*), void* argument) {
  start();
  if (!recording || local.off) {
    return real_pthread_create(handle, attributes, routine, argument);
  }
  activate();
  auto* const data = static_cast<Start*>(std::malloc(sizeof(Start)));
  if (data == nullptr) {
    return EAGAIN;
  }
  Thread* const thread = new_thread();
  *data = {routine, argument, thread};
  bool detached = false;
  if (attributes != nullptr) {
    int state = 0;
    pthread_attr_getdetachstate(attributes, &state);
    detached = state == PTHREAD_CREATE_DETACHED;
  }
  // Recorded before the call: the allocator that it may use can be instrumented. If it fails, the
  // capture has a thread without events.
  if (thread != nullptr) {
    put_point_now(RecordType::kFork, thread->number, TSOMON_PC());
  }
  running.fetch_add(1, std::memory_order_relaxed);
  const int result = real_pthread_create(handle, attributes, run, data);
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
  Thread* const thread = find(handle);
  drain_before_sleeping(TSOMON_PC());
  const int result = real_pthread_join(handle, value);
  if (result == 0) {
    joined(thread, TSOMON_PC());
  }
  return result;
}

TSOMON_HOOK int pthread_tryjoin_np(pthread_t handle, void** value) {
  Thread* const thread = find(handle);
  const int result = real_pthread_tryjoin_np(handle, value);
  if (result == 0) {
    joined(thread, TSOMON_PC());
  }
  return result;
}

TSOMON_HOOK int pthread_timedjoin_np(pthread_t handle, void** value, const timespec* time) {
  Thread* const thread = find(handle);
  const int result = real_pthread_timedjoin_np(handle, value, time);
  if (result == 0) {
    joined(thread, TSOMON_PC());
  }
  return result;
}

TSOMON_HOOK int pthread_detach(pthread_t handle) {
  Thread* const thread = find(handle);
  const int result = real_pthread_detach(handle);
  if (result == 0 && thread != nullptr) {
    thread->gone = true;
  }
  return result;
}
