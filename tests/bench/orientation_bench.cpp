// The search for cycles against the enumeration of orientations, on windows that are hard on
// purpose: orientation_bench [SECONDS per shape, for the enumeration]
//
// Prints for each shape the open edges, and for both ways the verdict, whether it is complete, and
// the seconds. Shapes: random threads that write few locations without a fence; the same with units
// that never conflict twice; loads that may be forwarded, by the thousand.
#include <chrono>
#include <cstdint>
#include <random>
#include <string>

#include <fmt/format.h>

#include "offline/check/orientation_search.h"
#include "tests/tso/random_trace.h"

using namespace tsomon;

namespace {

const char* name(Verdict verdict) {
  static const char* const kNames[] = {"clean", "possible", "definite", "inconclusive"};
  return kNames[static_cast<int>(verdict)];
}

void judge(const std::string& shape, const Trace& trace, bool enumerate) {
  for (const bool search : {true, false}) {
    if (!search && !enumerate) {
      continue;
    }
    AnalysisOptions options;
    options.max_findings = 1;
    const auto start = std::chrono::steady_clock::now();
    const auto result = search ? analyse_exactly(trace, options) : analyse(trace, options);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    fmt::print("{:<44} {:>7} {:>8} {:>6} {:<11} {:<12} {:<10} {:>9.3f}\n", shape,
               trace.events.size(), result->open_edges, result->components,
               search ? "search" : "enumeration", name(result->verdict()),
               result->complete() ? "complete" : "incomplete", seconds);
    for (const std::string& note : result->notes) {
      fmt::print("    {}\n", note);
    }
    std::fflush(stdout);
  }
}

Trace unfenced(uint32_t threads, uint32_t locations, uint32_t steps, uint32_t fences,
               uint32_t units) {
  testing::RandomTraceOptions options;
  options.threads = threads;
  options.locations = locations;
  options.steps = steps;
  options.units = units;
  options.locked = fences / 2;
  options.fences = fences;
  std::mt19937_64 random(1);
  return testing::random_trace(random, options).trace;
}

}  // namespace

int main(int argc, char** argv) {
  const bool enumerate = argc > 1;
  (void)argv;
  fmt::print("{:<44} {:>7} {:>8} {:>6} {:<11} {:<12} {:<10} {:>9}\n", "shape", "events", "open",
             "parts", "way", "verdict", "", "seconds");
  for (const uint32_t threads : {2U, 4U, 8U, 16U}) {
    for (const uint32_t locations : {2U, 4U, 16U}) {
      for (const uint32_t fences : {0U, 10U}) {
        for (const uint32_t steps : {50U, 200U, 1000U}) {
          judge(fmt::format("{} threads, {} locations, {}% fences", threads, locations, fences),
                unfenced(threads, locations, steps, fences, 30), enumerate);
        }
      }
    }
  }
  return 0;
}
