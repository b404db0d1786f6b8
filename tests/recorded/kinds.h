// What kinds of programs have in common (kinds.cpp).
#pragma once

#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

namespace program {

inline std::mutex mutex;
inline long balance = 0;

__attribute__((noinline)) inline void work(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    const std::lock_guard lock(mutex);
    ++balance;
  }
}
// What is recorded: two threads take a lock in turns.
inline long both(int rounds = 200) {
  std::thread other(work, rounds);
  work(rounds);
  other.join();
  return balance;
}

inline void say(const std::string& text) {
  const std::string line = text + "\n";
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) {
    _exit(99);
  }
}
inline void must(bool holds, const char* what) {
  if (!holds) {
    say(std::string("failed: ") + what + ": " + std::strerror(errno));
    _exit(98);
  }
}
inline int status_of(pid_t child) {
  int status = 0;
  must(waitpid(child, &status, 0) == child, "waitpid");
  return status;
}

inline volatile sig_atomic_t signals = 0;
inline void count(int) { signals = signals + 1; }
inline void on(int signal, void (*handler)(int), int flags = 0) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  must(sigaction(signal, &action, nullptr) == 0, "sigaction");
}

struct Kind {
  const char* name;
  int (*run)();
};
extern const Kind more_kinds[];
extern const Kind* const end_of_more_kinds;

}  // namespace program

#define KIND(NAME) \
  { #NAME, NAME }
