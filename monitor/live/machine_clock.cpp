#include "monitor/live/machine_clock.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <pthread.h>

#include "monitor/probe/clock.h"
#include "monitor/probe/clock_meter.h"
#include "monitor/probe/stamp.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

using capture::ClockMargin;
constexpr uint64_t kPatience = 1'000'000'000;  // nanoseconds
constexpr uint64_t kToStop =
    kPatience /
    5;  // ... between looks whether to stop; a measurement takes four times that at most

// No margin where there is none.
probe::ClockMeasurement measure(int64_t allowed, uint64_t patience) {
  const auto meter = std::make_unique<probe::ClockMeter>();
  if (!probe::lfence_waits() || meter->start(
                                    pthread_create, [] { return probe::stamp(); }, nullptr) != 0) {
    return {};
  }
  const auto most = static_cast<uint64_t>(allowed);
  const probe::ClockMeasurement measured = meter->confirm(most, most, patience);
  meter->stop();
  return measured;
}

}  // namespace

int64_t measure_margin(int64_t allowed) {
  const probe::ClockMeasurement measured = measure(allowed, kPatience);
  return measured.margin < static_cast<uint64_t>(ClockMargin::kMost)
             ? static_cast<int64_t>(measured.margin)
             : ClockMargin::kMost;
}

std::optional<capture::ClockEntry> measure_open_clock(int64_t allowed) {
  constexpr std::chrono::seconds kWorthIt{4};
  const char* const options = std::getenv("TSOMON_OPTIONS");
  if (options != nullptr && std::strstr(options, "clock_test=") != nullptr) {
    return std::nullopt;
  }
  const auto end = std::chrono::steady_clock::now() + kWorthIt;
  for (;;) {
    const probe::ClockMeasurement measured = measure(allowed, kToStop);
    const bool useful = measured.problem == nullptr || measured.is_contradiction;
    if (useful && (measured.margin <= static_cast<uint64_t>(allowed) || measured.is_contradiction ||
                   measured.early > static_cast<uint64_t>(allowed))) {
      return probe::entry_of(measured);
    }
    if (stop_asked() || std::chrono::steady_clock::now() >= end) {
      return std::nullopt;
    }
  }
}

}  // namespace tsomon
