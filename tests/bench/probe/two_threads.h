// What the benchmark programs share.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

inline uint64_t scale(int argc, char** argv) {
  return argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
}

// Runs work(0) and work(1) side by side and prints the seconds until both are done.
template <typename Work>
void run_two_threads(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  std::thread other([&work] { work(1); });
  work(0);
  other.join();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("%.6f\n", seconds.count());
}
