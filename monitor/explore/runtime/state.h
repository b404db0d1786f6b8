// What the parts of the controlled runtime share: the program's threads and where the run is.
//
// Thread-safety: all of it is read and written with the baton.
#pragma once

#include <atomic>
#include <cstdint>

#include <pthread.h>

#include "monitor/explore/runtime/kernel.h"
#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/copy.h"

namespace tsomon::explore {

inline constexpr uint32_t kBufferSize = 64;
inline constexpr uint32_t kRecent = 64;

struct Buffered {
  uint64_t address;
  uint32_t size;
  uint32_t step;
  Value value;
  Value covered;  // what memory held when it was put there
};

struct LoopRead {
  uint64_t pc;
  uint64_t address;
  uint32_t size;
  uint64_t hash;
  Value value;
};

// What the thread is to load there, and memory holds only so long.
struct Loaded {
  uint64_t address;
  uint32_t size;
  Value covered;
};
inline constexpr uint32_t kMostPlain = 256;  // bytes

// A store that the program makes itself, behind the hook.
struct Announced {
  uint64_t address;
  uint32_t size;  // 0: there is none
  uint64_t pc;
  char* covered;  // what memory held before; kMostPlain bytes
};

// What a thread read since it went on without what it waited for.
struct WakeRead {
  Op op;
  uint8_t size;
  uint64_t address;
  Value value;
};
inline constexpr uint32_t kMaxWakes = 4;
inline constexpr uint32_t kWakeReads = 32;

struct Thread {
  std::atomic<uint32_t> turn{0};
  bool exists = false;
  bool ended = false;
  bool waits_for_good = false;
  bool in_loop = false;
  bool joined = false;
  uint32_t joined_by = 0;  // 1 + the number of the thread
  Operation pending;
  uint32_t buffered = 0;
  Buffered* buffer = nullptr;
  Announced announced{};
  bool store_held = false;  // the program has not made it yet
  uint32_t loaded_count = 0;
  Loaded* loaded = nullptr;   // kMostPlain
  Loaded* loading = nullptr;  // likewise
  uint32_t operations = 0;
  uint32_t children = 0;
  uint32_t units = 0;  // open ones
  uint32_t unit_marks = 0;
  bool fence_due = false;  // behind the store that it has done
  bool in_block = false;   // an atomic one
  uint32_t block = 0;
  uint32_t block_order = 0;  // of its last place there
  uint32_t block_marks = 0;
  uint32_t recent_count = 0;
  LoopRead* recent = nullptr;
  uint32_t loop_from = 0;  // the iteration: recent[loop_from ...)
  uint8_t answer = 0;      // of its pending Op::kAnswer
  bool waits_idle = false;
  uint64_t wait_state = 0;  // at its last Op::kAnswer
  uint32_t wakes = 0;       // with no effect since the first of them
  uint64_t wake_states[kMaxWakes] = {};
  uint32_t wake_from[kMaxWakes] = {};  // wake_reads[...) since then
  uint32_t wake_read_count = 0;        // kWakeReads: there are more
  WakeRead* wake_reads = nullptr;
  void* (*routine)(void*) = nullptr;
  void* argument = nullptr;
  void* result = nullptr;
  pthread_t handle{};
  Context context{};  // where it goes on, in place
  uint64_t stack_end = 0;
};

extern Channel* channel;
extern Thread threads[kMaxThreads + 1];
extern uint32_t thread_count;
extern __thread uint32_t self;
extern bool concurrent;  // started threads are there, or were
extern uint32_t steps;
// Threads that can go on, and buffers that can commit, a bit each.
extern uint64_t enabled_now;
extern uint64_t commits_now;

long futex(void* word, int operation, uint32_t value);

// Whatever the program's type is.
template <typename T>
struct Any {
  T value;
} __attribute__((packed, may_alias));
template <typename T>
Any<T>& at_address(uint64_t address) {
  return *reinterpret_cast<Any<T>*>(address);
}
inline Value get(uint64_t address, uint32_t size) {
  switch (size) {
    case 1:
      return at_address<uint8_t>(address).value;
    case 4:
      return at_address<uint32_t>(address).value;
    case 8:
      return at_address<uint64_t>(address).value;
    default:
      break;
  }
  Value value = 0;
  probe::copy(&value, reinterpret_cast<const void*>(address), size);
  return value;
}
inline void put(uint64_t address, uint32_t size, Value value) {
  switch (size) {
    case 1:
      at_address<uint8_t>(address).value = static_cast<uint8_t>(value);
      break;
    case 4:
      at_address<uint32_t>(address).value = static_cast<uint32_t>(value);
      break;
    case 8:
      at_address<uint64_t>(address).value = static_cast<uint64_t>(value);
      break;
    default:
      probe::copy(reinterpret_cast<void*>(address), &value, size);
      break;
  }
}

}  // namespace tsomon::explore
