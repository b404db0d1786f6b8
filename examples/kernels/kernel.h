// What the kernels share: small programs with a known atomicity violation and a fixed twin, after
// the kinds of concurrency bugs that Marathon was evaluated with (Sumner, Hammer, Dolby, RV 2011).
//
//   KERNEL buggy|fixed [ROUNDS [REST [RUNS]]]
//
// Every kernel prints how often its own data shows that something went wrong. The threads run
// freely: how often the violation happens is up to the machine. Between two operations a thread
// rests for at most REST microseconds (default 0): the longer, the rarer the violation. All of it
// is done RUNS times (default 1), each time with data and threads of its own.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "examples/rounds.h"
#include "tsomon.h"

// Programs NAME_bare: what is atomic has to be found by the names of functions and by the objects.
#ifdef KERNELS_WITHOUT_ANNOTATIONS
#undef TSOMON_UNIT
#undef TSOMON_ATOMIC_SET
#define TSOMON_UNIT(name) static_assert(true)
#define TSOMON_ATOMIC_SET(name, address, size) static_cast<void>(address)
#endif

namespace kernels {

struct Arguments {
  bool buggy = false;
  uint64_t rounds = 0;  // operations of every thread
  uint64_t rest = 0;    // cycles, at most, between two of them
  uint64_t runs = 1;

  void pause() const {
    if (rest != 0) {
      thread_local std::minstd_rand random(std::random_device{}());
      const uint64_t end = __rdtsc() + random() % rest;
      while (__rdtsc() < end) {
        _mm_pause();
      }
    }
  }
};

inline Arguments arguments(int argc, char** argv, uint64_t rounds) {
  const bool buggy = argc > 1 && std::strcmp(argv[1], "buggy") == 0;
  if (!buggy && (argc < 2 || std::strcmp(argv[1], "fixed") != 0)) {
    std::fprintf(stderr, "usage: %s buggy|fixed [ROUNDS [REST [RUNS]]]\n", argv[0]);
    std::exit(2);
  }
  constexpr uint64_t kCyclesInMicrosecond = 2500;  // roughly
  return {buggy, examples::number_argument(argc, argv, 2, rounds),
          examples::number_argument(argc, argv, 3, 0) * kCyclesInMicrosecond,
          examples::number_argument(argc, argv, 4, 1)};
}

// The main function of a kernel. `run` gives how often something went wrong, and `what` that is.
inline int run_kernel(int argc, char** argv, uint64_t rounds, const char* what,
                      uint64_t (*run)(const Arguments&)) {
  const Arguments given = arguments(argc, argv, rounds);
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < given.runs; ++i) {
    wrong += run(given);
  }
  std::printf("%s: %llu\n", what, static_cast<unsigned long long>(wrong));
  return 0;
}

// work(thread) on `count` threads, and its end. They begin at the same moment, each on a processor
// of its own, except in one of several runs: there they begin when they happen to.
template <typename Work>
void run_threads(const Arguments& arguments, uint32_t count, const Work& work) {
  examples::Rounds start(count);
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < count; ++thread) {
    threads.emplace_back([&, thread] {
      if (arguments.runs == 1) {
        examples::Rounds::take_processor(thread);
        start.begin_round();
      }
      work(thread);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

// A lock that is given back between look and act (buggy) or held throughout.
template <typename Lock>
void let_go(bool buggy, Lock& lock) {
  if (buggy) {
    lock.unlock();
    lock.lock();
  }
}

}  // namespace kernels
