// What the monitor itself may use: processor time and memory, of all targets together.
//
// Processor   Time of this process, judging included, as a share of one processor over about a second. While more than that was
//             used, slices whose moment comes are dropped. Analyses of kept slices have a share of their own (kept_analysis.h).
// Memory      Half of it is for judging and an eighth for flight recorders, divided among the targets; records of one slice get a
//             thirty-second of its judging. While the process has more than all of it, slices are dropped, too.
// Fair        Whether a slice is dropped depends on what was used before it, never on what is in it: of all that happens in the slices
//             that are recorded the same share is seen. After a costly slice the next ones are dropped more often.
// Complexity  O(1), a look into /proc. Thread-safety: all calls.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

namespace tsomon::service {

struct BudgetLimits {
  uint64_t memory_bytes = uint64_t{1} << 30;
  double cpu_share = 0;  // of one processor; 0: any
  size_t targets = 1;
};

class Budget {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr const char* kProcessor = "cpu_share";
  static constexpr const char* kMemory = "memory_megabytes";

  // `used`: processor time so far; `bytes`: of memory. Without them those of this process.
  explicit Budget(BudgetLimits limits, std::function<std::chrono::microseconds()> used = {},
                  std::function<uint64_t()> bytes = {});
  void set_limits(BudgetLimits limits);

  // Why no slice may begin now, the key of the configuration; empty: one may.
  std::string refusal(Clock::time_point now = Clock::now());

  // Of one target.
  uint64_t judging_bytes() const;
  uint64_t slice_bytes() const { return judging_bytes() / 32; }
  uint64_t ring_bytes() const;

 private:
  const std::function<std::chrono::microseconds()> used_;
  const std::function<uint64_t()> bytes_;
  mutable std::mutex mutex_;
  BudgetLimits limits_;
  std::chrono::microseconds seen_{0};
  Clock::time_point looked_;
  double debt_ = 0;  // microseconds of processor time
};

}  // namespace tsomon::service
