// A pool of tasks with two ends (plain_pool.cpp): for one source of a program or module.
#pragma once

#include <atomic>
#include <cstdint>

constexpr uint64_t kMaxTasks = 4096;
constexpr auto kRelaxed = std::memory_order_relaxed;

alignas(128) std::atomic<uint64_t> head{0};
alignas(128) std::atomic<uint64_t> tail{0};
alignas(128) std::atomic<uint32_t> owners[kMaxTasks];

template <bool kFenced>
POOL_TAKE bool take_head(uint32_t thread) {
  const uint64_t task = head.load(kRelaxed);
  head.store(task + 1, kRelaxed);
  if constexpr (kFenced) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  if (tail.load(kRelaxed) <= task) {
    return false;
  }
  owners[task].store(thread, kRelaxed);
  return true;
}

template <bool kFenced>
POOL_TAKE bool take_tail(uint32_t thread) {
  const uint64_t task = tail.load(kRelaxed) - 1;
  tail.store(task, kRelaxed);
  if constexpr (kFenced) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  if (head.load(kRelaxed) > task) {
    return false;
  }
  owners[task].store(thread, kRelaxed);
  return true;
}
