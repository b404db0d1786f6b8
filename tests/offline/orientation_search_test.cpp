// The search for cycles against the enumeration of all orientations and against the twins.
#include "offline/check/orientation_search.h"

#include <algorithm>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "tests/rounds.h"
#include "tests/tso/executions.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/naive_checker.h"
#include "tests/tso/random_trace.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kTwins = rounds(8'000, 200'000);
const int kSmall = rounds(6'000, 105'000);
const int kLarge = rounds(100, 1'500);
constexpr uint64_t kMaxExecutions = 4'000;  // steps of their enumeration
constexpr uint64_t kMaxDoubtful = 5'000'000;

std::string question(const AnalysisOptions& options) {
  return "property " + std::to_string(static_cast<int>(options.property)) + " semantics " +
         std::to_string(static_cast<int>(options.relation.semantics)) + " order " +
         std::to_string(static_cast<int>(options.relation.order)) + " store buffer " +
         std::to_string(options.relation.store_buffer) + " values " +
         std::to_string(static_cast<int>(options.values)) + "\n";
}

Analysis searched(const Trace& trace, const AnalysisOptions& options) {
  const auto result = analyse_exactly(trace, options);
  REQUIRE(result);
  if (options.relation.semantics == Semantics::kExact) {
    for (const Violation& finding : result->findings) {
      REQUIRE(!finding.witness.empty());
    }
  }
  return *result;
}

}  // namespace

TEST_CASE("the verdicts are those of all orientations and of all executions") {
  constexpr uint64_t kSeed = 20260607;
  std::mt19937_64 random(kSeed);
  int verdicts[4] = {};
  int rounds = 0;
  int twins = 0;
  int narrower =
      0;  // the naive checker knows forwarding constraints only: more orders than there are executions
  int executed = 0;
  int with_values = 0;
  for (; twins < kTwins && rounds < 2 * kTwins; ++rounds) {
    RandomTraceOptions made = random_options(random);
    made.threads = 3 + static_cast<uint32_t>(random() % 2);
    made.locations = 1 + static_cast<uint32_t>(random() % 4);
    const Trace trace = random_trace(random, made).trace;
    AnalysisOptions options = random_analysis(random, made);
    INFO("seed " << kSeed << " round " << rounds << " " << question(options) << show(trace));
    const Analysis found = searched(trace, options);
    REQUIRE(found.verdict() != Verdict::kInconclusive);
    ++verdicts[static_cast<int>(found.verdict())];
    RelationOptions relation = options.relation;
    if (options.property == Property::kScSerializability) {
      relation.model = MemoryModel::kSc;
    }
    const bool exact = relation.semantics == Semantics::kExact;
    const auto twin = NaiveChecker(trace, relation).verdict(options.property);
    bool differs = false;
    if (twin) {
      ++twins;
      differs = found.verdict() != *twin;
      REQUIRE((!differs || (exact && *twin == Verdict::kPossible)));
      narrower += differs ? 1 : 0;
    }
    if (exact && (rounds % 2 == 0 || differs)) {
      const Executions executions(trace, relation);
      const uint64_t steps = differs ? kMaxDoubtful : kMaxExecutions;
      const auto truth = executions.verdict(options.property, false, steps);
      REQUIRE((truth || !differs));
      if (truth) {
        ++executed;
        REQUIRE(found.verdict() == *truth);
        if (made.values && !made.mixed_sizes && options.property != Property::kScSerializability) {
          ++with_values;
          AnalysisOptions valued = options;
          valued.values = true;
          REQUIRE(searched(trace, valued).verdict() ==
                  executions.verdict(options.property, true, steps));
        }
      }
    }
  }
  MESSAGE(rounds << " traces: " << verdicts[0] << " clean, " << verdicts[1] << " possible, "
                 << verdicts[2] << " definite; " << twins
                 << " compared with all orientations, of which " << narrower
                 << " have fewer executions than forwarding constraints allow; " << executed
                 << " compared with all executions, " << with_values << " also with their values");
  CHECK(twins == kTwins);
  CHECK(verdicts[1] > rounds / 50);
  CHECK(verdicts[2] > rounds / 100);
  CHECK(executed > rounds / 10);
  CHECK(with_values > rounds / 50);
  CHECK(narrower < rounds / 1000);
}

