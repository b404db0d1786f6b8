// The consistency check on simulated runs: many threads on few locations, and damaged long ones.
#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "offline/consistency/consistency.h"
#include "offline/consistency/memory_order.h"
#include "offline/consistency/state_search.h"
#include "tests/offline/naive_consistency.h"
#include "tests/offline/simulated_run.h"
#include "tests/tso/mini_trace.h"

using namespace tsomon;
using tsomon::testing::naive_consistency;
using tsomon::testing::RunShape;
using tsomon::testing::show;
using tsomon::testing::simulated_run;

namespace {

#if defined(TSOMON_SANITIZED) || !defined(NDEBUG)
constexpr int kRounds = 300;
constexpr uint32_t kLong = 4'000;
constexpr uint32_t kManyLocations = 8;
#else
constexpr int kRounds = 2'000;
constexpr uint32_t kLong = 20'000;
constexpr uint32_t kManyLocations = 64;
#endif
constexpr uint64_t kMaxStates = 2'000;

constexpr auto kSc = ConsistencyVerdict::kSc;
constexpr auto kTso = ConsistencyVerdict::kTso;
constexpr auto kInconsistent = ConsistencyVerdict::kInconsistent;
constexpr auto kInconclusive = ConsistencyVerdict::kInconclusive;

// Eight threads on two locations, in half of the cases with some values changed.
Trace crowded_run(uint64_t seed) {
  std::mt19937_64 random(seed);
  RunShape shape;
  shape.threads = 2 + static_cast<uint32_t>(random() % 7);
  shape.locations = 2;
  shape.operations = 10 + static_cast<uint32_t>(random() % 20);
  shape.values = random() % 2 == 0 ? 0 : 2 + static_cast<uint32_t>(random() % 4);
  shape.lag = 1 + static_cast<uint32_t>(random() % 8);
  const bool damaged = random() % 2 == 0;
  return simulated_run(shape, seed, [&](uint32_t, uint64_t value) {
    return damaged && random() % 8 == 0
               ? random() % (shape.values == 0 ? shape.operations : shape.values)
               : value;
  });
}

ConsistencyReport check(const Trace& trace, const ConsistencyOptions& options = {}) {
  auto report = check_consistency(trace, options);
  REQUIRE(report);
  return std::move(*report);
}

}  // namespace

TEST_CASE("crowded runs: the verdicts are those of all states of the machine") {
  int verdicts[3] = {};
  int decided = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Trace trace = crowded_run(static_cast<uint64_t>(round));
    INFO("seed " << round << "\n" << show(trace));
    const auto in_sc = naive_consistency(trace, MemoryModel::kSc, kMaxStates);
    const auto in_tso = naive_consistency(trace, MemoryModel::kTso, kMaxStates);
    if (!in_sc || !in_tso) {
      continue;
    }
    const ConsistencyReport report = check(trace);
    REQUIRE(report.verdict == (*in_sc ? kSc : *in_tso ? kTso : kInconsistent));
    ++verdicts[*in_sc ? 0 : *in_tso ? 1 : 2];
    decided += report.decisions > 0 ? 1 : 0;
    // Both ways to search, each alone.
    const ValueProblem problem = make_value_problem(trace, false);
    for (const MemoryModel model : {MemoryModel::kSc, MemoryModel::kTso}) {
      MemoryOrder order(problem, model);
      const bool fits = model == MemoryModel::kSc ? *in_sc : *in_tso;
      if (!order.settle()) {
        REQUIRE(!fits);
        continue;
      }
      const StateSearchResult tried = search_states(problem, order, 1'000'000, 1U << 30);
      REQUIRE(tried.answer == (fits ? Answer::kYes : Answer::kNo));
    }
  }
  MESSAGE(verdicts[0] << " sc, " << verdicts[1] << " tso, " << verdicts[2] << " inconsistent; "
                      << decided << " needed decisions");
  CHECK(verdicts[0] + verdicts[1] + verdicts[2] > kRounds / 2);
  CHECK(verdicts[0] > kRounds / 100);
  CHECK(verdicts[1] > kRounds / 200);
  CHECK(verdicts[2] > kRounds / 20);
  CHECK(decided > kRounds / 40);
}

TEST_CASE("a long run that was damaged") {
  for (const uint32_t threads : {4U, 16U}) {
    for (const uint32_t locations : {4U, kManyLocations}) {
      const RunShape shape = {threads, locations, kLong};
      ConsistencyOptions options;
      options.model = ConsistencyModel::kTso;
      options.max_decisions = 2'000;
      CHECK(check(simulated_run(shape, 1), options).verdict == kTso);

      // No store has this value: whatever else is true, nothing explains it.
      const auto lost = check(simulated_run(shape, 1,
                                            [&](uint32_t n, uint64_t value) {
                                              return n == kLong / 4 ? uint64_t{kLong} * 2 : value;
                                            }),
                              options);
      CHECK(lost.verdict == kInconsistent);
      CHECK(lost.contradiction.size() == 1);

      // Two loads of one thread and location, far apart, have changed places.
      const Trace trace = simulated_run(shape, 1);
      std::vector<uint32_t> reads;  // of thread 0 and location 0, counted among all reads
      std::vector<uint64_t> values;
      uint32_t count = 0;
      for (const Event& event : trace.events) {
        if (const auto value = trace.read_value(event)) {
          if (event.kind() == EventKind::kRead && event.thread == 0 && event.address == 0) {
            reads.push_back(count);
            values.push_back(*value);
          }
          ++count;
        }
      }
      REQUIRE(reads.size() > 8);
      const size_t first = reads.size() / 4;
      const size_t second = reads.size() / 2;
      REQUIRE(values[first] != values[second]);
      const auto swapped = check(simulated_run(shape, 1,
                                               [&](uint32_t n, uint64_t value) {
                                                 return n == reads[first]    ? values[second]
                                                        : n == reads[second] ? values[first]
                                                                             : value;
                                               }),
                                 options);
      CHECK(swapped.verdict == kInconsistent);
      CHECK(!swapped.contradiction.empty());
    }
  }
}

TEST_CASE("values that say little: a bound never changes an answer, only withholds it") {
  int decided = 0;
  int withheld = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    const RunShape shape = {4, 2 + static_cast<uint32_t>(seed % 3), 200, 2, 3};
    const Trace trace = simulated_run(shape, seed, [&](uint32_t, uint64_t value) {
      return random() % 15 == 0 ? 1 - value : value;
    });
    ConsistencyOptions options;
    options.model = seed % 2 == 0 ? ConsistencyModel::kTso : ConsistencyModel::kSc;
    options.max_decisions = 2'000;
    const ConsistencyReport whole = check(trace, options);
    for (const uint64_t bound : {1, 10, 100}) {
      options.max_decisions = bound;
      const ConsistencyReport bounded = check(trace, options);
      if (bounded.verdict == kInconclusive) {
        CHECK(!bounded.complete);
        ++withheld;
      } else if (whole.verdict != kInconclusive) {
        CHECK(bounded.verdict == whole.verdict);
        ++decided;
      }
    }
  }
  MESSAGE(decided << " decided, " << withheld << " withheld");
  CHECK(decided > 20);
  CHECK(withheld > 20);
}
