// Calls all of ThreadSanitizer's public interface: tsan_interface [fibers].
// It prints the addresses of what it uses, "name number" a line.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>

#include <sanitizer/common_interface_defs.h>
#include <sanitizer/tsan_interface.h>
#include <ucontext.h>

#include "tsomon.h"

extern "C" {
void AnnotateHappensBefore(const char* file, int line, const volatile void* object);
void AnnotateHappensAfter(const char* file, int line, const volatile void* object);
void AnnotateRWLockCreate(const char* file, int line, const volatile void* lock);
void AnnotateRWLockCreateStatic(const char* file, int line, const volatile void* lock);
void AnnotateRWLockDestroy(const char* file, int line, const volatile void* lock);
void AnnotateRWLockAcquired(const char* file, int line, const volatile void* lock, long is_writer);
void AnnotateRWLockReleased(const char* file, int line, const volatile void* lock, long is_writer);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
void AnnotateIgnoreSyncBegin(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
void AnnotateBenignRace(const char* file, int line, const volatile void* object, const char* why);
void AnnotateBenignRaceSized(const char* file, int line, const volatile void* object, size_t size,
                             const char* why);
void AnnotateNewMemory(const char* file, int line, const volatile void* object, size_t size);
void AnnotatePublishMemoryRange(const char* file, int line, const volatile void* at, size_t size);
void AnnotateThreadName(const char* file, int line, const char* name);
void AnnotateFlushState(const char* file, int line);
void AnnotateEnableRaceDetection(const char* file, int line, int enable);
void AnnotateCondVarSignal(const char* file, int line, const volatile void* condition);
void __tsan_ignore_thread_begin();
void __tsan_ignore_thread_end();
int RunningOnValgrind();
}

// A program's own annotation wins over the runtime's.
int own_calls = 0;
extern "C" void AnnotateNoOp(const char*, int, const volatile void*) { ++own_calls; }

namespace {

// A lock whose waiters spin with loads and failing exchanges.
struct SpinLock {
  std::atomic<int> word{0};
  void lock() {
    __tsan_mutex_pre_lock(this, 0);
    int free = 0;
    while (!word.compare_exchange_strong(free, 1)) {
      while (word.load(std::memory_order_relaxed) != 0) {
      }
      free = 0;
    }
    __tsan_mutex_post_lock(this, 0, 0);
  }
  bool try_lock() {
    __tsan_mutex_pre_lock(this, __tsan_mutex_try_lock);
    int free = 0;
    const bool taken = word.compare_exchange_strong(free, 1);
    __tsan_mutex_post_lock(this,
                           __tsan_mutex_try_lock | (taken ? 0U : __tsan_mutex_try_lock_failed), 0);
    return taken;
  }
  void unlock() {
    __tsan_mutex_pre_unlock(this, 0);
    word.store(0, std::memory_order_release);
    __tsan_mutex_post_unlock(this, 0);
  }
};

SpinLock lock;
SpinLock busy;
long guarded = 0;
long guarded_too = 0;
long counted = 0;
char object = 0;
char readers_writer = 0;

void say(const char* name, const volatile void* address) {
  std::printf("%s %#lx\n", name, reinterpret_cast<unsigned long>(address));
}

void annotated() {
  AnnotateThreadName(__FILE__, __LINE__, "worker");
  for (int i = 0; i < 200; ++i) {
    // Not around the lock: a look that found it taken, and one that did not, are two states.
    lock.lock();
    {
      TSOMON_UNIT("deposit");
      ++guarded;
      ++guarded_too;
    }
    lock.unlock();
  }
  {
    TSOMON_UNIT("try");
    if (busy.try_lock()) {
      busy.unlock();
    }
  }
  AnnotateRWLockAcquired(__FILE__, __LINE__, &readers_writer, 0);
  AnnotateRWLockReleased(__FILE__, __LINE__, &readers_writer, 0);
  AnnotateRWLockAcquired(__FILE__, __LINE__, &readers_writer, 1);
  AnnotateRWLockReleased(__FILE__, __LINE__, &readers_writer, 1);
}

void call_the_rest() {
  __tsan_mutex_create(&lock, __tsan_mutex_write_reentrant);
  __tsan_mutex_pre_signal(&lock, 0);
  __tsan_mutex_pre_divert(&lock, 0);
  __tsan_mutex_post_divert(&lock, 0);
  __tsan_mutex_post_signal(&lock, 0);
  __tsan_mutex_destroy(&lock, __tsan_mutex_linker_init);
  __tsan_release(&guarded);
  __tsan_acquire(&guarded);
  void* const tag = __tsan_external_register_tag("queue");
  __tsan_external_register_header(tag, "race on a queue");
  __tsan_external_assign_tag(&object, tag);
  __tsan_external_read(&object, __builtin_return_address(0), tag);
  __tsan_external_write(&object, __builtin_return_address(0), tag);
  __tsan_flush_memory();
  __tsan_ignore_thread_begin();
  ++counted;
  __tsan_ignore_thread_end();
  AnnotateHappensBefore(__FILE__, __LINE__, &guarded);
  AnnotateHappensAfter(__FILE__, __LINE__, &guarded);
  AnnotateRWLockCreate(__FILE__, __LINE__, &readers_writer);
  AnnotateRWLockCreateStatic(__FILE__, __LINE__, &readers_writer);
  AnnotateRWLockDestroy(__FILE__, __LINE__, &readers_writer);
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
  AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  AnnotateBenignRace(__FILE__, __LINE__, &counted, "a counter");
  AnnotateBenignRaceSized(__FILE__, __LINE__, &counted, sizeof counted, "a counter");
  AnnotateNewMemory(__FILE__, __LINE__, &counted, sizeof counted);
  AnnotatePublishMemoryRange(__FILE__, __LINE__, &counted, sizeof counted);
  AnnotateFlushState(__FILE__, __LINE__);
  AnnotateEnableRaceDetection(__FILE__, __LINE__, 1);
  AnnotateCondVarSignal(__FILE__, __LINE__, &counted);
  AnnotateNoOp(__FILE__, __LINE__, nullptr);
  uint64_t word = 0;
  __sanitizer_unaligned_store64(&word, 7 + __sanitizer_unaligned_load64(&word));
  std::printf("own %d\n", own_calls);
  std::printf("valgrind %d\n", RunningOnValgrind());
}

// ---- Fibers: two, in turns, one unit of each lasting over switches; on two kernel threads.
constexpr int kTurns = 50;
ucontext_t main_context;
ucontext_t contexts[2];
void* main_fiber;
void* fibers[2];
long turns[2];
char stacks[2][65536];

void leave(int self) {
  __tsan_switch_to_fiber(main_fiber, self == 0 ? 0 : __tsan_switch_to_fiber_no_sync);
  swapcontext(&contexts[self], &main_context);
}

void fiber(int self) {
  for (int i = 0; i < kTurns; ++i) {
    TSOMON_UNIT(self == 0 ? "first" : "second");
    ++turns[self];
    leave(self);
    ++turns[self];
  }
  for (;;) {
    leave(self);
  }
}

void enter(int which) {
  __tsan_switch_to_fiber(fibers[which], 0);
  swapcontext(&main_context, &contexts[which]);
}

void run_fibers() {
  for (int i = 0; i <= kTurns / 2; ++i) {
    enter(0);
    enter(1);
  }
}

void use_fibers() {
  for (int i = 0; i < 2; ++i) {
    getcontext(&contexts[i]);
    contexts[i].uc_stack.ss_sp = stacks[i];
    contexts[i].uc_stack.ss_size = sizeof stacks[i];
    contexts[i].uc_link = nullptr;
    makecontext(&contexts[i], reinterpret_cast<void (*)()>(fiber), 1, i);
    fibers[i] = __tsan_create_fiber(0);
    __tsan_set_fiber_name(fibers[i], i == 0 ? "one" : "two");
  }
  main_fiber = __tsan_get_current_fiber();
  run_fibers();
  std::thread([] {
    main_fiber = __tsan_get_current_fiber();
    run_fibers();
  }).join();
  for (void* each : fibers) {
    __tsan_destroy_fiber(each);
  }
  void* const unused = __tsan_create_fiber(0);
  __tsan_destroy_fiber(unused);
  say("turns0", &turns[0]);
  say("turns1", &turns[1]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "fibers") == 0) {
    use_fibers();
    return 0;
  }
  say("lock", &lock);
  say("busy", &busy);
  say("readers", &readers_writer);
  say("guarded", &guarded);
  say("object", &object);
  busy.word = 1;
  std::thread one(annotated);
  std::thread two(annotated);
  one.join();
  two.join();
  call_the_rest();
  return guarded == 400 ? 0 : 1;
}
