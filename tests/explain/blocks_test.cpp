// Blocks against every execution of the trace: with those that are called verified each of them is violated, with less
// of them some is not, and where the units as they stand are violated in each, some blocks are found.
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "offline/check/orientation_search.h"
#include "offline/explain/changed_trace.h"
#include "offline/explain/code.h"
#include "offline/explain/repairs.h"
#include "tests/rounds.h"
#include "tests/tso/executions.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"

namespace tsomon::explain {
namespace {

using tsomon::testing::Executions;
using tsomon::testing::random_trace;
using tsomon::testing::RandomTraceOptions;

const int kRounds = rounds(150, 10'000);
constexpr uint64_t kMostSteps = 200'000;

// Each unit is a method of its own, each event a line; or, of a few labels, methods have several units.
Trace random_input(std::mt19937_64& random) {
  RandomTraceOptions options;
  options.steps = 6 + random() % 5;
  options.units = 40;
  options.locked = options.fences = 25;
  options.locations = 1 + random() % 3;
  options.intervals = random() % 4 == 0;
  Trace trace = random_trace(random, options).trace;
  const uint64_t labels = random() % 2 == 0 ? 100 : 2;
  uint64_t units = 0;
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    trace.events[e].location = Event::kNumericLocation | (e + 1);
    if (trace.events[e].kind() == EventKind::kUnitBegin) {
      trace.events[e].address =
          trace.symbols.labels.intern("unit" + std::to_string(units++ % labels));
    }
  }
  return trace;
}

// What the executions are if these blocks are the units, and nothing else is.
std::optional<Verdict> with_blocks(const Trace& trace, const SegmentSet& blocks,
                                   const AnalysisOptions& options) {
  const UnitTable units(trace);
  CodeMap code;
  code.add(trace, units, [](const std::string&) { return CodePlace(); });
  uint32_t count = 0;
  const std::vector<uint32_t> inside = code.occurrences(trace, units, blocks, &count);
  const Question whole =
      cut_out(trace, 0, static_cast<uint32_t>(trace.events.size() - 1), 0, options);
  const Question changed = with_units(whole, std::vector<uint32_t>(count, 0), inside);
  return Executions(changed.trace, options.relation)
      .verdict(Property::kSerializability, false, kMostSteps);
}

// The set without a line at an end of a block.
std::vector<SegmentSet> with_less(const SegmentSet& blocks) {
  std::vector<SegmentSet> less;
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (const bool front : {true, false}) {
      SegmentSet set = blocks;
      if (set[i].first == set[i].last) {
        set.erase(set.begin() + static_cast<ptrdiff_t>(i));
      } else {
        front ? ++set[i].first : --set[i].last;
      }
      less.push_back(std::move(set));
    }
  }
  return less;
}

}  // namespace

TEST_CASE("blocks: verified ones are interrupted in every execution, and no less are") {
  constexpr uint64_t kSeed = 20261129;
  std::mt19937_64 random(kSeed);
  int definite = 0;
  int verified = 0;
  int not_minimal = 0;
  int none = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Trace trace = random_input(random);
    RepairOptions options;
    options.fences = false;
    options.analysis.property = Property::kSerializability;
    options.analysis.values = false;
    const auto found = analyse_exactly(trace, options.analysis);
    REQUIRE(found);
    ViolatingTrace one{&trace, {}, [](const std::string&) { return CodePlace(); }};
    for (const Violation& violation : found->findings) {
      if (!violation.cycle.empty()) {
        one.cycles.push_back(violation.cycle);
      }
    }
    if (one.cycles.empty() || found->verdict() != Verdict::kDefinite) {
      continue;  // of what is violated in some executions alone nothing is verified
    }
    INFO("seed " << kSeed << " round " << round << "\n" << tsomon::testing::show(trace));
    const Repairs repairs = find_repairs({one}, {}, options);
    bool any = false;
    for (const Repair& repair : repairs.repairs) {
      if (repair.verified != std::optional(true)) {
        continue;
      }
      any = true;
      ++verified;
      const auto blocked = with_blocks(trace, repair.code, options.analysis);
      CHECK((!blocked || blocked == Verdict::kDefinite));
      for (const SegmentSet& less : with_less(repair.code)) {
        const auto left = with_blocks(trace, less, options.analysis);
        not_minimal += blocked && left == Verdict::kDefinite ? 1 : 0;
      }
    }
    ++definite;
    none += any ? 0 : 1;
    if (repairs.repairs.empty()) {
      CHECK(!repairs.notes.complete());
    }
  }
  MESSAGE(verified << " verified sets of blocks, " << not_minimal << " with less that helps; "
                   << definite << " definite traces, " << none << " without a verified set");
  CHECK(verified > kRounds / 50);
  CHECK(none * 20 <= definite);
}

}  // namespace tsomon::explain
