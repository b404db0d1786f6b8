// Atomic sets over whole traces: what is certain about overlapping intervals is what happened.
#include "tso/check/atomic_sets.h"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tests/tso/sequences.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(4'000, 60'000);

// An execution with every access of the cycle, in an order that is possible as far as the intervals
// tell (`timed`), and in which the cycle is there.
void check_witnesses(const Trace& trace, const Analysis& analysis, bool timed) {
  for (const Violation& violation : analysis.findings) {
    std::vector<uint32_t> order;
    for (size_t i = 0; i < violation.witness.size(); ++i) {
      const Step step = violation.witness[i];
      if (step.commit) {
        REQUIRE(i > 0);
        REQUIRE((violation.witness[i - 1] == Step{false, step.event}));
      } else {
        order.push_back(step.event);
      }
    }
    std::vector<uint32_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    REQUIRE(sorted == violation.slice);
    for (size_t i = 0; i < order.size(); ++i) {
      for (size_t j = i + 1; j < order.size(); ++j) {
        const Event& first = trace.events[order[i]];
        const Event& second = trace.events[order[j]];
        REQUIRE((first.thread != second.thread || order[i] < order[j]));
        REQUIRE((!timed || first.thread == second.thread || trace.hi(second) >= first.lo));
      }
    }
    const auto place = [&](uint32_t e) { return std::find(order.begin(), order.end(), e); };
    for (const CycleEdge& edge : violation.cycle) {
      REQUIRE(place(edge.from) < place(edge.to));
    }
  }
}

}  // namespace

TEST_CASE("atomic sets: verdicts over intervals are those over all sequences that they allow") {
  constexpr uint64_t kSeed = 1905;
  std::mt19937_64 random(kSeed);
  int compared = 0;
  int possible = 0;
  int found = 0;
  for (int round = 0; round < kRounds / 20; ++round) {
    RandomTraceOptions made;
    made.threads = 2;
    made.locations = 1 + static_cast<uint32_t>(random() % 2);
    made.steps = 3 + static_cast<uint32_t>(random() % 4);
    made.units = 40;
    made.fences = 0;
    made.intervals = true;
    const Trace trace = random_trace(random, made).trace;
    INFO("seed " << kSeed << " round " << round << "\n" << show(trace));
    const AllSequences sequences(trace);
    if (!sequences.all()) {
      continue;
    }
    const Trace observed = seen(trace);
    const Analysis analysis = analyse_atomic_sets(observed);
    check_witnesses(observed, analysis, true);
    const Verdict verdict = analysis.verdict();
    ++compared;
    REQUIRE((verdict != Verdict::kClean || !sequences.some_violated()));
    REQUIRE((verdict != Verdict::kDefinite || !sequences.some_clean()));
    REQUIRE((verdict != Verdict::kPossible || sequences.some_violated()));
    possible += sequences.some_violated() && sequences.some_clean() ? 1 : 0;
    found += verdict == Verdict::kPossible ? 1 : 0;
  }
  MESSAGE(compared << " compared, " << possible << " violated in some sequence, " << found
                   << " of them found");
  CHECK(compared > kRounds / 40);
  CHECK(found > possible / 2);
}

TEST_CASE("atomic sets: without an order between threads verdicts hold for every interleaving") {
  constexpr uint64_t kSeed = 1906;
  std::mt19937_64 random(kSeed);
  int compared = 0;
  int possible = 0;
  int definite = 0;
  for (int round = 0; round < kRounds / 20; ++round) {
    RandomTraceOptions made;
    made.threads = 2;
    made.locations = 1 + static_cast<uint32_t>(random() % 2);
    made.steps = 3 + static_cast<uint32_t>(random() % 4);
    made.units = 40;
    made.fences = 0;
    made.intervals = random() % 2 == 0;
    const Trace trace = random_trace(random, made).trace;
    INFO("seed " << kSeed << " round " << round << "\n" << show(trace));
    const AllSequences sequences(without_order(trace));
    if (!sequences.all()) {
      continue;
    }
    AtomicSetOptions options;
    options.relation.order = TraceOrder::kThread;
    const Analysis analysis = analyse_atomic_sets(trace, options);
    check_witnesses(trace, analysis, false);
    const Verdict verdict = analysis.verdict();
    ++compared;
    REQUIRE((verdict != Verdict::kClean || !sequences.some_violated()));
    REQUIRE((verdict != Verdict::kDefinite || !sequences.some_clean()));
    REQUIRE((verdict != Verdict::kPossible || sequences.some_violated()));
    possible += verdict == Verdict::kPossible ? 1 : 0;
    definite += verdict == Verdict::kDefinite ? 1 : 0;
  }
  MESSAGE(compared << " compared, " << possible << " possible, " << definite << " definite");
  CHECK(compared > kRounds / 40);
  CHECK(possible > compared / 20);
}

TEST_CASE("atomic sets: what is certain in spite of intervals is what happened") {
  constexpr uint64_t kSeed = 60903;
  std::mt19937_64 random(kSeed);
  int judged[4] = {};
  int by_looking_again = 0;
  for (int round = 0; round < kRounds; ++round) {
    RandomTraceOptions made;
    made.threads = 2 + static_cast<uint32_t>(random() % 2);
    made.locations = 1 + static_cast<uint32_t>(random() % 3);
    made.steps = 4 + static_cast<uint32_t>(random() % 12);
    made.units = 20 + static_cast<uint32_t>(random() % 3) * 15;
    made.locked = static_cast<uint32_t>(random() % 3) * 20;
    made.locks = random() % 2 == 0 ? 30 : 0;
    made.fences = static_cast<uint32_t>(random() % 2) * 10;
    made.nesting = random() % 3 == 0;
    made.values = random() % 3 != 0;
    made.intervals = true;
    Trace trace = random_trace(random, made).trace;
    if (random() % 2 == 0) {
      trace.symbols.sets = {{"A", {{0, 0}, {1, 0}}}};
    }
    const Trace observed = seen(trace);
    INFO("seed " << kSeed << " round " << round << "\n" << show(trace));
    const Verdict happened = analyse_atomic_sets(truth(trace)).verdict();
    REQUIRE((happened == Verdict::kClean || happened == Verdict::kDefinite));
    AtomicSetOptions alone;
    alone.refine = false;
    const Analysis first = analyse_atomic_sets(observed, alone);
    const Analysis second = analyse_atomic_sets(observed);
    for (const Analysis* found : {&first, &second}) {
      if (found->verdict() == Verdict::kClean || found->verdict() == Verdict::kDefinite) {
        REQUIRE(found->verdict() == happened);
      }
    }
    REQUIRE((first.verdict() != Verdict::kDefinite || second.verdict() == Verdict::kDefinite));
    REQUIRE((first.verdict() != Verdict::kClean || second.verdict() == Verdict::kClean));
    ++judged[static_cast<int>(second.verdict())];
    const auto open = [](Verdict verdict) {
      return verdict == Verdict::kPossible || verdict == Verdict::kInconclusive;
    };
    by_looking_again += open(first.verdict()) && !open(second.verdict()) ? 1 : 0;
  }
  MESSAGE("clean " << judged[0] << ", possible " << judged[1] << ", definite " << judged[2]
                   << ", inconclusive " << judged[3] << "; decided by looking again "
                   << by_looking_again);
  CHECK(judged[0] > kRounds / 50);
  CHECK(judged[2] > kRounds / 50);
  CHECK(by_looking_again > kRounds / 100);
}
