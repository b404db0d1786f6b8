// Dynamic annotations: the functions that valgrind's and ThreadSanitizer's users call.
//
// Those that say what ThreadSanitizer's interface says mean the same (tsan_interface.cpp); those
// about races say what is not to be reported; those that ThreadSanitizer does nothing for either mean
// nothing. All are weak:
// many programs bring empty ones.
#include "monitor/probe/operation.h"

using namespace tsomon::probe;

#define TSOMON_ANNOTATION(NAME, ...) \
  TSOMON_HOOK void NAME(const char*, int __VA_OPT__(, ) __VA_ARGS__)

// Orders that the program promises.
TSOMON_ANNOTATION(AnnotateHappensBefore, const volatile void* object) {
  put_promise(object, TSOMON_PC());
}
TSOMON_ANNOTATION(AnnotateHappensAfter, const volatile void* object) {
  put_promised(object, TSOMON_PC());
}
TSOMON_ANNOTATION(WTFAnnotateHappensBefore, const volatile void* object) {
  put_promise(object, TSOMON_PC());
}
TSOMON_ANNOTATION(WTFAnnotateHappensAfter, const volatile void* object) {
  put_promised(object, TSOMON_PC());
}

// Locks.
TSOMON_ANNOTATION(AnnotateRWLockCreate, const volatile void*) {}
TSOMON_ANNOTATION(AnnotateRWLockCreateStatic, const volatile void*) {}
TSOMON_ANNOTATION(AnnotateRWLockDestroy, const volatile void*) {}
TSOMON_ANNOTATION(AnnotateRWLockAcquired, const volatile void* lock, long is_writer) {
  lock_acquired(lock, is_writer == 0, TSOMON_PC());
}
TSOMON_ANNOTATION(AnnotateRWLockReleased, const volatile void* lock, long is_writer) {
  lock_released(lock, is_writer == 0, TSOMON_PC());
}

TSOMON_ANNOTATION(AnnotateThreadName, const char* name) {
  if (local.thread != nullptr && name != nullptr) {
    name_thread(local.thread, name);
  }
}

// What is not to be reported. It is recorded: other analyses need it (tso/model/channels.h).
TSOMON_ANNOTATION(AnnotateIgnoreReadsBegin) {
  ++local.ignored_loads;
  put_ignored(TSOMON_PC());
}
TSOMON_ANNOTATION(AnnotateIgnoreReadsEnd) {
  local.ignored_loads -= local.ignored_loads != 0 ? 1 : 0;
  put_ignored(TSOMON_PC());
}
TSOMON_ANNOTATION(AnnotateIgnoreWritesBegin) {
  ++local.ignored_stores;
  put_ignored(TSOMON_PC());
}
TSOMON_ANNOTATION(AnnotateIgnoreWritesEnd) {
  local.ignored_stores -= local.ignored_stores != 0 ? 1 : 0;
  put_ignored(TSOMON_PC());
}
TSOMON_ANNOTATION(AnnotateBenignRace, const volatile void* object, const char*) {
  put_benign(reinterpret_cast<uint64_t>(object), 8, TSOMON_PC());
}
TSOMON_ANNOTATION(AnnotateBenignRaceSized, const volatile void* object, size_t size, const char*) {
  put_benign(reinterpret_cast<uint64_t>(object), size, TSOMON_PC());
}
TSOMON_ANNOTATION(WTFAnnotateBenignRaceSized, const volatile void* object, size_t size,
                  const char*) {
  put_benign(reinterpret_cast<uint64_t>(object), size, TSOMON_PC());
}

// Without a meaning here.
TSOMON_ANNOTATION(AnnotateCondVarSignal, const volatile void*) {}
TSOMON_ANNOTATION(AnnotateCondVarSignalAll, const volatile void*) {}
TSOMON_ANNOTATION(AnnotateCondVarWait, const volatile void*, const volatile void*) {}
TSOMON_ANNOTATION(AnnotateMutexIsNotPHB, const volatile void*) {}
TSOMON_ANNOTATION(AnnotateMutexIsUsedAsCondVar, const volatile void*) {}
TSOMON_ANNOTATION(AnnotatePCQCreate, const volatile void*) {}
TSOMON_ANNOTATION(AnnotatePCQDestroy, const volatile void*) {}
TSOMON_ANNOTATION(AnnotatePCQPut, const volatile void*) {}
TSOMON_ANNOTATION(AnnotatePCQGet, const volatile void*) {}
TSOMON_ANNOTATION(AnnotatePublishMemoryRange, const volatile void*, size_t) {}
TSOMON_ANNOTATION(AnnotateUnpublishMemoryRange, const volatile void*, size_t) {}
TSOMON_ANNOTATION(AnnotateNewMemory, const volatile void*, size_t) {}
TSOMON_ANNOTATION(AnnotateMemoryIsInitialized, const volatile void*, size_t) {}
TSOMON_ANNOTATION(AnnotateMemoryIsUninitialized, const volatile void*, size_t) {}
TSOMON_ANNOTATION(AnnotateExpectRace, const volatile void*, const char*) {}
TSOMON_ANNOTATION(AnnotateFlushExpectedRaces) {}
TSOMON_ANNOTATION(AnnotateEnableRaceDetection, int) {}
TSOMON_ANNOTATION(AnnotateIgnoreSyncBegin) {}
TSOMON_ANNOTATION(AnnotateIgnoreSyncEnd) {}
TSOMON_ANNOTATION(AnnotateFlushState) {}
TSOMON_ANNOTATION(AnnotateTraceMemory, const volatile void*) {}
TSOMON_ANNOTATION(AnnotateNoOp, const volatile void*) {}

TSOMON_HOOK int RunningOnValgrind() { return 0; }
TSOMON_HOOK double ValgrindSlowdown() { return 10.0; }
