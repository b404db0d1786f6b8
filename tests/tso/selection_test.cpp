// What is certain in a component of a trace is certain in all of it, when the component was chosen by
// location, and also when any loads are left out: the ground on which the probe's options
// accesses=sets (monitor/probe/watched_memory.h) and outside=stores stand.
#include <algorithm>
#include <functional>
#include <map>

#include <doctest/doctest.h>

#include "tests/rounds.h"
#include "tests/tso/executions.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tso/check/analysis.h"
#include "tso/check/atomic_sets.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(9000, 60000);

constexpr uint64_t kGranule = 8;
constexpr uint32_t kMemory = kind_mask(EventKind::kRead) | kind_mask(EventKind::kWrite) |
                             kind_mask(EventKind::kReadModifyWrite);

// Locations that may share bytes have the same key.
LocationKey place_of(const Event& event) {
  return event.size == 0 ? LocationKey{event.address, 0} : LocationKey{event.address / kGranule, 1};
}

bool lies_in_one_granule(const Event& event) {
  return event.size == 0 || event.address / kGranule == (event.address + event.size - 1) / kGranule;
}

bool all_lie_in_one_granule(const Trace& trace) {
  return std::all_of(trace.events.begin(), trace.events.end(), [](const Event& event) {
    return !is(event, kMemory) || lies_in_one_granule(event);
  });
}

// The events without the accesses that are not `kept`; of a locked one the fence stays. As the
// probe leaves them out.
Trace part_of(const Trace& trace, const std::function<bool(const Event&)>& kept) {
  Trace component;
  component.symbols = trace.symbols;
  component.selection.only_sets = true;
  for (const Event& event : trace.events) {
    const int64_t lo = trace.lo(event);
    const int64_t hi = trace.hi(event);
    Event bare = event;
    bare.has_hi = bare.has_read_value = bare.has_write_value = 0;
    if (!is(event, kMemory) || kept(event)) {
      component.add(bare, lo, hi, trace.read_value(event), trace.write_value(event));
    } else if (event.kind() == EventKind::kReadModifyWrite) {
      Event fence;
      fence.set_kind(EventKind::kFence);
      fence.thread = event.thread;
      component.add(fence, lo, hi);
    }
  }
  return component;
}

Trace random_component(std::mt19937_64& random, const Trace& trace) {
  const bool all_loads = random() % 2 == 0;
  std::map<std::pair<uint64_t, uint32_t>, bool> chosen;
  return part_of(trace, [&](const Event& event) {
    const LocationKey place = place_of(event);
    if (event.kind() == EventKind::kRead && !all_loads && random() % 3 == 0) {
      return false;
    }
    return chosen.try_emplace({place.address, place.size}, random() % 3 != 0).first->second;
  });
}

struct Question {
  RandomTrace made;
  AnalysisOptions options;
};

Question random_question(std::mt19937_64& random) {
  RandomTraceOptions options = random_options(random);
  options.steps += 3;
  Question question{random_trace(random, options), random_analysis(random, options)};
  question.options.relation.semantics = Semantics::kExact;
  question.options.values = options.values && random() % 2 == 0;
  return question;
}

RelationOptions relation_of(const AnalysisOptions& options) {
  RelationOptions relation = options.relation;
  if (options.property == Property::kScSerializability) {
    relation.model = MemoryModel::kSc;
  }
  return relation;
}

// Whether a component that is definitely violated belongs to a run that really was.
bool lies(const Question& question, const Trace& component) {
  const auto judged = analyse(component, question.options);
  REQUIRE(judged.has_value());
  if (judged->verdict() != Verdict::kDefinite) {
    return false;
  }
  const Executions executions(question.made.trace, relation_of(question.options));
  return question.options.property != Property::kScSerializability &&
         !executions.violates(question.options.property, question.made.execution);
}

}  // namespace