TEST_CASE("what lies outside of the units of a cycle may exclude it, or all else") {
  // T1's load of the initial value was issued after T0's store, that after the load of T2, which
  // was forwarded then: nothing is committed before T1's load.
  const Trace forwarded =
      mini_trace("T2:[W(x=1) T3:W(x=1) T0:R(x=0) T2:R(x=1)] T0:W(x=1) T1:R(x=0)");
  const Trace stored_twice = mini_trace("T0:W(x=3) T0:W(x=2) T1:[W(x=3) T1:R(x=3)] T3:U(x=0,1)");
  for (const Trace* trace : {&forwarded, &stored_twice}) {
    CHECK(searched(*trace, {}).verdict() == Verdict::kClean);
    CHECK(Executions(*trace, {}).verdict(Property::kSerializability, true, kMaxExecutions) ==
          Verdict::kClean);
  }
  // T0 has read 0 and then 1, so the latter from T1, before the locked operation reads T3's 0.
  Trace definite =
      mini_trace("T1:[W(x=1) T0:R(x=0) T3:[R(x=0) T3:W(x=0)] T0:R(x=1) T1:R(x=1)] T3:U(x=0,0)");
  definite.symbols.initial_zero = false;
  CHECK(searched(definite, {}).verdict() == Verdict::kDefinite);
}

TEST_CASE("a load may have read a store that is in no slice, in either order with others") {
  // T0's store to y comes before T1's fence or behind it: neither is on the cycle, and only where
  // it comes before can T1 have loaded its own 24 at last.
  const Trace trace = mini_trace(
      "T0:W(y=2) T1:W(y=24) T1:F T1:[R(z=30) T2:W(z=37) T2:W(y=24) T0:U(z=30,40) "
      "T1:R(y=24)]");
  for (const bool values : {false, true}) {
    AnalysisOptions options;
    options.values = values;
    CHECK(searched(trace, options).verdict() == Verdict::kPossible);
  }
}

TEST_CASE("what happened is never excluded, in longer runs with few values") {
  constexpr uint64_t kSeed = 20261123;
  std::mt19937_64 random(kSeed);
  int verdicts[4] = {};
  for (int round = 0; round < kSmall / 3; ++round) {
    RandomTraceOptions made = random_options(random);
    made.threads = 3 + static_cast<uint32_t>(random() % 2);
    made.locations = 2 + static_cast<uint32_t>(random() % 2);
    made.steps = 10 + static_cast<uint32_t>(random() % 20);
    made.units = 15;
    made.locked = 15;
    made.mixed_sizes = false;
    made.values = true;
    made.unvalued = round % 2 == 0 ? 30 : 0;
    const RandomTrace happened = random_trace(random, made);
    AnalysisOptions options;
    options.relation.store_buffer = made.store_buffer;
    options.property = random() % 4 == 0 ? Property::kRobustness : Property::kSerializability;
    for (const bool zero : {true, false}) {
      Trace trace = happened.trace;
      trace.symbols.initial_zero = zero;
      INFO("seed " << kSeed << " round " << round << " " << question(options) << show(trace));
      const Verdict verdict = searched(trace, options).verdict();
      const bool bad =
          Executions(trace, options.relation).violates(options.property, happened.execution);
      REQUIRE(verdict != (bad ? Verdict::kClean : Verdict::kDefinite));
      ++verdicts[static_cast<int>(verdict)];
    }
  }
  MESSAGE(verdicts[0] << " clean, " << verdicts[1] << " possible, " << verdicts[2] << " definite, "
                      << verdicts[3] << " not decided");
  CHECK(verdicts[0] > kSmall / 100);
  CHECK(verdicts[2] > kSmall / 100);
}

TEST_CASE("the search and the enumeration of all orientations agree") {
  constexpr uint64_t kSeed = 20260608;
  std::mt19937_64 random(kSeed);
  int verdicts[4] = {};
  for (int round = 0; round < kSmall; ++round) {
    const RandomTraceOptions made = random_options(random);
    const Trace trace = random_trace(random, made).trace;
    AnalysisOptions options = random_analysis(random, made);
    options.values = made.values && random() % 2 == 0;
    INFO("seed " << kSeed << " round " << round << " " << question(options) << show(trace));
    const Analysis found = searched(trace, options);
    const auto enumerated = analyse(trace, options);
    REQUIRE(enumerated);
    REQUIRE(enumerated->complete() == found.complete());
    REQUIRE(enumerated->verdict() == found.verdict());
    REQUIRE(enumerated->violations() == found.violations());
    ++verdicts[static_cast<int>(found.verdict())];
  }
  MESSAGE(kSmall << " traces: " << verdicts[0] << " clean, " << verdicts[1] << " possible, "
                 << verdicts[2] << " definite");
  CHECK(verdicts[1] > kSmall / 50);
  CHECK(verdicts[2] > kSmall / 50);
}

