// How the search for root causes grows: random executions of 2 to 4 threads by the number of their
// conflicts.
//
//   explain_bench [LARGEST]        conflicts, 100,000
//
// Operations have four to eight accesses, half of them writes. The number of locations grows with
// the execution, so that an access conflicts with a constant share of the others ("dense": 4
// locations) or with some twenty ("sparse").
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <vector>

#include "offline/explain/root_causes.h"

namespace {

using namespace tsomon;
using explain::RootCauseProblem;

RootCauseProblem random_problem(std::mt19937_64& random, uint32_t threads, uint32_t count,
                                uint32_t locations, bool store_buffers) {
  RootCauseProblem problem;
  std::vector<uint32_t> positions(threads, 0);
  std::vector<uint32_t> left(threads, 0);  // of the operation
  std::vector<uint32_t> operations(threads, 0);
  std::vector<std::vector<uint32_t>> at(locations);
  std::vector<bool> writes;
  uint32_t next_operation = 0;
  uint32_t thread = 0;
  for (uint32_t i = 0; i < count; ++i) {
    // Threads run in slices of some accesses.
    thread = random() % 3 == 0 ? static_cast<uint32_t>(random() % threads) : thread;
    if (left[thread] == 0) {
      left[thread] = 4 + static_cast<uint32_t>(random() % 5);
      operations[thread] = next_operation++;
    }
    --left[thread];
    const bool write = random() % 2 == 0;
    problem.accesses.push_back({thread, operations[thread], positions[thread]++,
                                !store_buffers || !write, !store_buffers || write});
    writes.push_back(write);
    std::vector<uint32_t>& same = at[random() % locations];
    for (const uint32_t before : same) {
      if (problem.accesses[before].thread != thread && (write || writes[before])) {
        problem.conflicts.push_back({before, i});
      }
    }
    same.push_back(i);
  }
  return problem;
}

void measure(uint32_t threads, uint32_t target, bool dense, bool store_buffers) {
  std::mt19937_64 random(threads * 1000 + target);
  // conflicts = count^2 / 2 * (1 - 1/threads) * 3/4 / locations
  const double share = 0.375 * (1.0 - 1.0 / threads);
  const uint32_t count = dense ? static_cast<uint32_t>(std::sqrt(target * 4 / share)) : target / 10;
  const uint32_t locations =
      dense ? 4 : std::max<uint32_t>(1, static_cast<uint32_t>(share * count * count / target));
  const RootCauseProblem problem = random_problem(random, threads, count, locations, store_buffers);
  const std::clock_t begin = std::clock();
  const explain::RootCauses causes = explain::find_root_causes(problem);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  std::printf("| %u | %s | %s | %zu | %zu | %llu | %zu | %.3f | %s |\n", threads,
              dense ? "dense" : "sparse", store_buffers ? "TSO" : "SC", problem.accesses.size(),
              problem.conflicts.size(), static_cast<unsigned long long>(causes.sequences),
              causes.minimal.size(), seconds, causes.complete ? "yes" : "no");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const uint32_t largest =
      argc > 1 ? static_cast<uint32_t>(std::strtoul(argv[1], nullptr, 10)) : 100'000;
  std::printf(
      "| threads | conflicts are | order | accesses | conflicts | sequences | minimal sets | "
      "processor seconds | complete |\n|---|---|---|---|---|---|---|---|---|\n");
  for (const bool store_buffers : {false, true}) {
    for (const bool dense : {true, false}) {
      for (uint32_t threads = 2; threads <= 4; ++threads) {
        for (uint32_t target = 100; target <= largest; target *= 10) {
          measure(threads, target, dense, store_buffers);
        }
      }
    }
  }
  return 0;
}
