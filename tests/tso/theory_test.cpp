// The examples of theory section 9, and others whose verdicts can be worked out by hand.
#include <doctest/doctest.h>

#include "tests/tso/executions.h"
#include "tests/tso/mini_trace.h"
#include "tso/check/analysis.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

Analysis judge(std::string_view text, Property property, AnalysisOptions options = {}) {
  options.property = property;
  const Trace trace = mini_trace(text);
  auto result = analyse(trace, options);
  REQUIRE_MESSAGE(result.has_value(), result.error().to_string());
  if (options.relation.semantics == Semantics::kExact) {
    for (const Violation& finding : result->findings) {
      CHECK(!finding.witness.empty());
    }
  }
  return *result;
}

struct Row {
  const char* name;
  const char* trace;
  Verdict serializable;
  Verdict sc;
  Verdict robust;
};

constexpr Verdict kClean = Verdict::kClean;
constexpr Verdict kPossible = Verdict::kPossible;
constexpr Verdict kDefinite = Verdict::kDefinite;

const Row kRows[] = {
    {"SB, each event a unit", "T0:W(x) T1:W(y) T0:R(y) T1:R(x)", kClean, kClean, kPossible},
    {"SB, one unit per thread", "T0:[W(x) T1:[W(y) T0:R(y)] T1:R(x)]", kPossible, kDefinite,
     kPossible},
    {"SB fenced", "T0:[W(x) T0:F T1:[W(y) T1:F T0:R(y)] T1:R(x)]", kDefinite, kDefinite, kClean},
    {"lost update", "T0:[R(x) T1:[R(x) T0:W(x)] T1:W(x)]", kDefinite, kDefinite, kClean},
    {"relaxed pair", "T1:[R(x) T0:W(x) T0:R(y) T1:W(y)]", kClean, kDefinite, kClean},
    {"late commit", "T0:[W(x) W(y)] T1:[R(y) R(x)]", kPossible, kClean, kClean},
    {"late commit, fenced", "T0:[W(x) W(y) F] T1:[R(y) R(x)]", kClean, kClean, kClean},
};

}  // namespace

TEST_CASE("the examples of the theory") {
  for (const Row& row : kRows) {
    CAPTURE(row.name);
    for (const Semantics semantics : {Semantics::kExact, Semantics::kPaper}) {
      AnalysisOptions options;
      options.relation.semantics = semantics;
      CHECK(judge(row.trace, Property::kSerializability, options).verdict() == row.serializable);
      CHECK(judge(row.trace, Property::kRobustness, options).verdict() == row.robust);
    }
    CHECK(judge(row.trace, Property::kScSerializability).verdict() == row.sc);
    const Trace trace = mini_trace(row.trace);
    const Executions executions(trace, {});
    CHECK(executions.verdict(Property::kSerializability, false, 1'000'000) == row.serializable);
    CHECK(executions.verdict(Property::kRobustness, false, 1'000'000) == row.robust);
  }
}

TEST_CASE("values make store buffering definitely non-robust") {
  const char* both_zero = "T0:W(x=1) T1:W(y=1) T0:R(y=0) T1:R(x=0)";
  CHECK(judge(both_zero, Property::kRobustness).verdict() == kDefinite);
  CHECK(
      judge("T0:[W(x=1) T1:[W(y=1) T0:R(y=0)] T1:R(x=0)]", Property::kSerializability).verdict() ==
      kDefinite);
  // One thread saw the other's store: a sequentially consistent outcome.
  CHECK(judge("T0:W(x=1) T1:W(y=1) T0:R(y=1) T1:R(x=0)", Property::kRobustness).verdict() ==
        kClean);
  AnalysisOptions without;
  without.values = false;
  CHECK(judge(both_zero, Property::kRobustness, without).verdict() == kPossible);
}