TEST_CASE("larger traces: equal where both decide, and the search decides more") {
  constexpr uint64_t kSeed = 4;
  std::mt19937_64 random(kSeed);
  int both = 0;
  int only_search = 0;
  int only_enumeration = 0;
  for (int round = 0; round < kLarge; ++round) {
    RandomTraceOptions made = random_options(random);
    made.threads = 3 + static_cast<uint32_t>(random() % 3);
    made.locations = 2 + static_cast<uint32_t>(random() % 4);
    made.steps = 15 + static_cast<uint32_t>(random() % 30);
    made.fences = 10;
    made.locked = 10;
    const Trace trace = random_trace(random, made).trace;
    AnalysisOptions options = random_analysis(random, made);
    options.values = made.values && random() % 2 == 0;
    options.bounds.max_steps = 300;
    INFO("seed " << kSeed << " round " << round << " " << question(options) << show(trace));
    const Analysis found = searched(trace, options);
    const auto enumerated = analyse(trace, options);
    REQUIRE(enumerated);
    // A verdict that is not certain is kPossible, incomplete, or kInconclusive.
    both += found.complete() && enumerated->complete() ? 1 : 0;
    only_search += found.complete() && !enumerated->complete() ? 1 : 0;
    only_enumeration += !found.complete() && enumerated->complete() ? 1 : 0;
    if (found.complete() && enumerated->complete()) {
      REQUIRE(found.verdict() == enumerated->verdict());
    } else if (found.complete() && found.verdict() == Verdict::kClean) {
      REQUIRE(enumerated->verdict() == Verdict::kInconclusive);
    } else if (enumerated->complete() && enumerated->verdict() == Verdict::kClean) {
      REQUIRE(found.verdict() == Verdict::kInconclusive);
    }
  }
  MESSAGE(kLarge << " traces: " << both << " decided by both, " << only_search
                 << " by the search only, " << only_enumeration << " by the enumeration only");
  CHECK(both > kLarge / 4);
  CHECK(only_search > only_enumeration);
}

