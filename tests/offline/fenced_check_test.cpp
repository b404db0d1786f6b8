// The check of components whose units end fenced: against the enumeration of all orientations and of all
// executions, its advice, and its growth.
#include "offline/check/fenced_check.h"

#include <random>

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

const int kRounds = rounds(3'000, 40'000);
#if defined(TSOMON_SANITIZED) || !defined(NDEBUG)
constexpr uint32_t kLong = 3'000;
#else
constexpr uint32_t kLong = 60'000;
#endif
constexpr uint64_t kMaxExecutions = 3'000;  // steps of their enumeration

RandomTraceOptions fenced_options(std::mt19937_64& random) {
  RandomTraceOptions made = random_options(random);
  made.threads = 3 + static_cast<uint32_t>(random() % 2);
  made.locations = 1 + static_cast<uint32_t>(random() % 4);
  made.steps = 5 + static_cast<uint32_t>(random() % 6);
  made.units = 30;
  made.fences = 0;
  made.fenced = true;
  return made;
}

AnalysisOptions question(std::mt19937_64& random, const RandomTraceOptions& made) {
  AnalysisOptions options = random_analysis(random, made);
  options.property = Property::kSerializability;
  options.relation.semantics = Semantics::kExact;
  options.values = made.values;
  return options;
}

Fences fences_of(const Trace& trace, const RelationOptions& options) {
  const LocationTable locations(trace);
  const Relation relation(trace, locations, options);
  return {relation, AccessIndex(relation), UnitTable(trace)};
}

bool all_fenced(const Trace& trace, const RelationOptions& options) {
  const Fences fences = fences_of(trace, options);
  for (UnitId unit = 0; unit < UnitTable(trace).size(); ++unit) {
    if (!fences.fenced(unit)) {
      return false;
    }
  }
  return true;
}

// The check, and a search that decides nothing.
Analysis only_check(const Trace& trace, AnalysisOptions options) {
  options.fenced = check_fenced_component;
  options.search = [](const OrientationProblem&, const OrientationBounds&) {
    return OrientationResult();
  };
  auto result = analyse(trace, options);
  REQUIRE(result);
  return *result;
}

// The trace with a fence where the check wants one.
Trace with_fences(const Trace& trace, const RelationOptions& options) {
  const Fences fences = fences_of(trace, options);
  const UnitTable units(trace);
  Trace result;
  result.symbols = trace.symbols;
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    const Event& event = trace.events[e];
    const int64_t lo = 4 * trace.lo(event);
    const int64_t hi = 4 * trace.hi(event);
    Event own = event;
    own.has_hi = own.has_read_value = own.has_write_value = 0;
    result.add(own, lo, hi);
    const UnitId unit = units.of_event(e);
    if (unit != UnitTable::kNone && fences.missing_after(unit) == e) {
      Event fence;
      fence.set_kind(EventKind::kFence);
      fence.thread = event.thread;
      result.add(fence, lo + 1, hi + 1);
    }
  }
  return result;
}

}  // namespace

