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

// No margin where there is none.
probe::ClockMeasurement measure(int64_t allowed) {
  const auto meter = std::make_unique<probe::ClockMeter>();
  if (!probe::lfence_waits() || meter->start(
                                    pthread_create, [] { return probe::stamp(); }, nullptr) != 0) {
    return {};
  }
  const auto most = static_cast<uint64_t>(allowed);
  const probe::ClockMeasurement measured = meter->confirm(most, most, kPatience);
  meter->stop();
  return measured;
}

}  // namespace

int64_t measure_margin(int64_t allowed) {
  const probe::ClockMeasurement measured = measure(allowed);
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
    const probe::ClockMeasurement measured = measure(allowed);
    const bool useful = measured.problem == nullptr || measured.is_contradiction;
    if (useful && (measured.margin <= static_cast<uint64_t>(allowed) || measured.is_contradiction ||
                   measured.early > static_cast<uint64_t>(allowed))) {
      capture::ClockEntry entry;
      entry.since = measured.since;
      entry.until = measured.until;
      entry.margin = measured.margin;
      entry.early = measured.early;
      entry.processors = measured.processors;
      entry.exchanges = measured.exchanges;
      return entry;
    }
    if (stop_asked() || std::chrono::steady_clock::now() >= end) {
      return std::nullopt;
    }
  }
}

}  // namespace tsomon
