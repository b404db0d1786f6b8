// That locks exclude: verdicts with and without it, against all orientations and all executions.
#include "tso/order/lock_exclusion.h"

#include <random>
#include <string>

#include <doctest/doctest.h>

#include "offline/check/orientation_search.h"
#include "tests/rounds.h"
#include "tests/tso/executions.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/naive_checker.h"
#include "tests/tso/random_trace.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(1'000, 20'000);

Analysis judge(const Trace& trace, bool lock_order = true) {
  AnalysisOptions options;
  options.relation.order = TraceOrder::kThread;
  options.relation.lock_order = lock_order;
  const auto result = analyse_exactly(trace, options);
  REQUIRE(result);
  return *result;
}

Verdict verdict(const char* text) { return judge(mini_trace(text)).verdict(); }

}  // namespace

TEST_CASE("critical sections of one lock exclude each other, in either order") {
  CHECK(verdict("T0:[acq(l) R(x) W(x) rel(l)] T1:[acq(l) R(x) W(x) rel(l)]") == Verdict::kClean);
  // One of three threads does not take the lock.
  CHECK(verdict("T0:[acq(l) R(x) W(x) rel(l)] T1:[acq(l) R(x) W(x) rel(l)] T2:[R(x) W(x)]") ==
        Verdict::kPossible);
  // Two locks: nothing is excluded.
  CHECK(verdict("T0:[acq(l) R(x) W(x) rel(l)] T1:[acq(m) R(x) W(x) rel(m)]") == Verdict::kPossible);
  // Two sections in one unit: another may come between them.
  CHECK(verdict("T0:[acq(l) R(x) rel(l) acq(l) W(x) rel(l)] T1:[acq(l) R(x) W(x) rel(l)]") ==
        Verdict::kPossible);
  // ... but not where the thread holds the lock all the time.
  CHECK(verdict("T0:[acq(l) R(x) acq(l) rel(l) W(x) rel(l)] T1:[acq(l) R(x) W(x) rel(l)]") ==
        Verdict::kClean);
}

TEST_CASE("units that hold their locks at one time are serializable") {
  // T1 and T2 share no lock with each other.
  CHECK(verdict("T0:[acq(l) R(x) acq(m) W(y) W(x) rel(l) rel(m)] T1:[acq(l) R(x) W(x) rel(l)] "
                "T2:[acq(m) R(y) W(y) rel(m)]") == Verdict::kClean);
  // T0 gives l back before it takes m: T1 and T2 may come between, one after the other.
  CHECK(verdict("T0:[acq(l) W(x) rel(l) acq(m) W(y) rel(m)] "
                "T1:[acq(l) R(x) acq(m) R(y) rel(m) rel(l)]") == Verdict::kPossible);
  // Without the lock around one of the accesses.
  CHECK(verdict("T0:[acq(l) R(x) rel(l) W(x)] T1:[acq(l) R(x) W(x) rel(l)]") == Verdict::kPossible);
  // A section may be longer than its units, or units longer than the section.
  CHECK(verdict("T0:acq(l) T0:[R(x) W(x)] T0:[R(x) W(x)] T0:rel(l) "
                "T1:[R(z) acq(l) R(x) W(x) rel(l) R(z)]") == Verdict::kClean);
}

TEST_CASE("orders by threads that start and end count beside those by locks") {
  // T0 starts T1 between its accesses: what T0 does later is under the same lock, or not.
  CHECK(verdict("T0:[acq(l) W(x) rel(l) fork(T1) acq(l) W(x) rel(l)] T1:[acq(l) W(x) rel(l)]") ==
        Verdict::kPossible);
  CHECK(verdict("T0:[fork(T1) acq(l) W(x) rel(l)] T1:[acq(l) W(x) rel(l)]") == Verdict::kPossible);
}

TEST_CASE("readers exclude writers, not each other") {
  CHECK(verdict("T0:[racq(l) R(x) R(x) rrel(l)] T1:[acq(l) W(x) rel(l)]") == Verdict::kClean);
  CHECK(verdict("T0:[racq(l) R(x) R(x) rrel(l)] T1:[racq(l) W(x) rrel(l)]") == Verdict::kPossible);
}

