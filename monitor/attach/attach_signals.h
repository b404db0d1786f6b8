// The signals that end an attachment.
//
// Thread-safety: wait() and stop() from one thread; a thread of its own takes the signals.
#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include <signal.h>

#include "tso/support/work.h"

namespace tsomon::attach {

// The signals that end the attachment wait here instead of ending this process. A thread takes
// them, as this one may be judging: what it judges ends some time after the first, at once with the
// second.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
      sigaddset(&set_, number);
    }
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
    thread_ = std::thread([this] { take(); });
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals() {
    over_ = true;
    thread_.join();
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  // Its number, 0 when none came in that time.
  int wait(int64_t nanoseconds) {
    std::unique_lock lock(mutex_);
    came_.wait_for(lock, std::chrono::nanoseconds(nanoseconds), [this] { return number_ != 0; });
    return number_;
  }
  const StopFlag& stop() const { return stop_; }

 private:
  void take() {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds kAfterSignal{400};
    Clock::time_point first;
    while (!over_) {
      const timespec time{0, 50'000'000};
      const int number = sigtimedwait(&set_, nullptr, &time);
      const std::lock_guard lock(mutex_);
      if (number > 0 && number_ == 0) {
        number_ = number;
        first = Clock::now();
        came_.notify_all();
      } else if (number > 0 || (number_ != 0 && Clock::now() - first > kAfterSignal)) {
        stop_.ask();
      }
    }
  }

  sigset_t set_{};
  sigset_t before_{};
  std::mutex mutex_;
  std::condition_variable came_;
  int number_ = 0;  // of the first signal
  StopFlag stop_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace tsomon::attach
