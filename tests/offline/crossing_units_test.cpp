#include "offline/check/crossing_units.h"

#include <optional>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "decoders/std/reader.h"
#include "decoders/std/writer.h"
#include "offline/check/execution_cycle.h"
#include "offline/check/forced_units.h"
#include "offline/check/full_execution.h"
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
  uint64_t definite = 0;
  uint64_t unsettled = 0;  // found, and not known whether definite
  uint64_t unsettled_definite = 0;
};

void say(const Count& count) {
  MESSAGE(count.clean << " clean, " << count.found << " found, " << count.unknown
                      << " unknown, of which violated " << count.missed << "; " << count.definite
                      << " definite, " << count.unsettled << " unsettled, of which definite "
                      << count.unsettled_definite);
}

// Against the search, which has brute-force twins of its own.
Verdict compare(const Trace& trace, const AnalysisOptions& options, Count* count) {
  const auto analysis = analyse_exactly(trace, options);
  REQUIRE(analysis);
  const Verdict verdict = analysis->verdict();
  if (verdict == Verdict::kInconclusive) {
    return verdict;
  }
  const CrossingUnits found = find_crossing_units(trace, options);
  const std::string text = write_std(trace);
  INFO(text);
  INFO("property " << static_cast<int>(options.property) << " semantics "
                   << static_cast<int>(options.relation.semantics) << " order "
                   << static_cast<int>(options.relation.order) << " buffer "
                   << options.relation.store_buffer);
  if (found.cyclic == Answer::kNo) {
    ++count->clean;
    CHECK(verdict == Verdict::kClean);
  } else if (found.cyclic == Answer::kYes) {
    ++count->found;
    CHECK(verdict != Verdict::kClean);
    REQUIRE(found.violation);
    if (found.violation->complete) {
      CHECK(found.violation->verdict == verdict);
      count->definite += verdict == Verdict::kDefinite ? 1 : 0;
    } else {
      CHECK(found.violation->verdict == Verdict::kPossible);
      ++count->unsettled;
      count->unsettled_definite += verdict == Verdict::kDefinite ? 1 : 0;
    }
    CHECK(check_witness(trace, found.violation->witness, {options.property, options.relation}));
    CHECK_FALSE(found.violation->cycle.empty());
  } else {
    ++count->unknown;
    count->missed += verdict == Verdict::kClean ? 0 : 1;
  }
  return verdict;
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

// Everything that the linear check is made of, for one trace.
struct Parts {
  Parts(const Trace& all, const AnalysisOptions& asked)
      : trace(all),
        options(asked),
        units(all),
        locations(all),
        relation(all, locations, asked.relation),
        accesses(relation),
        neighbours(relation),
        values(relation, accesses) {
    std::vector<Edge> edges = directed_edges(relation, accesses);
    values.add_edges(&edges);
    order = Reachability::build(relation, edges);
    if (order && !values.draw(&*order)) {
      order.reset();
    }
  }

  const Trace& trace;
  const AnalysisOptions& options;
  UnitTable units;
  LocationTable locations;
  Relation relation;
  AccessIndex accesses;
  EffectNeighbours neighbours;
  ValueReads values;
  std::optional<Reachability> order;
};

// No execution is without a cycle, although no cycle is certain.
bool forces_cycle(const Trace& trace, const AnalysisOptions& options) {
  const Parts components(trace, options);
  if (!components.order) {
    return false;
  }
  const OrderedUnits in{trace,
                        options,
                        components.units,
                        components.relation,
                        *components.order,
                        components.neighbours};
  const ThreadLists lists(components.relation, components.accesses, components.units, false);
  const CertainUnits certain(in, components.accesses, lists);
  return !certain.cycle() && ForcedUnits::applies(in) &&
         ForcedUnits(in, components.accesses, lists, certain.edges()).contradiction();
}

}  // namespace