TEST_CASE("what is no critical section excludes nothing") {
  // T1 releases what it does not hold.
  CHECK(verdict("T0:[acq(l) R(x) W(x) rel(l)] T1:[acq(l) R(x) W(x) rel(l)] T1:rel(l)") ==
        Verdict::kPossible);
  // The lock is not released: only one order is left for sure, which is not looked for.
  CHECK(verdict("T0:[acq(l) R(x) W(x)] T1:[acq(l) R(x) W(x) rel(l)]") == Verdict::kPossible);
  // A wait in between gives it back.
  Trace trace = mini_trace("T0:[acq(l) R(x) F W(x) rel(l)] T1:[acq(l) R(x) W(x) rel(l)]");
  CHECK(judge(trace).verdict() == Verdict::kClean);
  for (Event& event : trace.events) {
    if (event.kind() == EventKind::kFence) {
      event.set_kind(EventKind::kWait);
    }
  }
  CHECK(judge(trace).verdict() == Verdict::kPossible);
  // Nothing is known of a trace that lacks events.
  trace = mini_trace("T0:[acq(l) R(x) W(x) rel(l)] T1:[acq(l) R(x) W(x) rel(l)]");
  CHECK(judge(trace, false).verdict() == Verdict::kPossible);
  trace.complete = false;
  CHECK(judge(trace).verdict() == Verdict::kPossible);
}

TEST_CASE("a lock that two threads held at once is told") {
  const Trace order = mini_trace("T0:acq(l) T1:acq(l) T0:rel(l) T1:rel(l)");
  Trace trace;
  trace.symbols = order.symbols;
  for (const Event& event : order.events) {
    const bool acquires = event.kind() == EventKind::kAcquire;
    trace.add(event, acquires ? 0 : 20, acquires ? 10 : 30);
  }
  const auto result = analyse_exactly(trace, {});
  REQUIRE(result);
  CHECK(result->verdict() == Verdict::kInconclusive);
  REQUIRE(!result->notes.empty());
  CHECK(result->notes.front().find("two threads held a lock at once") != std::string::npos);
}

TEST_CASE("with locks the verdicts are those of all orientations and of all executions") {
  constexpr uint64_t kSeed = 20261124;
  std::mt19937_64 random(kSeed);
  int verdicts[4] = {};
  int twins = 0;
  int executed = 0;
  int excluded = 0;
  int undecided = 0;  // the naive checker says more than is known of the executions
  for (int round = 0; round < kRounds; ++round) {
    RandomTraceOptions made = random_options(random);
    made.threads = 2 + static_cast<uint32_t>(random() % 2);
    made.steps = 8 + static_cast<uint32_t>(random() % 4);
    made.units = 40;
    made.fences = 0;
    made.locks = 50;
    made.lock_count = 1 + static_cast<uint32_t>(random() % 2);
    made.readers = random() % 2 == 0 ? 40 : 0;
    made.intervals = true;
    made.mixed_sizes = false;
    const RandomTrace happened = random_trace(random, made);
    const Trace& trace = happened.trace;
    AnalysisOptions options = random_analysis(random, made);
    options.relation.semantics = Semantics::kExact;
    options.values = false;
    RelationOptions relation = options.relation;
    if (options.property == Property::kScSerializability) {
      relation.model = MemoryModel::kSc;
    }
    INFO("seed " << kSeed << " round " << round << " property "
                 << static_cast<int>(options.property) << " order "
                 << static_cast<int>(relation.order) << show(trace));
    const auto found = analyse_exactly(trace, options);
    REQUIRE(found);
    REQUIRE(found->verdict() != Verdict::kInconclusive);
    ++verdicts[static_cast<int>(found->verdict())];
    const auto twin = NaiveChecker(trace, relation).verdict(options.property);
    const bool differs = twin && *twin != found->verdict();
    REQUIRE((!differs || *twin == Verdict::kPossible));
    twins += twin ? 1 : 0;
    const Executions executions(trace, relation);
    const auto truth = executions.verdict(options.property, false, differs ? 5'000'000 : 4'000);
    undecided += differs && !truth ? 1 : 0;
    if (truth) {
      ++executed;
      REQUIRE(found->verdict() == *truth);
    }
    if (relation.model == MemoryModel::kTso) {
      const bool bad = executions.violates(options.property, happened.execution);
      REQUIRE(found->verdict() != (bad ? Verdict::kClean : Verdict::kDefinite));
    }
    options.relation.lock_order = false;
    const auto without = analyse_exactly(trace, options);
    REQUIRE(without);
    excluded += found->verdict() != without->verdict() ? 1 : 0;
  }
  MESSAGE(kRounds << " traces: " << verdicts[0] << " clean, " << verdicts[1] << " possible, "
                  << verdicts[2] << " definite; " << twins << " compared with all orientations, "
                  << executed << " with all executions; of " << excluded
                  << " the locks change the verdict");
  CHECK(verdicts[1] > kRounds / 100);
  CHECK(verdicts[2] > kRounds / 100);
  CHECK(twins > kRounds / 10);
  CHECK(executed > kRounds / 10);
  CHECK(excluded > kRounds / 50);
  CHECK(undecided < kRounds / 1000);
}
