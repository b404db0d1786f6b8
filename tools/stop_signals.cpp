#include "tools/stop_signals.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <iterator>

#include <sys/time.h>

namespace tsomon {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};

constexpr int64_t kSameRequest = 200'000'000;  // nanoseconds

StopFlag stop_flag;
std::atomic<int64_t> asked_at;
std::atomic<bool> time_over;

void ask(int number) {
  const int error = errno;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t time = int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  if (!stop_flag.asked()) {
    asked_at.store(time);
    stop_flag.ask();
  } else if (time - asked_at.load() > kSameRequest) {
    // Unblocked when the handler returns.
    ::signal(number, SIG_DFL);
    ::raise(number);
  }
  errno = error;
}

void end_time(int) {
  if (!stop_flag.asked()) {
    time_over.store(true);
    stop_flag.ask();
  }
}

void start_timer(double seconds) {
  struct sigaction action {};
  action.sa_handler = end_time;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGALRM, &action, nullptr);
  itimerval timer{};
  const double whole = std::floor(std::min(seconds, 1e9));
  timer.it_value.tv_sec = static_cast<time_t>(whole);
  timer.it_value.tv_usec = static_cast<suseconds_t>(std::min(999'999.0, (seconds - whole) * 1e6));
  if (timer.it_value.tv_sec == 0 && timer.it_value.tv_usec == 0) {
    timer.it_value.tv_usec = 1;
  }
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace

StopSignals::StopSignals(std::optional<double> seconds)
    : timed_(seconds.has_value()), meter_({}, &stop_flag), scope_(&meter_) {
  if (seconds) {
    meter_.set_effort(*seconds / kUsualSeconds);
    start_timer(*seconds);
  }
  struct sigaction action {};
  action.sa_handler = ask;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) {
      ::sigaction(kSignals[i], &action, nullptr);
    }
  }
}

StopSignals::~StopSignals() {
  if (timed_) {
    const itimerval none{};
    ::setitimer(ITIMER_REAL, &none, nullptr);
  }
  if (asked()) {
    return;  // the rest of the request may still come, and must not end the process with what it says now
  }
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    ::sigaction(kSignals[i], &before_[i], nullptr);
  }
}

bool StopSignals::asked() const { return stop_flag.asked(); }

bool StopSignals::time_is_over() const { return time_over.load(); }

}  // namespace tsomon