TEST_CASE("fenced units: the verdicts are those of all orientations and of all executions") {
  constexpr uint64_t kSeed = 20260811;
  std::mt19937_64 random(kSeed);
  int verdicts[4] = {};
  int checked = 0;
  int decided = 0;
  int executed = 0;
  int ordered = 0;
  int bounded = 0;
  for (int round = 0; round < kRounds; ++round) {
    const RandomTraceOptions made = fenced_options(random);
    const Trace trace = random_trace(random, made).trace;
    const AnalysisOptions options = question(random, made);
    INFO("seed " << kSeed << " round " << round << " values " << options.values << "\n"
                 << show(trace));
    REQUIRE(all_fenced(trace, options.relation));
    const auto found = analyse_exactly(trace, options);
    const auto enumerated = analyse(trace, options);
    REQUIRE(found);
    REQUIRE(enumerated);
    REQUIRE(enumerated->complete());
    if (!found->complete()) {
      // The check left it to the search, and the search came to a bound.
      ++bounded;
      AnalysisOptions search = options;
      search.search = search_orientations;
      REQUIRE(!analyse(trace, search)->complete());
      continue;
    }
    REQUIRE(found->verdict() == enumerated->verdict());
    REQUIRE(found->violations() == enumerated->violations());
    REQUIRE(found->unfenced.empty());
    for (const Violation& violation : found->findings) {
      REQUIRE(!violation.witness.empty());
    }
    ++verdicts[static_cast<int>(found->verdict())];
    const Analysis alone = only_check(trace, options);
    if (alone.components > 0) {
      ++checked;
      // Whether a violation is definite the whole trace is asked as well, where it has values.
      decided += alone.undecided_components == 0 ? 1 : 0;
      if (alone.complete()) {
        REQUIRE(alone.verdict() == enumerated->verdict());
      } else {
        // What it did not decide may be a violation, or may be definite; nothing else is said.
        REQUIRE(alone.verdict() >= Verdict::kPossible);
        REQUIRE((alone.verdict() == Verdict::kInconclusive ||
                 enumerated->verdict() != Verdict::kClean));
      }
    }
    if (round % 4 == 0 && !made.mixed_sizes) {
      if (const auto truth = Executions(trace, options.relation)
                                 .verdict(options.property, options.values, kMaxExecutions)) {
        ++executed;
        REQUIRE(found->verdict() == *truth);
      }
    }
    if (found->verdict() == Verdict::kClean && !options.values) {
      // Every execution is one that ran the units one after another: theory section 6.
      AnalysisOptions other = options;
      other.property = Property::kRobustness;
      REQUIRE(analyse_exactly(trace, other)->verdict() == Verdict::kClean);
      ++ordered;
    }
  }
  MESSAGE(kRounds << " traces: " << verdicts[0] << " clean, " << verdicts[1] << " possible, "
                  << verdicts[2] << " definite; " << checked << " had components, " << decided
                  << " of them decided without a search; " << executed
                  << " compared with all executions");
  CHECK(bounded < 2 + kRounds / 5'000);
  CHECK(verdicts[1] > kRounds / 20);
  CHECK(verdicts[2] > kRounds / 20);
  CHECK(checked > kRounds / 5);
  CHECK(decided > checked * 95 / 100);
  CHECK(executed > kRounds / 50);
  CHECK(ordered > kRounds / 20);
}

TEST_CASE("fences where the advice puts them make every unit fenced") {
  constexpr uint64_t kSeed = 20260812;
  std::mt19937_64 random(kSeed);
  int unfenced = 0;
  int cured = 0;
  for (int round = 0; round < kRounds / 4; ++round) {
    RandomTraceOptions made = random_options(random);
    made.values = false;
    const Trace trace = random_trace(random, made).trace;
    AnalysisOptions options = question(random, made);
    INFO("seed " << kSeed << " round " << round << "\n" << show(trace));
    const auto before = analyse_exactly(trace, options);
    REQUIRE(before);
    for (const UnfencedUnit& unit : before->unfenced) {
      REQUIRE(fences_of(trace, options.relation).missing_after(unit.unit) == unit.after);
    }
    unfenced += before->unfenced.empty() ? 0 : 1;
    const Trace fenced = with_fences(trace, options.relation);
    REQUIRE(all_fenced(fenced, options.relation));
    const auto after = analyse_exactly(fenced, options);
    REQUIRE(after);
    REQUIRE(after->unfenced.empty());
    // Not every fence helps: it also orders units of its thread that nothing ordered before.
    cured += before->verdict() == Verdict::kPossible && after->verdict() == Verdict::kClean ? 1 : 0;
  }
  MESSAGE(unfenced << " traces with advice, " << cured << " violations that the fences removed");
  CHECK(unfenced > kRounds / 100);
  CHECK(cured > kRounds / 400);
}

TEST_CASE("what ends fenced, and where a fence belongs") {
  const auto missing = [](std::string_view text) {
    const Trace trace = mini_trace(text);
    const Fences fences = fences_of(trace, {});
    std::vector<uint32_t> result;
    for (UnitId unit = 0; unit < UnitTable(trace).size(); ++unit) {
      if (!fences.fenced(unit)) {
        result.push_back(fences.missing_after(unit));
      }
    }
    return result;
  };
  using Places = std::vector<uint32_t>;
  // The boundaries of units are events, too.
  CHECK(missing("T0:[W(x) W(y)] T1:[R(y) R(x)]") == Places{2});
  CHECK(missing("T0:[W(x) W(y) F] T1:[R(y) R(x)]") == Places{});
  CHECK(missing("T0:[W(x) F W(y)] T1:[R(y) R(x)]") == Places{3});
  CHECK(missing("T0:[W(x) W(y)] U(z) T1:[R(y) R(x)]") == Places{});
  CHECK(missing("T0:[W(x) W(y) R(x)] F T1:[R(y) R(x)]") == Places{});
  CHECK(missing("T0:[W(x) W(y)] R(y) F T1:[R(y) R(x)]") == Places{2});
  CHECK(missing("T0:W(x) F R(y) W(y) T1:R(y) R(x)") == Places{3});
  // Nobody else accesses p.
  CHECK(missing("T0:[W(x) F W(p)] R(x) T1:R(x)") == Places{});
  CHECK(missing("T0:[W(x)] R(p) F T1:R(x)") == Places{});
}

TEST_CASE("of one trace, robust and SC-serializable does not imply serializable") {
  const Trace trace = mini_trace("T0:[W(x) W(y) T1:[R(y) R(x)] T0:F]");
  REQUIRE(all_fenced(trace, {}));
  AnalysisOptions options;
  CHECK(analyse_exactly(trace, options)->verdict() == Verdict::kPossible);
  CHECK(NaiveChecker(trace, {}).verdict(Property::kSerializability) == Verdict::kPossible);
  CHECK(Executions(trace, {}).verdict(Property::kSerializability, false, 1'000'000) ==
        Verdict::kPossible);
  options.property = Property::kRobustness;
  CHECK(analyse_exactly(trace, options)->verdict() == Verdict::kClean);
  options.property = Property::kScSerializability;
  CHECK(analyse_exactly(trace, options)->verdict() == Verdict::kClean);
}

namespace {

// Two threads whose units overlap all along, one store to v each: one component of the conflict graph.
// `middle` is executed inside the units in the middle, by T0 and T1 (their own) and T2.
Trace long_chain(uint32_t units, const std::vector<std::pair<ThreadId, const char*>>& middle) {
  Trace trace;
  for (const char* name : {"T0", "T1", "T2"}) {
    trace.symbols.threads.intern(name);
  }
  const auto add = [&](ThreadId thread, EventKind kind, uint64_t address = 0) {
    Event event;
    event.set_kind(kind);
    event.thread = thread;
    event.address = address;
    const auto now = static_cast<int64_t>(trace.events.size());
    trace.add(event, now, now);
  };
  const auto begin = [&](ThreadId thread) {
    add(thread, EventKind::kUnitBegin, trace.symbols.labels.intern("unit"));
  };
  const auto end = [&](ThreadId thread) {
    add(thread, EventKind::kFence);
    add(thread, EventKind::kUnitEnd);
  };
  const auto name = [&](char c) { return trace.symbols.names.intern(std::string(1, c)); };
  begin(0);
  add(0, EventKind::kWrite, name('v'));
  for (uint32_t i = 1; i < units; ++i) {
    const ThreadId mine = i % 2;
    begin(mine);
    add(mine, EventKind::kWrite, name('v'));
    if (i == units / 2) {
      for (const auto& [thread, text] : middle) {
        switch (text[0]) {
          case '[':
            begin(thread);
            break;
          case ']':
            end(thread);
            break;
          default:
            add(thread, text[0] == 'W' ? EventKind::kWrite : EventKind::kRead, name(text[1]));
        }
      }
    }
    end(1 - mine);
  }
  end((units - 1) % 2);
  return trace;
}

}  // namespace

TEST_CASE("components of any size are decided without a search") {
  struct Case {
    std::vector<std::pair<ThreadId, const char*>> middle;
    Verdict verdict;
  };
  const Case cases[] = {
      {{}, Verdict::kClean},
      // Stores that commit on both sides of another thread's loads.
      {{{0, "Wx"}, {0, "Wy"}, {2, "["}, {2, "Ry"}, {2, "Rx"}, {2, "]"}}, Verdict::kPossible},
      {{{0, "Rx"}, {1, "Rx"}, {0, "Wx"}, {1, "Wx"}}, Verdict::kDefinite},
  };
  for (const Case& one : cases) {
    const Trace trace = long_chain(kLong, one.middle);
    const auto found = analyse_exactly(trace, {});
    REQUIRE(found);
    CHECK(found->verdict() == one.verdict);
    CHECK(found->complete());
    CHECK(found->components == 1);
    CHECK(found->fenced_components == 1);
    CHECK(found->open_edges > kLong / 2);
    for (const Violation& violation : found->findings) {
      CHECK(!violation.witness.empty());
    }
    if (kLong > 10'000 && one.verdict != Verdict::kDefinite) {
      AnalysisOptions search;
      search.search = search_orientations;
      const auto without = analyse(trace, search);
      REQUIRE(without);
      CHECK(!without->complete());
    }
  }
}
