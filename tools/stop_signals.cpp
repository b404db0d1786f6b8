#include "tools/stop_signals.h"

#include <cerrno>
#include <cstdint>
#include <ctime>
#include <iterator>

namespace tsomon {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};

constexpr int64_t kSameRequest = 200'000'000;  // nanoseconds

StopFlag stop_flag;
std::atomic<int64_t> asked_at;

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

}  // namespace

StopSignals::StopSignals() : meter_({}, &stop_flag), scope_(&meter_) {
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
  if (asked()) {
    return;  // the rest of the request may still come, and must not end the process with what it says now
  }
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    ::sigaction(kSignals[i], &before_[i], nullptr);
  }
}

bool StopSignals::asked() const { return stop_flag.asked(); }

}  // namespace tsomon
