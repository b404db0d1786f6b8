// Slices of longer runs with what was stored in them: what happened is never excluded.
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "tests/online/sliced_run.h"
#include "tests/rounds.h"
#include "tests/tso/executions.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tso/check/analysis.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(5'000, 150'000);

}  // namespace

TEST_CASE("a slice excludes nothing that happened") {
  constexpr uint64_t kSeed = 20261125;
  std::mt19937_64 random(kSeed);
  int verdicts[4] = {};
  int by_values = 0;
  int pending_prefix = 0;
  uint64_t remembered = 0;
  for (int round = 0; round < kRounds; ++round) {
    RandomTraceOptions made;
    made.threads = 2 + static_cast<uint32_t>(random() % 2);
    made.locations = 1 + static_cast<uint32_t>(random() % 2);
    made.steps = 10 + static_cast<uint32_t>(random() % 8);
    made.units = 20;
    made.locked = random() % 2 == 0 ? 15 : 0;
    made.fences = 15;
    made.locks = random() % 4 == 0 ? 30 : 0;
    made.values = true;
    made.flags = random() % 4 == 0;
    made.intervals = random() % 2 == 0;
    const RandomTrace happened = random_trace(random, made);
    SlicedRun run(random, happened);
    Trace& trace = run.trace;
    trace.lock_words = run.history.lock_words(run.slice);
    if (random() % 2 == 0) {
      trace.symbols.initial_values = run.history.initial_values(run.slice, random() % 100);
      remembered += trace.symbols.initial_values.size();
    }
    pending_prefix += trace.pending_prefix > 0 ? 1 : 0;
    INFO("seed " << kSeed << " round " << round << " in front " << trace.pending_prefix << "\n"
                 << show(trace));
    AnalysisOptions options;
    const auto found = analyse(trace, options);
    REQUIRE(found);
    const bool bad = Executions(trace, {}).violates(options.property, run.execution);
    REQUIRE(found->verdict() != (bad ? Verdict::kClean : Verdict::kDefinite));
    for (const std::string& note : found->notes) {
      REQUIRE(note.find("values") == std::string::npos);
    }
    ++verdicts[static_cast<int>(found->verdict())];
    options.values = false;
    const auto without = analyse(trace, options);
    REQUIRE(without);
    by_values += without->verdict() != found->verdict() ? 1 : 0;
  }
  MESSAGE(kRounds << " slices, " << pending_prefix << " with something in front: " << verdicts[0]
                  << " clean, " << verdicts[1] << " possible, " << verdicts[2] << " definite, "
                  << verdicts[3] << " not decided; " << by_values << " by their values");
  CHECK(pending_prefix > kRounds / 4);
  CHECK(remembered > kRounds / 50);
  CHECK(by_values > kRounds / 100);
  CHECK(verdicts[2] > kRounds / 100);
}
