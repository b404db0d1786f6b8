// Orders that the libraries for OpenMP make: their barriers and locks are their own, and no hook is in them.
//
// Records     Sends and receives (descriptors.h): of a parallel region between who starts it and those
//             that run it, and back; at barriers and the ends of work that is shared; of critical and ordered sections,
//             of locks; of a task between who made it and who runs it, and from there to who waits for it.
// More        is ordered than there is: tasks by all that were made before, barriers of several teams,
//             critical sections in the order in which they ran.
// clang       What excludes in its library (libomp); the rest is in openmp_tool.cpp.
// Misses      Barriers and loops that can be cancelled, taskloop, doacross, what runs on devices.
// Source      libgomp's interface, GCC 12 (libgomp_g.h, omp.h); libomp's, LLVM 14 (kmp.h).
// Thread-safety: as the functions.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "monitor/probe/real.h"
#include "monitor/probe/records.h"
#include "monitor/probe/runtime.h"

using namespace tsomon::probe;

extern "C" {
using Body = void (*)(void*);
using Copy = void (*)(void*, void*);
void GOMP_parallel(Body body, void* data, unsigned threads, unsigned flags);
unsigned GOMP_parallel_reductions(Body body, void* data, unsigned threads, unsigned flags);
void GOMP_parallel_sections(Body body, void* data, unsigned threads, unsigned count,
                            unsigned flags);
#define TSOMON_LOOP(NAME) \
  void NAME(Body body, void* data, unsigned threads, long, long, long, long, unsigned flags);
#define TSOMON_RUNTIME_LOOP(NAME) \
  void NAME(Body body, void* data, unsigned threads, long, long, long, unsigned flags);
TSOMON_LOOP(GOMP_parallel_loop_static)
TSOMON_LOOP(GOMP_parallel_loop_dynamic)
TSOMON_LOOP(GOMP_parallel_loop_guided)
TSOMON_LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
TSOMON_LOOP(GOMP_parallel_loop_nonmonotonic_guided)
TSOMON_RUNTIME_LOOP(GOMP_parallel_loop_runtime)
TSOMON_RUNTIME_LOOP(GOMP_parallel_loop_nonmonotonic_runtime)
TSOMON_RUNTIME_LOOP(GOMP_parallel_loop_maybe_nonmonotonic_runtime)
#undef TSOMON_LOOP
#undef TSOMON_RUNTIME_LOOP
void GOMP_barrier();
void GOMP_loop_end();
void GOMP_sections_end();
void GOMP_taskwait();
void GOMP_taskgroup_end();
void GOMP_critical_start();
void GOMP_critical_end();
void GOMP_critical_name_start(void** name);
void GOMP_critical_name_end(void** name);
void GOMP_atomic_start();
void GOMP_atomic_end();
void GOMP_ordered_start();
void GOMP_ordered_end();
void* GOMP_single_copy_start();
void GOMP_single_copy_end(void* data);
void GOMP_task(Body body, void* data, Copy copy, long size, long align, bool deferred,
               unsigned flags, void** depend, int priority, void* detach);
void __kmpc_critical(void* place, int thread, void* lock);
void __kmpc_critical_with_hint(void* place, int thread, void* lock, unsigned hint);
void __kmpc_end_critical(void* place, int thread, void* lock);
void __kmpc_ordered(void* place, int thread);
void __kmpc_end_ordered(void* place, int thread);
int __kmpc_reduce(void* place, int thread, int count, size_t size, void* data, Copy add,
                  void* lock);
int __kmpc_reduce_nowait(void* place, int thread, int count, size_t size, void* data, Copy add,
                         void* lock);
void __kmpc_end_reduce(void* place, int thread, void* lock);
void __kmpc_end_reduce_nowait(void* place, int thread, void* lock);
void omp_set_lock(void* lock);
void omp_unset_lock(void* lock);
int omp_test_lock(void* lock);
void omp_set_nest_lock(void* lock);
void omp_unset_nest_lock(void* lock);
int omp_test_nest_lock(void* lock);
}