TEST_CASE("long slices without a fence are decided") {
  struct Slice {
    uint32_t threads;
    uint32_t locations;
    uint64_t open;  // edges, at least
  };
  for (const Slice slice : {Slice{2, 2, 3'000}, Slice{4, 4, 2'000}, Slice{8, 2, 6'000},
                            Slice{8, 16, 500}, Slice{16, 4, 2'000}}) {
    RandomTraceOptions made;
    made.threads = slice.threads;
    made.locations = slice.locations;
    made.steps = 200;
    made.units = 30;
    made.locked = 0;
    made.fences = 0;
    std::mt19937_64 random(1);
    const Trace trace = random_trace(random, made).trace;
    INFO(slice.threads << " threads, " << slice.locations << " locations");
    const Analysis found = searched(trace, {});
    CHECK(found.complete());
    CHECK(found.open_edges >= slice.open);
    CHECK(found.verdict() != Verdict::kClean);
  }
}

TEST_CASE("a bound makes the answer inconclusive, never another one") {
  constexpr uint64_t kSeed = 5;
  std::mt19937_64 random(kSeed);
  int bounded = 0;
  for (int round = 0; round < kLarge; ++round) {
    RandomTraceOptions made = random_options(random);
    made.steps = 12;
    const Trace trace = random_trace(random, made).trace;
    AnalysisOptions options = random_analysis(random, made);
    const Verdict verdict = searched(trace, options).verdict();
    options.bounds.max_steps = 0;
    INFO("seed " << kSeed << " round " << round << " " << question(options) << show(trace));
    const Analysis found = searched(trace, options);
    bounded += found.complete() ? 0 : 1;
    REQUIRE((found.verdict() == verdict ||
             (!found.complete() && (found.verdict() == Verdict::kPossible ||
                                    found.verdict() == Verdict::kInconclusive))));
  }
  CHECK(bounded > 0);
}

TEST_CASE("what makes verdicts sharper, left out, makes them at most weaker") {
  constexpr uint64_t kSeed = 20260813;
  std::mt19937_64 random(kSeed);
  int weaker[5] = {};
  for (int round = 0; round < std::max(kSmall / 8, 3'300);
       ++round) {  // a small store buffer decides seldom
    RandomTraceOptions made = random_options(random);
    made.values = random() % 4 != 0;
    made.intervals = random() % 2 == 0;
    made.locks = random() % 2 == 0 ? 25 : 0;
    made.threads_start = random() % 2 == 0;
    const Trace trace = random_trace(random, made).trace;
    AnalysisOptions all;
    all.property = random() % 4 == 0 ? Property::kRobustness : Property::kSerializability;
    all.relation.store_buffer = made.store_buffer;
    INFO("seed " << kSeed << " round " << round << " " << question(all) << show(trace));
    const Verdict sharp = searched(trace, all).verdict();
    // Without a common time, or the order of locks, nothing says what was handed over to whom, and no
    // order is concluded.
    const bool hands_over =
        std::any_of(trace.events.begin(), trace.events.end(),
                    [](const Event& event) { return is(event, kinds::kHandOvers); });
    for (int refinement = 0; refinement < 5; ++refinement) {
      if (hands_over && (refinement == 0 || refinement == 3)) {
        continue;
      }
      AnalysisOptions without = all;
      switch (refinement) {
        case 0:
          without.relation.order = TraceOrder::kThread;
          break;
        case 1:
          without.values = false;
          break;
        case 2:
          without.relation.store_buffer = 0;
          break;
        case 3:
          without.relation.lock_order = false;
          break;
        default:
          without.relation.thread_order = false;
          break;
      }
      INFO("without " << refinement);
      const Analysis dull = searched(trace, without);
      if (!dull.complete()) {
        REQUIRE((dull.verdict() == Verdict::kInconclusive || dull.verdict() == Verdict::kPossible));
        continue;
      }
      REQUIRE((dull.verdict() == sharp || dull.verdict() == Verdict::kPossible ||
               sharp == Verdict::kInconclusive));
      weaker[refinement] += dull.verdict() != sharp ? 1 : 0;
    }
  }
  MESSAGE("weaker without intervals " << weaker[0] << ", values " << weaker[1]
                                      << ", store buffer size " << weaker[2] << ", locks "
                                      << weaker[3] << ", threads " << weaker[4]);
#if !defined(TSOMON_SANITIZED)  // too few rounds there
  for (const int count : weaker) {
    CHECK(count > 0);
  }
#endif
}

TEST_CASE("no event of a witness could be left out, but for a cycle that every execution has") {
  constexpr uint64_t kSeed = 20260814;
  std::mt19937_64 random(kSeed);
  int witnesses = 0;
  int kept_for_cycle = 0;
  size_t events = 0;
  for (int round = 0; round < kSmall / 8; ++round) {
    RandomTraceOptions made = random_options(random);
    made.units = 40;
    const Trace trace = random_trace(random, made).trace;
    AnalysisOptions options = random_analysis(random, made);
    options.values = made.values && options.relation.semantics == Semantics::kExact;
    INFO("seed " << kSeed << " round " << round << " " << question(options) << show(trace));
    const LocationTable locations(trace);
    RelationOptions relation_options = options.relation;
    if (options.property == Property::kScSerializability) {
      relation_options.model = MemoryModel::kSc;
    }
    const Relation relation(trace, locations, relation_options);
    WitnessClaim claim = {options.property, options.relation, WitnessValues::kIgnored};
    for (const Violation& violation : searched(trace, options).findings) {
      if (violation.witness.empty()) {
        continue;
      }
      ++witnesses;
      events += violation.slice.size();
      // An order of issues may be that of an execution in which stores commit late.
      claim.values = WitnessValues::kShown;
      if (options.property != Property::kScSerializability ||
          !check_witness(trace, violation.witness, claim)) {
        claim.values = WitnessValues::kIgnored;
      }
      REQUIRE(check_witness(trace, violation.witness, claim));
      for (const CycleEdge& edge : violation.cycle) {
        for (const uint32_t end : {edge.from, edge.to}) {
          REQUIRE(std::binary_search(violation.slice.begin(), violation.slice.end(), end));
        }
      }
      for (const uint32_t left_out : violation.slice) {
        const bool is_source =
            std::any_of(violation.slice.begin(), violation.slice.end(),
                        [&](uint32_t e) { return relation.source(e) == left_out; });
        std::vector<Step> fewer = violation.witness;
        std::erase_if(fewer, [&](const Step& step) { return step.event == left_out; });
        const bool needless = !is_source && check_witness(trace, fewer, claim).has_value();
        if (violation.verdict == Verdict::kDefinite) {
          kept_for_cycle += needless ? 1 : 0;
        } else {
          REQUIRE(!needless);
        }
      }
    }
  }
  MESSAGE(witnesses << " witnesses of " << events << " events, " << kept_for_cycle
                    << " of them for the cycle alone");
  CHECK(witnesses > kSmall / 100);
  CHECK(kept_for_cycle < witnesses / 10);
}
