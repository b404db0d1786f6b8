// Orders that clang's library for OpenMP (libomp) makes, which tells a tool of them.
//
// Records     As openmp.cpp, which has what excludes: a tool is told of a release when others may have
//             acquired already.
// Start       libomp calls ompt_start_tool when it starts, and what that names then. A program that has
//             a tool of its own keeps it: the function is weak.
// Misses      What only the dependences of tasks order more exactly than their making does; targets.
// Source      OpenMP API Specification 5.1, chapter 4 (OMPT Interface).
// Thread-safety: as the callbacks.
#include <cstdint>

#include "monitor/probe/records.h"
#include "monitor/probe/runtime.h"

using namespace tsomon::probe;

namespace {

// What is used of omp-tools.h.
enum Endpoint : int { kBegin = 1, kEnd = 2, kBoth = 3 };
enum Event : int {
  kParallelBegin = 3,
  kParallelEnd = 4,
  kTaskCreate = 5,
  kTaskSchedule = 6,
  kImplicitTask = 7,
  kSyncRegion = 23,
  kReduction = 31,
};
constexpr int kTaskCompleted = 1;
using Callback = void (*)();
using SetCallback = int (*)(int event, Callback callback);
using Lookup = Callback (*)(const char* name);
struct Tool {
  int (*initialize)(Lookup lookup, int device, void* data);
  void (*finalize)(void* data);
  uint64_t data;
};

// What several share has its address here.
enum Shared { kRegion, kRegionDone, kBarrier, kTaskMade, kTaskDone, kAll };
char shared[kAll];
uint64_t channel(Shared one) { return reinterpret_cast<uint64_t>(&shared[one]); }
uint64_t pc_of(const void* code) { return reinterpret_cast<uint64_t>(code); }

void parallel_begin(void*, const void*, void*, unsigned, int, const void* code) {
  put_send(channel(kRegion), pc_of(code));
}
void parallel_end(void*, void*, int, const void* code) {
  put_receive(channel(kRegionDone), pc_of(code));
}
void implicit_task(int endpoint, void*, void*, unsigned, unsigned, int) {
  if (endpoint == kBegin) {
    put_receive(channel(kRegion), 0);
  } else {
    put_send(channel(kRegionDone), 0);
  }
}
void sync_region(int, int endpoint, void*, void*, const void* code) {
  if (endpoint != kEnd) {
    put_send(channel(kBarrier), pc_of(code));
  }
  if (endpoint != kBegin) {
    put_receive(channel(kBarrier), pc_of(code));
    put_receive(channel(kTaskDone), pc_of(code));
  }
}
// Before what others have added up is looked at, in the middle of a barrier.
void reduction(int, int endpoint, void*, void*, const void* code) {
  if (endpoint == kBegin) {
    put_receive(channel(kBarrier), pc_of(code));
  } else {
    put_send(channel(kBarrier), pc_of(code));
  }
}
void task_create(void*, const void*, void*, int, int, const void* code) {
  put_send(channel(kTaskMade), pc_of(code));
}
void task_schedule(void*, int status, void*) {
  if (status == kTaskCompleted) {
    put_send(channel(kTaskDone), 0);
  }
  put_receive(channel(kTaskMade), 0);
}

template <typename Function>
Callback as_callback(Function* function) {
  return reinterpret_cast<Callback>(function);
}

int initialize(Lookup lookup, int, void*) {
  const auto set = reinterpret_cast<SetCallback>(lookup("ompt_set_callback"));
  if (set == nullptr) {
    return 0;
  }
  set(kParallelBegin, as_callback(parallel_begin));
  set(kParallelEnd, as_callback(parallel_end));
  set(kImplicitTask, as_callback(implicit_task));
  set(kSyncRegion, as_callback(sync_region));
  set(kReduction, as_callback(reduction));
  set(kTaskCreate, as_callback(task_create));
  set(kTaskSchedule, as_callback(task_schedule));
  return 1;
}
void finalize(void*) {}

Tool tool = {initialize, finalize, 0};

}  // namespace

TSOMON_HOOK void* ompt_start_tool(unsigned, const char*) {
  return recording ? static_cast<void*>(&tool) : nullptr;
}
