#include "monitor/live/run_cost.h"

#include <algorithm>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>

namespace tsomon {
namespace {

constexpr int kReadAtOnce = 65536;  // what a reader takes at once

std::string rate_text(double events) {
  return events >= 1e6   ? fmt::format("{:.1f} million events", events / 1e6)
         : events >= 1e4 ? fmt::format("{:.0f} thousand events", events / 1e3)
                         : fmt::format("{:.0f} events", events);
}

}  // namespace

std::string cost_text(const RunCost& cost) {
  return fmt::format(
      "watching slows it down: in {:.1f} s it waited {:.0f} % of the time for the detector, which "
      "takes {} a second; cheaper: tsomon record and tsomon check later, --save FILE, or less data "
      "(TSOMON_OPTIONS=accesses=sets:outside=stores, -ftsomon-files)",
      cost.seconds, 100 * cost.waiting, rate_text(cost.events));
}

RunCostMeter::RunCostMeter(int pipe, std::function<void(const RunCost&)> tell)
    : pipe_(pipe), tell_(std::move(tell)), room_(::fcntl(pipe, F_GETPIPE_SZ)) {}

void RunCostMeter::handed_on(Clock::time_point begun, uint64_t events) {
  if (!tell_) {
    return;
  }
  const Clock::time_point now = Clock::now();
  int waiting = 0;
  if (room_ > 0 && ::ioctl(pipe_, FIONREAD, &waiting) == 0 && waiting > room_ - kReadAtOnce) {
    waited_ += now - begun;
  }
  if (!begun_) {
    begun_ = true;
    window_ = now;
    waited_ = {};
    events_ = events;
    return;
  }
  RunCost cost;
  cost.seconds = std::chrono::duration<double>(now - window_).count();
  if (cost.seconds < kWindow) {
    return;
  }
  cost.waiting = std::min(1.0, std::chrono::duration<double>(waited_).count() / cost.seconds);
  cost.events = static_cast<double>(events - events_) / cost.seconds;
  window_ = now;
  waited_ = {};
  events_ = events;
  if (cost.waiting >= kHigh) {
    tell_(cost);
    tell_ = nullptr;
  }
}

}  // namespace tsomon
