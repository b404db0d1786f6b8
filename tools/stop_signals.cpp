#include "tools/stop_signals.h"

#include <iterator>

namespace tsomon {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};

StopFlag stop_flag;

void ask(int number) {
  if (stop_flag.asked()) {
    // Unblocked when the handler returns.
    ::signal(number, SIG_DFL);
    ::raise(number);
  }
  stop_flag.ask();
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
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    ::sigaction(kSignals[i], &before_[i], nullptr);
  }
}

bool StopSignals::asked() const { return stop_flag.asked(); }

}  // namespace tsomon
