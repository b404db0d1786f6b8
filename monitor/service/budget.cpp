#include "monitor/service/budget.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include <unistd.h>

#include "monitor/service/process_memory.h"

namespace tsomon::service {
namespace {

using std::chrono::microseconds;

constexpr double kWindow = 1'000'000;  // microseconds over which the share is kept
constexpr uint64_t kLeastJudging = uint64_t{8} << 20;

microseconds own_processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return microseconds(time.tv_sec * 1'000'000 + time.tv_nsec / 1000);
}

}  // namespace

Budget::Budget(BudgetLimits limits, std::function<microseconds()> used,
               std::function<uint64_t()> bytes)
    : used_(used ? std::move(used) : own_processor_time),
      bytes_(bytes ? std::move(bytes) : [] { return memory_of_process(::getpid()); }),
      limits_(limits),
      seen_(used_()),
      looked_(Clock::now()) {}

void Budget::set_limits(BudgetLimits limits) {
  const std::lock_guard<std::mutex> lock(mutex_);
  limits_ = limits;
}

std::string Budget::refusal(Clock::time_point now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (limits_.cpu_share > 0) {
    const microseconds used = used_();
    const auto passed = std::chrono::duration<double, std::micro>(now - looked_).count();
    debt_ += static_cast<double>((used - seen_).count());
    debt_ = std::max(0.0, debt_ - limits_.cpu_share * std::max(passed, 0.0));
    seen_ = used;
    looked_ = now;
    if (debt_ > limits_.cpu_share * kWindow) {
      return kProcessor;
    }
  }
  return bytes_() > limits_.memory_bytes ? kMemory : "";
}

uint64_t Budget::judging_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::max(limits_.memory_bytes / 2 / std::max<size_t>(limits_.targets, 1), kLeastJudging);
}

uint64_t Budget::ring_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return limits_.memory_bytes / 8 / std::max<size_t>(limits_.targets, 1);
}

}  // namespace tsomon::service
