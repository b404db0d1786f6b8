#include "tests/online/detector_cases.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tests/tso/sequences.h"
#include "tso/check/analysis.h"

namespace tsomon::testing {

Watched watch(const Trace& trace, DetectorOptions options, const Collection& collection) {
  Watched result;
  options.tuning.collect = collection.collect;
  options.tuning.max_retained = collection.max_retained;
  DetectorCallbacks callbacks;
  callbacks.on_cycle = [&](const DetectedCycle& cycle) { result.cycles.push_back(cycle); };
  callbacks.on_component = [&](const DetectedComponent& component) {
    result.components.push_back(component);
  };
  callbacks.on_candidate = [&](DetectedCandidate&& candidate) {
    result.candidates.push_back(std::move(candidate));
  };
  Detector detector(trace.symbols, options, callbacks);
  EventBlock block;
  uint64_t first = 0;
  const size_t step = collection.sweep_every == 0 ? trace.events.size() : collection.sweep_every;
  while (first < trace.events.size()) {
    block.clear();
    block.append(trace, first, std::min<size_t>(first + step, trace.events.size()));
    detector.add(block, first);
    first += block.events.size();
    if (collection.sweep_every != 0) {
      detector.sweep();
      detector.check_invariants();
    }
  }
  detector.finish();
  detector.check_invariants();
  result.statistics = detector.statistics();
  result.complete = detector.complete();
  CHECK(result.statistics.retained == 0);
  CHECK(result.statistics.collected + result.statistics.merged + result.statistics.sharing ==
        result.statistics.units);
  return result;
}

void check_cycle(const Trace& trace, const Truth& truth, const DetectedCycle& cycle,
                 bool thread_events) {
  REQUIRE(cycle.steps.size() >= 2);
  std::set<uint64_t> seen;
  for (size_t i = 0; i < cycle.steps.size(); ++i) {
    const DetectedStep& step = cycle.steps[i];
    const DetectedStep& next = cycle.steps[(i + 1) % cycle.steps.size()];
    const auto from = static_cast<uint32_t>(step.from.index);
    const auto to = static_cast<uint32_t>(step.to.index);
    REQUIRE(trace.events[from].kind() == step.from.kind);
    REQUIRE(trace.events[to].kind() == step.to.kind);
    REQUIRE(trace.events[from].thread == step.from.thread);
    if (!thread_events) {
      REQUIRE(truth.directed(from, to));
    }
    if (step.unit.merged == 0) {
      REQUIRE(truth.units()[truth.units().of_event(from)].first_event == step.unit.first);
      REQUIRE(seen.insert(step.unit.first).second);
    }
    if (next.unit.merged == 0) {
      REQUIRE(truth.units()[truth.units().of_event(to)].first_event == next.unit.first);
    }
    // A detour inside a thread is cut short where program order allows.
    REQUIRE_FALSE((step.kind == EdgeKind::kProgramOrder && next.kind == EdgeKind::kProgramOrder &&
                   step.from.thread == next.to.thread && step.from.index < next.to.index &&
                   next.to.kind == EventKind::kWrite));
  }
}

Verdict judge(const Trace& trace, const DetectedCandidate& candidate,
              const AnalysisOptions& options) {
  Trace slice;
  slice.symbols = trace.symbols;
  slice.symbols.initial_zero = false;
  slice.pending_prefix = candidate.slice.pending_prefix;
  slice.events = candidate.slice.events.events;
  slice.extras = candidate.slice.events.extras;
  AnalysisOptions local = options;
  local.values = options.values && candidate.slice.all_stores;
  local.only = ranges_of(candidate.units, candidate.slice.index);
  const auto result = analyse(slice, local);
  REQUIRE_MESSAGE(result.has_value(), result.error().to_string());
  return result->verdict();
}

Verdict judge_all(const Trace& trace, const Watched& watched, const AnalysisOptions& options) {
  Verdict worst = Verdict::kClean;
  for (const DetectedCandidate& candidate : watched.candidates) {
    worst = std::max(worst, candidate.complete   ? judge(trace, candidate, options)
                            : candidate.directed ? Verdict::kDefinite
                                                 : Verdict::kInconclusive);
  }
  return worst;
}

Case random_case(std::mt19937_64& random) {
  Case result;
  RandomTraceOptions& made = result.made;
  made.threads = 2 + static_cast<uint32_t>(random() % 3);
  made.locations = 1 + static_cast<uint32_t>(random() % 3);
  made.steps = 4 + static_cast<uint32_t>(random() % 8);
  made.units = static_cast<uint32_t>(random() % 3) * 30;
  made.locked = static_cast<uint32_t>(random() % 2) * 15;
  made.fences = static_cast<uint32_t>(random() % 3) * 10;
  made.locks = random() % 3 == 0 ? 30 : 0;
  made.store_buffer = random() % 4 == 0 ? 1 + static_cast<uint32_t>(random() % 2) : 0;
  made.nesting = random() % 2 == 0;
  made.intervals = random() % 3 == 0;
  made.mixed_sizes = random() % 4 == 0;
  made.threads_start = random() % 4 == 0;
  made.values = random() % 3 == 0;
  result.trace = in_stream_order(random_trace(random, made).trace);
  result.analysis.values = false;
  result.analysis.relation.store_buffer = made.store_buffer;
  // The simulated run released its locks with plain stores, and its values show it.
  result.analysis.relation.fenced_release = !made.values && random() % 4 == 0;
  result.analysis.relation.semantics = random() % 3 == 0 ? Semantics::kPaper : Semantics::kExact;
  if (random() % 3 == 0) {
    result.analysis.property = Property::kScSerializability;
    result.detector.policy = DetectorPolicy::kSc;
  } else if (random() % 3 == 0) {
    result.analysis.property = Property::kRobustness;
    result.detector.policy = DetectorPolicy::kRobustness;
  }
  result.detector.relation = result.analysis.relation;
  result.detector.tuning.coalesce_singletons = random() % 4 != 0;
  result.detector.tuning.fast_path = random() % 4 != 0;
  result.detector.tuning.edge_reduction_above = static_cast<uint32_t>(random() % 5);
  return result;
}

Collection random_collection(std::mt19937_64& random) {
  switch (random() % 3) {
    case 0:
      return {false, 4096, 0};
    case 1:
      return {true, 4096, 1 + static_cast<uint32_t>(random() % 5)};
    default:
      return {true, static_cast<uint32_t>(random() % (random() % 2 == 0 ? 3 : 16)),
              1 + static_cast<uint32_t>(random() % 5)};
  }
}

std::string random_generations(std::mt19937_64& random) {
  std::string text;
  const auto pick = [&](std::initializer_list<const char*> choices) {
    return std::string(*(choices.begin() + random() % choices.size()));
  };
  const uint64_t generations = 2 + random() % 3;
  for (uint64_t generation = 0; generation < generations; ++generation) {
    const std::array<uint64_t, 3> threads{0, 2 * generation + 1, 2 * generation + 2};
    std::array<bool, 3> open{};
    text += fmt::format("T0:fork(T{}) fork(T{}) ", threads[1], threads[2]);
    for (uint64_t step = 0; step < 4 + random() % 5; ++step) {
      const uint64_t i = random() % 3;
      const bool opens = !open[i] && random() % 2 == 0;
      const bool closes = open[i] && random() % 3 == 0;
      open[i] = (open[i] || opens) && !closes;
      text += fmt::format("T{}:{}", threads[i], opens ? "[" : "");
      text += random() % 4 == 0 ? fmt::format("acq(l) {} rel(l)", pick({"W(x)", "R(x)", "R(y)"}))
                                : pick({"W(x)", "W(y)", "R(x)", "R(y)", "U(x)", "F"});
      text += closes ? "] " : " ";
    }
    for (uint64_t i = 0; i < 3; ++i) {
      text += open[i] ? fmt::format("T{}:R(z)] ", threads[i]) : "";
    }
    text += fmt::format("T0:join(T{}) join(T{}) ", threads[1], threads[2]);
  }
  return text;
}

Trace random_spinning(std::mt19937_64& random) {
  std::string text;
  std::array<bool, 3> open{};
  const auto pick = [&](std::initializer_list<const char*> choices) {
    return std::string(*(choices.begin() + random() % choices.size()));
  };
  const uint64_t steps = 20 + random() % 40;
  const uint64_t others = 4 + random() % 12;
  for (uint64_t step = 0; step < steps; ++step) {
    const uint64_t thread = random() % others == 0 ? 1 + random() % 2 : 0;
    const bool opens = !open[thread] && random() % 5 == 0;
    const bool closes = open[thread] && random() % 3 == 0;
    open[thread] = (open[thread] || opens) && !closes;
    const std::string op = thread != 0 ? pick({"W(x)", "W(x)", "R(x)", "W(y)", "R(y)", "F"})
                           : random() % 12 == 0 ? pick({"W(x)", "W(y)", "R(y)", "F"})
                                                : std::string("R(x)");
    text += fmt::format("T{}:{}{}{} ", thread, opens ? "[" : "", op, closes ? "]" : "");
  }
  for (uint64_t thread = 0; thread < open.size(); ++thread) {
    text += open[thread] ? fmt::format("T{}:R(z)] ", thread) : "";
  }
  const Trace events = mini_trace("T0:W(x) " + text);
  Trace trace;
  trace.symbols = events.symbols;
  const uint64_t longest = 1 + random() % 20;
  for (size_t i = 0; i < events.events.size(); ++i) {
    const auto time = static_cast<int64_t>(i);
    trace.add(events.events[i], time, time + static_cast<int64_t>(random() % longest));
  }
  return trace;
}

}  // namespace tsomon::testing