namespace {

uint64_t channel(const void* at) { return reinterpret_cast<uint64_t>(at); }

// What several share has its address here.
enum Shared { kBarrier, kCritical, kAtomic, kOrdered, kSingle, kTaskMade, kTaskDone, kAll };
char shared[kAll];
uint64_t channel(Shared one) { return channel(&shared[one]); }

// A parallel region: lives until all threads have left it.
struct Region {
  Body body;
  void* data;
  char begun;
  char ended;
};

void run_region(void* region) {
  auto* const one = static_cast<Region*>(region);
  put_receive(channel(&one->begun), TSOMON_PC());
  one->body(one->data);
  put_send(channel(&one->ended), TSOMON_PC());
}

template <typename Call>
auto in_region(Body body, void* data, uint64_t pc, Call call) {
  Region region{body, data, 0, 0};
  put_send(channel(&region.begun), pc);
  struct Ended {
    Region& region;
    uint64_t pc;
    ~Ended() { put_receive(channel(&region.ended), pc); }
  } const ended{region, pc};
  return call(&region);
}

// In front of the data of a task, which begins `offset` behind it.
struct Task {
  Body body;
  Copy copy;
  void* data;  // that `copy` copies
  size_t offset;
};

void run_task(void* task) {
  const Task one = *static_cast<Task*>(task);
  put_receive(channel(kTaskMade), TSOMON_PC());
  one.body(static_cast<char*>(task) + one.offset);
  put_send(channel(kTaskDone), TSOMON_PC());
}

void copy_task(void* to, void* from) {
  const auto* const task = static_cast<Task*>(from);
  std::memcpy(to, from, sizeof *task);
  task->copy(static_cast<char*>(to) + task->offset, task->data);
}

template <typename Call>
void meets(uint64_t pc, Call call) {
  put_send(channel(kBarrier), pc);
  call();
  put_receive(channel(kBarrier), pc);
  put_receive(channel(kTaskDone), pc);
}

}  // namespace