TEST_CASE("values decide the late commit") {
  CHECK(judge("T0:[W(x=1) W(y=1)] T1:[R(y=1) R(x=1)]", Property::kSerializability).verdict() ==
        kClean);
  CHECK(judge("T0:[W(x=1) W(y=1)] T1:[R(y=0) R(x=1)]", Property::kSerializability).verdict() ==
        kDefinite);
}

TEST_CASE("ambiguous and unknown values change nothing") {
  // Both stores write what the load returned.
  CHECK(judge("T0:[W(x=1) W(y=1)] T1:[R(y=1) R(x=0)]", Property::kSerializability).verdict() !=
        kClean);
  CHECK(judge("T0:W(x=0) T1:W(y=0) T0:R(y=0) T1:R(x=0)", Property::kRobustness).verdict() ==
        kPossible);
  Trace trace = mini_trace("T0:W(x=1) T1:W(y=1) T0:R(y=0) T1:R(x=0)");
  trace.symbols.initial_zero = false;
  AnalysisOptions options;
  options.property = Property::kRobustness;
  // Nobody wrote 0, so it was there before: still definite without knowing it.
  CHECK(analyse(trace, options)->verdict() == kDefinite);
  Trace unclear = mini_trace("T0:W(x=1) T1:W(y=1) T0:R(y=1) T1:R(x=1)");
  unclear.symbols.initial_zero = false;
  // 1 may have been there before as well.
  CHECK(analyse(unclear, options)->verdict() == kPossible);
}

TEST_CASE("a value that no store explains is a damaged recording, not a verdict") {
  // Two initial values: nothing is inferred for x.
  CHECK(judge("T0:R(x=5) T0:R(x=6) T1:W(x=1)", Property::kRobustness).verdict() == kClean);
}

TEST_CASE("the store buffer's capacity acts as a fence") {
  AnalysisOptions one;
  one.relation.store_buffer = 1;
  AnalysisOptions two;
  two.relation.store_buffer = 2;
  const char* late = "T0:[W(x) W(y)] T1:[R(y) R(x)]";
  CHECK(judge(late, Property::kSerializability, two).verdict() == kPossible);
  // x left when y was issued, but y may still be late: T1 reads old y and new x.
  CHECK(judge(late, Property::kSerializability, one).verdict() == kPossible);
  CHECK(judge("T0:[W(x) W(y)] T0:W(z) T1:[R(y) R(x)]", Property::kSerializability, one).verdict() ==
        kClean);
  CHECK(judge("T0:[W(x) W(y)] T0:W(z) T1:[R(y) R(x)]", Property::kSerializability, two).verdict() ==
        kPossible);
}

TEST_CASE("locks order what they protect") {
  const char* locked =
      "T0:[acq(l) T0:R(x) T0:W(x) T0:rel(l)] T1:[acq(l) T1:R(x) T1:W(x) T1:rel(l)] "
      "T0:[acq(l) T0:R(x) T0:W(x) T0:rel(l)]";
  for (const Property property :
       {Property::kSerializability, Property::kRobustness, Property::kScSerializability}) {
    CHECK(judge(locked, property).verdict() == kClean);
  }
  const char* split =
      "T0:[acq(l) T0:R(x) T0:rel(l) T1:[acq(l) T1:R(x) T1:W(x) T1:rel(l)] "
      "T0:acq(l) T0:W(x) T0:rel(l)]";
  CHECK(judge(split, Property::kSerializability).verdict() == kDefinite);
}

TEST_CASE("readers of a lock do not conflict with each other") {
  const char* readers = "T0:[racq(l) T1:[racq(l) T0:R(x) T1:R(x) T1:rrel(l)] T0:rrel(l)]";
  CHECK(judge(readers, Property::kSerializability).verdict() == kClean);
  const char* writer_between =
      "T0:[racq(l) T0:R(x) T0:rrel(l) T1:[acq(l) T1:W(x) T1:rel(l)] T0:racq(l) T0:R(x) "
      "T0:rrel(l)]";
  CHECK(judge(writer_between, Property::kSerializability).verdict() == kDefinite);
}

