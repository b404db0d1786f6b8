// Dynamic annotations: the functions that valgrind's and ThreadSanitizer's users call.
//
// Those that say what ThreadSanitizer's interface says mean the same (tsan_interface.cpp); those
// about races, and those that ThreadSanitizer does nothing for either, mean nothing. All are weak:
// many programs bring empty ones.
#include "monitor/probe/operation.h"

using namespace tsomon::probe;

#define TSOMON_ANNOTATION(NAME, ...) \
  TSOMON_HOOK void NAME(const char*, int __VA_OPT__(, ) __VA_ARGS__)

// Orders that the program promises.
TSOMON_ANNOTATION(AnnotateHappensBefore, const volatile void*) { put_stamp_now(); }
TSOMON_ANNOTATION(AnnotateHappensAfter, const volatile void*) { put_stamp_now(); }
TSOMON_ANNOTATION(WTFAnnotateHappensBefore, const volatile void*) { put_stamp_now(); }
TSOMON_ANNOTATION(WTFAnnotateHappensAfter, const volatile void*) { put_stamp_now(); }

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
TSOMON_ANNOTATION(AnnotateBenignRace, const volatile void*, const char*) {}
TSOMON_ANNOTATION(AnnotateBenignRaceSized, const volatile void*, size_t, const char*) {}
TSOMON_ANNOTATION(WTFAnnotateBenignRaceSized, const volatile void*, size_t, const char*) {}
TSOMON_ANNOTATION(AnnotateExpectRace, const volatile void*, const char*) {}
TSOMON_ANNOTATION(AnnotateFlushExpectedRaces) {}
TSOMON_ANNOTATION(AnnotateEnableRaceDetection, int) {}
TSOMON_ANNOTATION(AnnotateIgnoreReadsBegin) {}
TSOMON_ANNOTATION(AnnotateIgnoreReadsEnd) {}
TSOMON_ANNOTATION(AnnotateIgnoreWritesBegin) {}
TSOMON_ANNOTATION(AnnotateIgnoreWritesEnd) {}
TSOMON_ANNOTATION(AnnotateIgnoreSyncBegin) {}
TSOMON_ANNOTATION(AnnotateIgnoreSyncEnd) {}
TSOMON_ANNOTATION(AnnotateFlushState) {}
TSOMON_ANNOTATION(AnnotateTraceMemory, const volatile void*) {}
TSOMON_ANNOTATION(AnnotateNoOp, const volatile void*) {}

TSOMON_HOOK int RunningOnValgrind() { return 0; }
TSOMON_HOOK double ValgrindSlowdown() { return 10.0; }
