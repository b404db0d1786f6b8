// Signals blocked, and small locks. Thread-safety: async-signal-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace tsomon::probe {

// Of the calling thread; what restore_signals() takes.
uint64_t block_signals();
void restore_signals(uint64_t mask);

// Between the looks at a lock or flag that another thread holds for a moment. It may be put off its
// processor by the one that waits, where that has a higher real-time priority: after `tries` this
// thread sleeps.
void let_others_run(unsigned tries);

// Signals blocked and a spin lock held.
class Guard {
 public:
  explicit Guard(std::atomic<uint32_t>* lock);
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  std::atomic<uint32_t>* lock_;
  uint64_t mask_ = 0;
};

}  // namespace tsomon::probe