#define TSOMON_REGION(RESULT, NAME, PARAMETERS, ARGUMENTS)                   \
  TSOMON_REAL(NAME)                                                          \
  TSOMON_HOOK RESULT NAME PARAMETERS {                                       \
    return in_region(body, data, TSOMON_PC(),                                \
                     [=](Region* region) { return real_##NAME ARGUMENTS; }); \
  }
#define TSOMON_LOOP(NAME)                                                                  \
  TSOMON_REGION(void, NAME,                                                                \
                (Body body, void* data, unsigned threads, long start, long end, long step, \
                 long chunk, unsigned flags),                                              \
                (run_region, static_cast<void*>(region), threads, start, end, step, chunk, flags))
#define TSOMON_RUNTIME_LOOP(NAME)                                                                 \
  TSOMON_REGION(                                                                                  \
      void, NAME,                                                                                 \
      (Body body, void* data, unsigned threads, long start, long end, long step, unsigned flags), \
      (run_region, static_cast<void*>(region), threads, start, end, step, flags))
TSOMON_REGION(void, GOMP_parallel, (Body body, void* data, unsigned threads, unsigned flags),
              (run_region, static_cast<void*>(region), threads, flags))
TSOMON_REGION(unsigned, GOMP_parallel_reductions,
              (Body body, void* data, unsigned threads, unsigned flags),
              (run_region, static_cast<void*>(region), threads, flags))
TSOMON_REGION(void, GOMP_parallel_sections,
              (Body body, void* data, unsigned threads, unsigned count, unsigned flags),
              (run_region, static_cast<void*>(region), threads, count, flags))
TSOMON_LOOP(GOMP_parallel_loop_static)
TSOMON_LOOP(GOMP_parallel_loop_dynamic)
TSOMON_LOOP(GOMP_parallel_loop_guided)
TSOMON_LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
TSOMON_LOOP(GOMP_parallel_loop_nonmonotonic_guided)
TSOMON_RUNTIME_LOOP(GOMP_parallel_loop_runtime)
TSOMON_RUNTIME_LOOP(GOMP_parallel_loop_nonmonotonic_runtime)
TSOMON_RUNTIME_LOOP(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

#define TSOMON_MEETS(NAME)                     \
  TSOMON_REAL(NAME)                            \
  TSOMON_HOOK void NAME() {                    \
    meets(TSOMON_PC(), [] { real_##NAME(); }); \
  }
TSOMON_MEETS(GOMP_barrier)
TSOMON_MEETS(GOMP_loop_end)
TSOMON_MEETS(GOMP_sections_end)
TSOMON_MEETS(GOMP_taskwait)
TSOMON_MEETS(GOMP_taskgroup_end)

#define TSOMON_ENTERS(NAME, PARAMETERS, ARGUMENTS, CHANNEL) \
  TSOMON_REAL(NAME)                                         \
  TSOMON_HOOK void NAME PARAMETERS {                        \
    real_##NAME ARGUMENTS;                                  \
    put_receive(channel(CHANNEL), TSOMON_PC());             \
  }
#define TSOMON_LEAVES(NAME, PARAMETERS, ARGUMENTS, CHANNEL) \
  TSOMON_REAL(NAME)                                         \
  TSOMON_HOOK void NAME PARAMETERS {                        \
    put_send(channel(CHANNEL), TSOMON_PC());                \
    real_##NAME ARGUMENTS;                                  \
  }
#define TSOMON_TRIES(NAME)                     \
  TSOMON_REAL(NAME)                            \
  TSOMON_HOOK int NAME(void* lock) {           \
    const int result = real_##NAME(lock);      \
    if (result != 0) {                         \
      put_receive(channel(lock), TSOMON_PC()); \
    }                                          \
    return result;                             \
  }
TSOMON_ENTERS(GOMP_critical_start, (), (), kCritical)
TSOMON_LEAVES(GOMP_critical_end, (), (), kCritical)
TSOMON_ENTERS(GOMP_critical_name_start, (void** name), (name), name)
TSOMON_LEAVES(GOMP_critical_name_end, (void** name), (name), name)
TSOMON_ENTERS(GOMP_atomic_start, (), (), kAtomic)
TSOMON_LEAVES(GOMP_atomic_end, (), (), kAtomic)
TSOMON_ENTERS(GOMP_ordered_start, (), (), kOrdered)
TSOMON_LEAVES(GOMP_ordered_end, (), (), kOrdered)
TSOMON_ENTERS(__kmpc_critical, (void* place, int thread, void* lock), (place, thread, lock), lock)
TSOMON_ENTERS(__kmpc_critical_with_hint, (void* place, int thread, void* lock, unsigned hint),
              (place, thread, lock, hint), lock)
TSOMON_LEAVES(__kmpc_end_critical, (void* place, int thread, void* lock), (place, thread, lock),
              lock)
TSOMON_ENTERS(__kmpc_ordered, (void* place, int thread), (place, thread), kOrdered)
TSOMON_LEAVES(__kmpc_end_ordered, (void* place, int thread), (place, thread), kOrdered)
TSOMON_LEAVES(__kmpc_end_reduce, (void* place, int thread, void* lock), (place, thread, lock), lock)
TSOMON_LEAVES(__kmpc_end_reduce_nowait, (void* place, int thread, void* lock),
              (place, thread, lock), lock)
#define TSOMON_REDUCES(NAME)                                                                  \
  TSOMON_REAL(NAME)                                                                           \
  TSOMON_HOOK int NAME(void* place, int thread, int count, size_t size, void* data, Copy add, \
                       void* lock) {                                                          \
    const int result = real_##NAME(place, thread, count, size, data, add, lock);              \
    put_receive(channel(lock), TSOMON_PC());                                                  \
    return result;                                                                            \
  }
TSOMON_REDUCES(__kmpc_reduce)
TSOMON_REDUCES(__kmpc_reduce_nowait)
TSOMON_ENTERS(omp_set_lock, (void* lock), (lock), lock)
TSOMON_LEAVES(omp_unset_lock, (void* lock), (lock), lock)
TSOMON_TRIES(omp_test_lock)
TSOMON_ENTERS(omp_set_nest_lock, (void* lock), (lock), lock)
TSOMON_LEAVES(omp_unset_nest_lock, (void* lock), (lock), lock)
TSOMON_TRIES(omp_test_nest_lock)

TSOMON_REAL(GOMP_single_copy_start)
TSOMON_HOOK void* GOMP_single_copy_start() {
  void* const data = real_GOMP_single_copy_start();
  put_receive(channel(kSingle), TSOMON_PC());
  return data;
}
TSOMON_LEAVES(GOMP_single_copy_end, (void* data), (data), kSingle)

TSOMON_REAL(GOMP_task)
TSOMON_HOOK void GOMP_task(Body body, void* data, Copy copy, long size, long align, bool deferred,
                           unsigned flags, void** depend, int priority, void* detach) {
  constexpr long kMost = 4096;
  if (local.thread == nullptr || size < 0 || size > kMost || align > 64) {
    real_GOMP_task(body, data, copy, size, align, deferred, flags, depend, priority, detach);
    return;
  }
  put_send(channel(kTaskMade), TSOMON_PC());
  alignas(64) char room[sizeof(Task) + 64 + kMost];
  const auto step = static_cast<size_t>(std::max<long>(align, alignof(Task)));
  const size_t offset = (sizeof(Task) + step - 1) / step * step;
  const Task task{body, copy, data, offset};
  std::memcpy(room, &task, sizeof task);
  if (copy == nullptr) {
    std::memcpy(room + offset, data, static_cast<size_t>(size));
  }
  real_GOMP_task(run_task, room, copy == nullptr ? nullptr : copy_task,
                 static_cast<long>(offset) + size, static_cast<long>(step), deferred, flags, depend,
                 priority, detach);
}