TEST_CASE("what is definite in what was chosen is definite in the run") {
  std::mt19937_64 random(20250721);
  int smaller = 0;
  int definite = 0;
  int clean_component_of_violation = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Question question = random_question(random);
    const Trace& trace = question.made.trace;
    if (!all_lie_in_one_granule(trace)) {
      continue;
    }
    const Trace component = random_component(random, trace);
    smaller += component.events.size() < trace.events.size() ? 1 : 0;
    const auto watched = analyse(component, question.options);
    const auto whole = analyse(trace, question.options);
    REQUIRE(watched.has_value());
    REQUIRE(whole.has_value());
    INFO(show(trace));
    INFO(show(component));
    if (watched->verdict() == Verdict::kDefinite) {
      ++definite;
      REQUIRE(whole->verdict() == Verdict::kDefinite);
      REQUIRE_FALSE(lies(question, component));
    }
    clean_component_of_violation +=
        watched->verdict() == Verdict::kClean && whole->verdict() == Verdict::kDefinite ? 1 : 0;
  }
  CHECK(smaller > kRounds / 4);
  CHECK(definite > kRounds / 200);
  CHECK(clean_component_of_violation > 0);  // what is not watched is not seen
}

TEST_CASE("what is said of some units holds for the run") {
  std::mt19937_64 random(20250724);
  int verdicts[4] = {};
  for (int round = 0; round < kRounds; ++round) {
    RandomTraceOptions made = random_options(random);
    made.steps += 8;
    made.fences = static_cast<uint32_t>(random() % 3) * 5;
    const RandomTrace happened = random_trace(random, made);
    const Trace& trace = happened.trace;
    AnalysisOptions options;
    options.values = made.values && random() % 2 == 0;
    options.relation.store_buffer = made.store_buffer;
    const auto whole = analyse(trace, options);
    const UnitTable units(trace);
    for (UnitId unit = 0; unit < units.size(); ++unit) {
      if (random() % 3 != 0) {
        options.only.push_back(
            {units[unit].thread, units[unit].first_event, units[unit].last_event});
      }
    }
    const auto some = analyse(trace, options);
    REQUIRE(whole.has_value());
    REQUIRE(some.has_value());
    if (options.only.empty() || whole->verdict() == Verdict::kInconclusive) {
      continue;
    }
    ++verdicts[static_cast<int>(some->verdict())];
    INFO("round " << round << "\n" << show(trace));
    // Values of loads in other units may rule out what is possible by those of some.
    if (some->verdict() == Verdict::kDefinite ||
        (some->verdict() == Verdict::kPossible && !options.values)) {
      REQUIRE(some->verdict() <= whole->verdict());
    }
    if (some->verdict() == Verdict::kDefinite) {
      REQUIRE(Executions(trace, options.relation)
                  .violates(Property::kSerializability, happened.execution));
    }
  }
  for (int verdict = 0; verdict < 3; ++verdict) {
    CHECK(verdicts[verdict] > kRounds / 50);
  }
}

TEST_CASE("a choice of single accesses would not keep that") {
  std::mt19937_64 random(20250722);
  int lies_seen = 0;
  for (int round = 0; round < kRounds && lies_seen == 0; ++round) {
    const Question question = random_question(random);
    const Trace component =
        part_of(question.made.trace, [&](const Event&) { return random() % 3 != 0; });
    lies_seen += lies(question, component) ? 1 : 0;
  }
  CHECK(lies_seen > 0);
}

TEST_CASE("the verdict on atomic sets needs the accesses to them alone") {
  std::mt19937_64 random(20250723);
  int violated = 0;
  for (int round = 0; round < kRounds / 4; ++round) {
    RandomTraceOptions options = random_options(random);
    options.mixed_sizes = false;
    options.nesting = random() % 2 == 0;
    options.locations += 1;
    Trace trace = random_trace(random, options).trace;
    for (uint64_t location = 0; location + 1 < options.locations; ++location) {
      trace.symbols.sets.push_back({location == 0 ? "a" : "b", {{location, 0}}});
    }
    const Trace component =
        part_of(trace, [&](const Event& event) { return event.address + 1 < options.locations; });
    AtomicSetOptions declared;
    declared.sets = SetChoice::kDeclared;
    const Analysis whole = analyse_atomic_sets(trace, declared);
    const Analysis watched = analyse_atomic_sets(component, declared);
    INFO(show(trace));
    REQUIRE((watched.verdict() == Verdict::kDefinite) == (whole.verdict() == Verdict::kDefinite));
    violated += whole.verdict() == Verdict::kDefinite ? 1 : 0;
  }
  CHECK(violated > kRounds / 400);
}
