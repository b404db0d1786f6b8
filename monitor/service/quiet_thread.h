// A thread that no signal is delivered to: signals are for those who expect them.
//
// Thread-safety: all calls.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace tsomon::service {

template <typename Work>
std::thread quiet_thread(Work work) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread(std::move(work));
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace tsomon::service
