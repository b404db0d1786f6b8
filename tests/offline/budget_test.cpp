// Analyses that end before their time: by their budget, wherever that is, and by a stop.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "offline/check/orientation_search.h"
#include "offline/consistency/consistency.h"
#include "tests/tso/random_trace.h"
#include "tso/check/analysis_budget.h"
#include "tso/check/atomic_sets.h"
#include "tso/support/work.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

#if defined(TSOMON_SANITIZED)
constexpr int kTraces = 4;
#else
constexpr int kTraces = 25;
#endif
constexpr uint64_t kShares = 12;  // of the work of the whole

RandomTrace long_trace(std::mt19937_64& random) {
  RandomTraceOptions options;
  options.threads = 2 + random() % 3;
  options.locations = 3;
  options.steps = 1200;
  options.units = 20;
  options.fences = static_cast<uint32_t>(random() % 3) * 15;
  options.values = random() % 2 == 0;
  options.intervals = true;
  return random_trace(random, options);
}

std::vector<std::string> texts(const Analysis& analysis) {
  return {analysis.notes.begin(), analysis.notes.end()};
}

bool notes_have(const Analysis& analysis, WorkLimit limit) {
  return std::find(analysis.notes.begin(), analysis.notes.end(), limit_text(limit)) !=
         analysis.notes.end();
}

// The analysis within so much work, and how much it took.
struct Bounded {
  Analysis analysis;
  uint64_t work = 0;
};
Bounded analyse_with(uint64_t max_work, const Trace& trace, const AnalysisOptions& options = {}) {
  WorkMeter meter({.max_work = max_work});
  Bounded result;
  {
    const WorkScope scope(&meter);
    result.analysis = *analyse_exactly(trace, options);
  }
  result.work = meter.work();
  return result;
}

// An analysis that ended says less than the whole one, and nothing else.
void compare(const Analysis& ended, const Analysis& whole, WorkLimit limit) {
  REQUIRE(!ended.complete());
  REQUIRE(notes_have(ended, limit));
  REQUIRE(ended.verdict() != Verdict::kClean);
  REQUIRE(ended.violations() <= whole.violations());
  REQUIRE((ended.verdict() == Verdict::kInconclusive) == (ended.violations() == 0));
  if (ended.verdict() == Verdict::kDefinite) {
    REQUIRE(whole.verdict() == Verdict::kDefinite);
  }
}

}  // namespace

TEST_CASE("an analysis whose budget ends says so, and less than the whole one") {
  std::mt19937_64 random(11);
  uint64_t ended = 0;
  uint64_t found = 0;
  for (int i = 0; i < kTraces; ++i) {
    const Trace trace = long_trace(random).trace;
    const auto [whole, work] = analyse_with(UINT64_MAX - 1, trace);
    REQUIRE(!ended_early(whole));
    REQUIRE(work > 0);
    for (uint64_t share = 0; share <= kShares; ++share) {
      const Analysis some = analyse_with(work * share / kShares, trace).analysis;
      if (!ended_early(some)) {
        REQUIRE(some.verdict() == whole.verdict());
        REQUIRE(some.violations() == whole.violations());
        REQUIRE(texts(some) == texts(whole));
        continue;
      }
      ++ended;
      found += some.violations() > 0 ? 1 : 0;
      compare(some, whole, WorkLimit::kWork);
      // The same, however many threads search.
      AnalysisOptions options;
      options.threads = 3;
      const Analysis again = analyse_with(work * share / kShares, trace, options).analysis;
      REQUIRE(again.verdict() == some.verdict());
      REQUIRE(again.violations() == some.violations());
      REQUIRE(texts(again) == texts(some));
    }
  }
  CHECK(ended > kTraces);
  MESSAGE(ended << " ended, " << found << " of them with violations");
}

TEST_CASE("an analysis that is stopped says so") {
  std::mt19937_64 random(12);
  const Trace trace = long_trace(random).trace;
  const Analysis whole = *analyse_exactly(trace, {});
  StopFlag stop;
  WorkMeter meter({}, &stop);
  const WorkScope scope(&meter);
  stop.ask();
  const Analysis ended = *analyse_exactly(trace, {});
  compare(ended, whole, WorkLimit::kStopped);
  AtomicSetOptions sets;
  sets.sets = SetChoice::kDeclared;
  const Analysis of_sets = analyse_atomic_sets(trace, sets);
  CHECK(of_sets.verdict() == Verdict::kInconclusive);
  CHECK(notes_have(of_sets, WorkLimit::kStopped));
  const auto consistency = check_consistency(trace, {});
  REQUIRE(consistency.has_value());
  CHECK(consistency->verdict == ConsistencyVerdict::kInconclusive);
  CHECK(!consistency->complete);
}

TEST_CASE("clocks of very many threads at once are not made") {
  Trace trace;
  for (uint32_t thread = 0; thread < 40'000; ++thread) {
    Event event;
    event.set_kind(EventKind::kWrite);
    event.thread = thread;
    event.address = thread;
    trace.symbols.threads.intern(std::to_string(thread));
    trace.add(event, thread, thread);
  }
  const Analysis ended = *analyse_exactly(trace, {});
  CHECK(notes_have(ended, WorkLimit::kMemory));
  CHECK(ended.verdict() == Verdict::kInconclusive);
}
