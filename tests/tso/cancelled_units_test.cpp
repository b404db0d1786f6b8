// Traces with cancelled units against the same traces without these units.
#include "tso/model/cancelled_units.h"

#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/naive_checker.h"
#include "tests/tso/random_trace.h"
#include "tso/check/atomic_sets.h"
#include "tso/model/units.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(1000, 20'000);

// The begins of the units that end so, by the plainest means.
std::set<size_t> begins_of(const Trace& trace, EventKind ends_with) {
  std::set<size_t> begins;
  for (size_t e = 0; e < trace.events.size(); ++e) {
    if (trace.events[e].kind() != ends_with) {
      continue;
    }
    int depth = 1;
    size_t begin = e;
    while (depth != 0 && begin != 0) {
      const Event& event = trace.events[--begin];
      if (event.thread == trace.events[e].thread) {
        depth -= event.kind() == EventKind::kUnitBegin ? 1 : 0;
        depth += event.kind() == EventKind::kUnitEnd || event.kind() == kUnitCancel ? 1 : 0;
      }
    }
    if (depth == 0) {
      begins.insert(begin);
    }
  }
  return begins;
}

// What is left when the cancelled units are no units.
Trace without_cancelled(const Trace& trace) {
  Trace rest;
  rest.symbols = trace.symbols;
  const std::set<size_t> begins = begins_of(trace, kUnitCancel);
  for (size_t e = 0; e < trace.events.size(); ++e) {
    const Event& event = trace.events[e];
    if (event.kind() != kUnitCancel && begins.count(e) == 0) {
      Event bare = event;
      bare.has_hi = bare.has_read_value = bare.has_write_value = 0;
      rest.add(bare, trace.lo(event), trace.hi(event), trace.read_value(event),
               trace.write_value(event));
    }
  }
  return rest;
}

Verdict sets_verdict(const Trace& trace) { return analyse_atomic_sets(trace, {}).verdict(); }

}  // namespace

TEST_CASE("a cancelled unit is as if it had not been there") {
  constexpr uint64_t kSeed = 1105;
  std::mt19937_64 random(kSeed);
  int verdicts[4] = {};
  int changed = 0;
  int cancelled = 0;
  for (int round = 0; round < kRounds; ++round) {
    RandomTraceOptions made = random_options(random);
    made.nesting = random() % 2 == 0;
    Trace trace = random_trace(random, made).trace;
    const Trace uncancelled = trace;
    for (Event& event : trace.events) {
      if (event.kind() == EventKind::kUnitEnd && random() % 2 == 0) {
        event.set_kind(kUnitCancel);
        ++cancelled;
      }
    }
    const Trace rest = without_cancelled(trace);
    resolve_cancelled_units(trace, false);
    INFO(show(rest));
    const AnalysisOptions options = random_analysis(random, made);
    const auto analysis = analyse(trace, options);
    const auto twin = analyse(rest, options);
    REQUIRE(analysis.has_value());
    REQUIRE(twin.has_value());
    REQUIRE(analysis->verdict() == twin->verdict());
    REQUIRE(analysis->units == twin->units);
    REQUIRE(sets_verdict(trace) == sets_verdict(rest));
    if (options.relation.semantics == Semantics::kPaper) {
      RelationOptions relation = options.relation;
      if (options.property == Property::kScSerializability) {
        relation.model = MemoryModel::kSc;
      }
      if (const auto naive = NaiveChecker(rest, relation).verdict(options.property)) {
        REQUIRE(analysis->verdict() == *naive);
      }
    }
    ++verdicts[static_cast<int>(analysis->verdict())];
    // Taking units apart only removes violations (tso/model/cancelled_units.h).
    const auto whole = analyse(uncancelled, options);
    REQUIRE(whole.has_value());
    REQUIRE((whole->verdict() != Verdict::kClean || analysis->verdict() == Verdict::kClean));
    REQUIRE((analysis->verdict() != Verdict::kDefinite || whole->verdict() == Verdict::kDefinite));
    changed += whole->verdict() != analysis->verdict() ? 1 : 0;
  }
  CHECK(verdicts[static_cast<int>(Verdict::kClean)] > kRounds / 10);
  CHECK(verdicts[static_cast<int>(Verdict::kPossible)] > kRounds / 100);
  CHECK(verdicts[static_cast<int>(Verdict::kDefinite)] > kRounds / 100);
  CHECK(changed > kRounds / 500);
  CHECK(cancelled > kRounds / 10);
}

TEST_CASE("which unit a cancel ends") {
  const auto kinds_of = [](std::vector<EventKind> kinds, bool may_cancel) {
    Trace trace;
    for (const EventKind kind : kinds) {
      Event event;
      event.set_kind(kind);
      trace.events.push_back(event);
    }
    resolve_cancelled_units(trace, may_cancel);
    resolve_cancelled_units(trace, may_cancel);  // changes nothing
    std::vector<EventKind> resolved;
    for (const Event& event : trace.events) {
      resolved.push_back(event.kind());
    }
    return resolved;
  };
  constexpr auto kBegin = EventKind::kUnitBegin;
  constexpr auto kEnd = EventKind::kUnitEnd;
  using Kinds = std::vector<EventKind>;
  // The innermost one.
  CHECK(kinds_of({kBegin, kBegin, kUnitCancel, kEnd}, false) ==
        Kinds{kBegin, kCancelledBegin, kUnitCancel, kEnd});
  CHECK(kinds_of({kBegin, kBegin, kEnd, kUnitCancel}, false) ==
        Kinds{kCancelledBegin, kBegin, kEnd, kUnitCancel});
  // None.
  CHECK(kinds_of({kUnitCancel, kBegin, kEnd}, true) == Kinds{kUnitCancel, kBegin, kEnd});
  // What is open at the end.
  CHECK(kinds_of({kBegin, kBegin, kEnd}, false) == Kinds{kBegin, kBegin, kEnd});
  CHECK(kinds_of({kBegin, kBegin, kEnd}, true) == Kinds{kCancelledBegin, kBegin, kEnd});
}

TEST_CASE("an inner cancelled unit leaves the outer one whole") {
  // T0 reads x in an inner attempt; the outer unit is still violated by T1's store between.
  Trace trace = mini_trace("T0:[R(x) T1:U(x) T0:R(x)]");
  Trace nested = mini_trace("T0:[[R(x)] T1:U(x) T0:R(x)]");
  for (Event& event : nested.events) {
    if (event.kind() == EventKind::kUnitEnd) {
      event.set_kind(kUnitCancel);
      break;
    }
  }
  resolve_cancelled_units(nested, false);
  const auto plain = analyse(trace, {});
  const auto resolved = analyse(nested, {});
  REQUIRE(plain.has_value());
  REQUIRE(resolved.has_value());
  CHECK(plain->verdict() == Verdict::kDefinite);
  CHECK(resolved->verdict() == Verdict::kDefinite);
}