TEST_CASE("fork and join order the child's events") {
  CHECK(judge("T0:[W(x) T0:fork(T1)] T1:[R(x) T1:W(x)] T0:[join(T1) T0:R(x)]",
              Property::kSerializability)
            .verdict() == kClean);
  CHECK(judge("T0:[fork(T1) T1:W(x) T0:join(T1)]", Property::kSerializability).verdict() ==
        kDefinite);
}

TEST_CASE("overlapping byte ranges are one location, disjoint ones are not") {
  const auto lost_update = [](uint32_t offset) {
    Trace trace = mini_trace("T0:[R(x) T1:[R(y) T0:W(x)] T1:W(y)]");
    for (Event& event : trace.events) {
      if (is(event, kinds::kAccesses)) {
        event.size = 4;
        event.address = event.thread == 0 ? 0x1000 : 0x1000 + offset;
      }
    }
    return analyse(trace, {})->verdict();
  };
  CHECK(lost_update(0) == kDefinite);
  CHECK(lost_update(3) == kDefinite);
  CHECK(lost_update(4) == kClean);
}

TEST_CASE("a load that overlaps a buffered store in part waits for it") {
  const auto store_buffering = [](uint32_t load_size) {
    // Each thread stores a word, loads its own word again and then the other's.
    Trace trace = mini_trace("T0:W(x) T1:W(y) T0:R(x) T1:R(y) T0:R(y) T1:R(x)");
    for (Event& event : trace.events) {
      event.address = event.address == 0 ? 0x1000 : 0x2000;
      event.size = 4;
    }
    trace.events[2].size = trace.events[3].size = load_size & 0xFFFFFFU;
    AnalysisOptions options;
    options.property = Property::kRobustness;
    return analyse(trace, options)->verdict();
  };
  CHECK(store_buffering(4) == kPossible);
  CHECK(store_buffering(2) == kPossible);
  CHECK(store_buffering(8) == kClean);
}

TEST_CASE("cycles are searched between the units that are asked for") {
  const auto of = [](std::vector<EventRange> only) {
    AnalysisOptions options;
    options.only = std::move(only);
    return judge("T0:[R(x) T1:[R(x) T0:W(x)] T1:W(x)] T2:[R(x)]", Property::kSerializability,
                 options)
        .verdict();
  };
  constexpr uint32_t kLast = 20;
  CHECK(of({}) == kDefinite);
  CHECK(of({{0, 0, kLast}, {1, 0, kLast}}) == kDefinite);
  CHECK(of({{1, 0, kLast}, {2, 0, kLast}}) == kClean);
  CHECK(of({{0, 0, kLast}, {2, 0, kLast}}) == kClean);
}

TEST_CASE("a trace with lost events is never clean") {
  Trace trace = mini_trace("T0:W(x) T1:R(x)");
  trace.complete = false;
  trace.lost_events = 3;
  const auto result = analyse(trace, {});
  CHECK(result->verdict() == Verdict::kInconclusive);
  CHECK(!result->complete());
}

TEST_CASE("a bound that is hit is inconclusive") {
  AnalysisOptions options;
  options.bounds.max_bytes = 1;
  const Analysis result =
      judge("T0:[W(x) W(y)] T1:[R(y) R(x)]", Property::kSerializability, options);
  CHECK(result.verdict() == Verdict::kInconclusive);
  CHECK(!result.complete());
  options = {};
  options.max_undirected = 1;
  CHECK(judge("T0:[W(x) W(y)] T1:[R(y) R(x)]", Property::kSerializability, options).verdict() ==
        Verdict::kInconclusive);
}

TEST_CASE("an order that contradicts itself is an error") {
  // The child acts on what the parent does after joining it.
  const auto result = analyse(mini_trace("T0:fork(T1) T0:join(T1) T0:U(x) T1:U(x)"), {});
  REQUIRE(!result.has_value());
  CHECK(result.error().kind == ErrorKind::kMalformed);
}