TEST_CASE("executions of a whole trace are some, and their cycles are those of the checker") {
  std::mt19937_64 random(kSeed + 2);
  uint64_t made = 0;
  uint64_t stuck = 0;
  uint64_t cyclic = 0;
  uint64_t on_demand = 0;
  for (uint32_t round = 0; round < kRounds; ++round) {
    RandomTraceOptions options = testing::random_options(random);
    options.locks = round % 3 == 0 ? 10 : options.locks;
    Trace trace = random_trace(random, options).trace;
    if (round % 5 == 0) {
      trace.symbols.initial_zero = false;
    }
    AnalysisOptions asked = testing::random_analysis(random, options);
    if (asked.property == Property::kScSerializability) {
      asked.property = Property::kSerializability;
    }
    asked.relation.model = MemoryModel::kTso;
    asked.relation.semantics = Semantics::kExact;
    asked.relation.thread_order = true;
    const Parts components(trace, asked);
    if (!components.order) {
      continue;
    }
    const bool by_event = asked.property == Property::kRobustness;
    const OrderedUnits in{trace,
                          asked,
                          components.units,
                          components.relation,
                          *components.order,
                          components.neighbours,
                          by_event};
    const FullExecutions executions(in, components.accesses, &components.values);
    const ThreadLists lists(components.relation, components.accesses, components.units, by_event);
    const CertainUnits certain(in, components.accesses, lists);
    INFO(write_std(trace));
    const std::vector<uint32_t> by_end = certain.places(UnitOrder::kByEnd);
    const std::vector<uint32_t> by_thread = certain.places(UnitOrder::kByThread);
    CHECK(by_end.empty() == (certain.cycle() || trace.events.empty()));
    CHECK(by_end.size() == by_thread.size());
    for (const Edge& edge : certain.edges()) {
      CHECK((by_end.empty() || by_end[edge.from] < by_end[edge.to]));
      CHECK((by_thread.empty() || by_thread[edge.from] < by_thread[edge.to]));
    }
    for (const CommitTime time :
         {CommitTime::kAtOnce, CommitTime::kUnitEnd, CommitTime::kRemoteAccess, CommitTime::kDrain,
          CommitTime::kOnDemand}) {
      for (const auto& places : {std::vector<uint32_t>(), by_end, by_thread}) {
        const auto execution = executions.make({time, places}, {});
        if (time == CommitTime::kOnDemand) {
          CHECK(execution.has_value() == (!executions.constrained() && !places.empty()));
          on_demand += execution ? 1 : 0;
        }
        if (!execution && time == CommitTime::kOnDemand) {
          continue;
        }
        if (!execution) {
          ++stuck;
          continue;
        }
        ++made;
        const auto cycle = cycle_of_execution(in, *execution);
        const auto checked = check_witness(
            trace, *execution, {asked.property, asked.relation, WitnessValues::kKnown, true});
        if (checked) {
          ++cyclic;
          CHECK(cycle);
        } else {
          CHECK(checked.error().message.find("without a cycle") != std::string::npos);
          CHECK_FALSE(cycle);
          CHECK_FALSE(certain.cycle());
        }
      }
    }
  }
  MESSAGE(made << " made, of which cyclic " << cyclic << ", " << stuck << " stuck");
  CHECK(cyclic > 0);
  CHECK(made > 20 * stuck);
  CHECK(on_demand > 0);
}

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
  say(count);
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
    if (round % 7 == 0) {
      trace.symbols.initial_zero = false;
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
  say(count);
  CHECK(count.clean > 0);
  CHECK(count.found > 0);
}

TEST_CASE(
    "crossing units: a store need not come before a later load, whatever is forwarded between") {
  // The stores of T1 can all commit after the unit of T2, so there is an execution without a cycle.
  const auto trace = read_std_text(
      "T1|w(v0)|\nT1|w(v2)|\nT1|begin(unit)|\nT1|r(v2)|\nT1|r(v0)|\nT1|end|\nT1|r(v3)|\n"
      "T0|w(v3)|\nT2|w(v2)|\nT2|begin(unit)|\nT0|rmw(v2)|\nT2|rmw(v0)|\nT1|begin(unit)|\n"
      "T1|w(v0)|\nT1|r(v2)|\nT2|w(v2)|\n",
      "test");
  REQUIRE(trace);
  CHECK_FALSE(forces_cycle(*trace, {}));
  Count count;
  CHECK(compare(*trace, {}, &count) == Verdict::kPossible);
}

TEST_CASE("crossing units: longer traces, of which most is open") {
  std::mt19937_64 random(kSeed + 3);
  Count count;
  uint64_t forced = 0;
  for (uint32_t round = 0; round < kRounds / 20; ++round) {
    RandomTraceOptions made;
    made.threads = 2 + round % 3;
    made.locations = 2 + round % 5;
    made.steps = 100 + round % 200;
    made.fences = round % 4 == 0 ? 2 : 0;
    made.locked = round % 4 == 1 ? 2 : 0;
    made.intervals = round % 5 == 0;
    made.mixed_sizes = round % 7 == 0;
    made.values = round % 6 == 0;
    const Trace trace = random_trace(random, made).trace;
    AnalysisOptions options;
    options.values = made.values;
    options.relation.order = round % 8 == 0 ? TraceOrder::kThread : TraceOrder::kIssue;
    INFO("round " << round);
    const Verdict verdict = compare(trace, options, &count);
    if (forces_cycle(trace, options)) {
      CHECK((verdict == Verdict::kDefinite || verdict == Verdict::kInconclusive));
      ++forced;
    }
  }
  say(count);
  CHECK(count.definite > 0);
  CHECK(forced > 0);
}

TEST_CASE("crossing units: of many threads few are undecided") {
  for (const uint32_t threads : {3U, 4U, 8U}) {
    std::mt19937_64 random(kSeed + threads);
    Count count;
    for (uint32_t round = 0; round < kRounds / 4; ++round) {
      RandomTraceOptions made;
      made.threads = threads;
      made.locations = 2 + round % 3;
      made.steps = 10 + 3 * threads;
      made.fences = round % 4 == 0 ? 10 : 0;
      made.locked = round % 8 == 0 ? 10 : 0;
      made.values = round % 3 == 0;
      const Trace trace = random_trace(random, made).trace;
      AnalysisOptions options;
      options.values = made.values;
      INFO("round " << round);
      compare(trace, options, &count);
    }
    MESSAGE(threads << " threads: " << count.clean << " clean, " << count.found << " found, "
                    << count.unknown << " unknown, of which violated " << count.missed);
    CHECK(count.unknown * 20 < count.clean + count.found);
  }
}

}  // namespace tsomon
