#include "offline/check/crossing_units.h"

#include <optional>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "decoders/std/writer.h"
#include "offline/check/orientation_search.h"
#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/naive_checker.h"
#include "tests/tso/random_trace.h"
#include "tso/check/definitions.h"
#include "tso/order/reachability.h"

namespace tsomon {
namespace {

using testing::random_trace;
using testing::RandomTraceOptions;

constexpr uint64_t kSeed = 27;
const uint32_t kRounds = static_cast<uint32_t>(rounds(2000, 40'000));

struct Count {
  uint64_t clean = 0;
  uint64_t found = 0;
  uint64_t unknown = 0;
  uint64_t missed = 0;  // of the unknown ones: violated
};

// Against the search, which has brute-force twins of its own.
void compare(const Trace& trace, const AnalysisOptions& options, Count* count) {
  const auto analysis = analyse_exactly(trace, options);
  REQUIRE(analysis);
  const Verdict verdict = analysis->verdict();
  if (verdict == Verdict::kInconclusive) {
    return;
  }
  const CrossingUnits found = find_crossing_units(trace, options);
  const std::string text = write_std(trace);
  INFO(text);
  if (found.cyclic == Answer::kNo) {
    ++count->clean;
    CHECK(verdict == Verdict::kClean);
  } else if (found.cyclic == Answer::kYes) {
    ++count->found;
    CHECK(verdict != Verdict::kClean);
    REQUIRE(found.violation);
    CHECK(check_witness(trace, found.violation->witness, {options.property, options.relation}));
    CHECK_FALSE(found.violation->cycle.empty());
  } else {
    ++count->unknown;
    count->missed += verdict == Verdict::kClean ? 0 : 1;
  }
}

// The trace without what some locked operations wrote.
Trace without_some_written(const Trace& trace, std::mt19937_64& random) {
  Trace made;
  made.symbols = trace.symbols;
  for (const Event& event : trace.events) {
    Event own = event;
    own.has_hi = own.has_read_value = own.has_write_value = 0;
    const bool forget = event.kind() == EventKind::kReadModifyWrite && random() % 2 == 0;
    made.add(own, event.lo, trace.hi(event), trace.read_value(event),
             forget ? std::nullopt : trace.write_value(event));
  }
  return made;
}

}  // namespace

TEST_CASE("directed edges without the open ones order the same events") {
  std::mt19937_64 random(kSeed);
  for (uint32_t round = 0; round < kRounds / 4; ++round) {
    const RandomTraceOptions made = testing::random_options(random);
    const Trace trace = random_trace(random, made).trace;
    const AnalysisOptions options = testing::random_analysis(random, made);
    const LocationTable locations(trace);
    const Relation relation(trace, locations, options.relation);
    const AccessIndex accesses(relation);
    const EventGraph graph = build_event_graph(relation, accesses);
    const auto all = Reachability::build(relation, graph.directed);
    const auto few = Reachability::build(relation, directed_edges(relation, accesses));
    REQUIRE(all.has_value() == few.has_value());
    INFO("round " << round);
    for (uint32_t e = 0; all && e < trace.events.size(); ++e) {
      for (uint32_t f = 0; f < trace.events.size(); ++f) {
        if (e != f && is(trace.events[e], kinds::kNodes) && is(trace.events[f], kinds::kNodes)) {
          CHECK(all->reaches(e, f) == few->reaches(e, f));
        }
      }
    }
  }
}

TEST_CASE("crossing units: two threads without values are decided") {
  std::mt19937_64 random(kSeed);
  Count count;
  for (uint32_t round = 0; round < kRounds; ++round) {
    RandomTraceOptions made;
    made.threads = 2;
    made.locations = 2 + round % 3;
    made.steps = 6 + round % 9;
    made.fences = round % 4 == 0 ? 10 : 0;
    made.locked = round % 8 == 0 ? 10 : 0;
    made.intervals = round % 5 == 0;
    made.mixed_sizes = round % 7 == 0;
    made.nesting = round % 6 == 0;
    const Trace trace = random_trace(random, made).trace;
    AnalysisOptions options;
    options.property = round % 11 == 0 ? Property::kRobustness : Property::kSerializability;
    options.relation.store_buffer = round % 13 == 0 ? 2 : 0;
    INFO("round " << round);
    compare(trace, options, &count);
  }
  MESSAGE(count.clean << " clean, " << count.found << " found, " << count.unknown
                      << " unknown, of which violated " << count.missed);
  CHECK(count.clean > 0);
  CHECK(count.found > 0);
  CHECK(count.unknown * 100 < count.clean + count.found);
}

TEST_CASE("crossing units: whatever the trace, no answer is wrong") {
  std::mt19937_64 random(kSeed + 1);
  Count count;
  for (uint32_t round = 0; round < kRounds; ++round) {
    RandomTraceOptions made = testing::random_options(random);
    const bool forget = made.values && round % 2 == 0;
    made.locked = forget ? 40 : made.locked;
    Trace trace = random_trace(random, made).trace;
    if (forget) {
      trace = without_some_written(trace, random);
    }
    AnalysisOptions options = testing::random_analysis(random, made);
    if (options.property == Property::kScSerializability) {
      options.property = Property::kSerializability;
    }
    options.relation.model = MemoryModel::kTso;
    options.values = made.values;
    INFO("round " << round);
    compare(trace, options, &count);
  }
  MESSAGE(count.clean << " clean, " << count.found << " found, " << count.unknown
                      << " unknown, of which violated " << count.missed);
  CHECK(count.clean > 0);
  CHECK(count.found > 0);
}

}  // namespace tsomon
