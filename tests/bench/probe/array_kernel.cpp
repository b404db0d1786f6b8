// A stencil over an array, two threads on halves of their own. Prints the seconds of the work.
#include <vector>

#include "tests/bench/probe/two_threads.h"

int main(int argc, char** argv) {
  constexpr uint64_t kSize = 1 << 14;
  std::vector<double> from(2 * kSize, 1.0);
  std::vector<double> to(2 * kSize, 0.0);
  const uint64_t rounds = 15 * scale(argc, argv);
  run_two_threads([&](uint64_t thread) {
    double* a = from.data() + thread * kSize;
    double* b = to.data() + thread * kSize;
    for (uint64_t round = 0; round < rounds; ++round) {
      for (uint64_t i = 1; i + 1 < kSize; ++i) {
        b[i] = 0.25 * a[i - 1] + 0.5 * a[i] + 0.25 * a[i + 1];
      }
      double* const swap = a;
      a = b;
      b = swap;
    }
  });
  return to[5] > 0 ? 0 : 1;
}
