// The detector against the checkers of tso/ on random traces: cycles, parts, windows, collection.
#include "online/detector/detector.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/rounds.h"
#include "tests/tso/executions.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tests/tso/sequences.h"
#include "tso/check/analysis.h"
#include "tso/check/atomic_sets.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(10'000, 210'000);
const int kLongRounds = rounds(60, 600);

struct Watched {
  std::vector<DetectedCycle> cycles;
  std::vector<DetectedPart> parts;
  std::vector<DetectedWindow> windows;
  DetectorStatistics statistics;
  bool complete = true;
};

struct Collection {
  bool collect = true;
  uint32_t max_retained = 4096;
  uint32_t sweep_every = 0;  // events
};

Watched watch(const Trace& trace, DetectorOptions options, const Collection& collection) {
  Watched result;
  options.tuning.collect = collection.collect;
  options.tuning.max_retained = collection.max_retained;
  DetectorCallbacks callbacks;
  callbacks.on_cycle = [&](const DetectedCycle& cycle) { result.cycles.push_back(cycle); };
  callbacks.on_part = [&](const DetectedPart& part) { result.parts.push_back(part); };
  callbacks.on_window = [&](DetectedWindow&& window) {
    result.windows.push_back(std::move(window));
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

// The directed conflict graph by all pairs of events: the strongly connected parts with more than
// one unit, each as the set of first events.
class Truth {
 public:
  Truth(const Trace& trace, const RelationOptions& options)
      : trace_(trace), units_(trace), locations_(trace), relation_(trace, locations_, options) {
    const size_t n = units_.size();
    reach_.assign(n, std::vector<bool>(n, false));
    for (uint32_t e = 0; e < trace.events.size(); ++e) {
      for (uint32_t f = 0; f < trace.events.size(); ++f) {
        if (e != f && directed(e, f)) {
          reach_[units_.of_event(e)][units_.of_event(f)] = true;
        }
      }
    }
    for (size_t k = 0; k < n; ++k) {
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; reach_[i][k] && j < n; ++j) {
          reach_[i][j] = reach_[i][j] || reach_[k][j];
        }
      }
    }
  }

  bool directed(uint32_t e, uint32_t f) const {
    return is(trace_.events[e], kinds::kNodes) && is(trace_.events[f], kinds::kNodes) &&
           relation_.between(e, f) == Order::kBefore;
  }
  const UnitTable& units() const { return units_; }

  // Without events of their own on demand: which of them belong to a part is not asked where they
  // share nodes.
  std::set<std::set<uint64_t>> parts(bool all) const {
    std::set<std::set<uint64_t>> result;
    for (UnitId i = 0; i < units_.size(); ++i) {
      std::set<uint64_t> part;
      size_t units = 0;
      for (UnitId j = 0; j < units_.size(); ++j) {
        if (i == j || (reach_[i][j] && reach_[j][i])) {
          ++units;
          if (all || units_[j].label != Interner::kNone) {
            part.insert(units_[j].first_event);
          }
        }
      }
      if (units > 1) {
        result.insert(part);
      }
    }
    return result;
  }

 private:
  const Trace& trace_;
  UnitTable units_;
  LocationTable locations_;
  Relation relation_;
  std::vector<std::vector<bool>> reach_;
};

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

Verdict judge(const Trace& trace, const DetectedWindow& window, const AnalysisOptions& options) {
  Trace slice;
  slice.symbols = trace.symbols;
  slice.symbols.initial_zero = false;
  slice.in_front = window.in_front;
  slice.events = window.events.events;
  slice.extras = window.events.extras;
  AnalysisOptions local = options;
  local.values = options.values && window.all_stores;
  local.only = ranges_of(window.units, window.index);
  const auto result = analyse(slice, local);
  REQUIRE_MESSAGE(result.has_value(), result.error().to_string());
  return result->verdict();
}

Verdict judge_all(const Trace& trace, const Watched& watched, const AnalysisOptions& options) {
  Verdict worst = Verdict::kClean;
  for (const DetectedWindow& window : watched.windows) {
    worst = std::max(worst, window.complete   ? judge(trace, window, options)
                            : window.directed ? Verdict::kDefinite
                                              : Verdict::kInconclusive);
  }
  return worst;
}

struct Case {
  RandomTraceOptions made;
  Trace trace;
  DetectorOptions detector;
  AnalysisOptions analysis;
};

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

// Two threads at a time beside the first, which starts and joins them.
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

// A thread that mostly reads what it has stored, and others that now and then store there, too.
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

}  // namespace

TEST_CASE("cycles, parts and windows equal those of all pairs of events") {
  constexpr uint64_t kSeed = 20261121;
  std::mt19937_64 random(kSeed);
  int violating = 0;
  int with_cycle = 0;
  int merged = 0;
  uint64_t sharing = 0;
  int by_locks = 0;
  int not_robust = 0;
  int compared = 0;  // with all orientations of all pairs
  uint64_t flagged = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Case made = random_case(random);
    const Collection collection = random_collection(random);
    const Trace& trace = made.trace;
    INFO("seed " << kSeed << " round " << round << " policy "
                 << static_cast<int>(made.detector.policy) << " store buffer "
                 << made.detector.relation.store_buffer << " fenced release "
                 << made.detector.relation.fenced_release << " collect " << collection.collect
                 << " retained " << collection.max_retained << " every " << collection.sweep_every
                 << " shared " << made.detector.tuning.coalesce_singletons << "\n"
                 << show(trace));
    RelationOptions relation = made.detector.relation;
    relation.model =
        made.detector.policy == DetectorPolicy::kSc ? MemoryModel::kSc : MemoryModel::kTso;
    const Truth truth(trace, relation);
    const Watched watched = watch(trace, made.detector, collection);
    REQUIRE(watched.statistics.late_events == 0);
    REQUIRE(watched.statistics.forced == 0);

    // A cycle of directed edges is reported iff there is one, and the parts are the same. Among
    // single events there is none.
    const bool robustness = made.detector.policy == DetectorPolicy::kRobustness;
    const bool own_nodes = !made.detector.tuning.coalesce_singletons;
    const auto parts = robustness ? std::set<std::set<uint64_t>>() : truth.parts(own_nodes);
    const bool thread_events = made.made.threads_start;
    REQUIRE((parts.empty() || !watched.cycles.empty()));
    if (!thread_events) {
      REQUIRE(watched.cycles.empty() == parts.empty());
    }
    for (const DetectedCycle& cycle : watched.cycles) {
      check_cycle(trace, truth, cycle, thread_events);
    }
    with_cycle += parts.empty() ? 0 : 1;
    merged += watched.statistics.merged > 0 ? 1 : 0;
    sharing += watched.statistics.sharing;
    if (watched.statistics.merged == 0 && !thread_events) {
      std::set<std::set<uint64_t>> reported;
      for (const DetectedPart& part : watched.parts) {
        std::set<uint64_t> members;
        for (const DetectedUnit& unit : part.members) {
          if (own_nodes || unit.label != Interner::kNone) {
            members.insert(unit.first);
          }
        }
        REQUIRE((!own_nodes || members.size() == part.units));
        reported.insert(members);
      }
      REQUIRE(reported == parts);
    }

    // What is violated is violated inside a window, and nothing else is.
    const auto whole = analyse(trace, made.analysis);
    REQUIRE_MESSAGE(whole.has_value(), whole.error().to_string());
    const Verdict by_windows = judge_all(trace, watched, made.analysis);
    flagged += watched.windows.size();
    violating += whole->verdict() == Verdict::kClean ? 0 : 1;
    not_robust += robustness && whole->verdict() != Verdict::kClean ? 1 : 0;
    if (const NaiveChecker naive(trace, made.analysis.relation);
        robustness && round % 4 == 0 && trace.events.size() <= 64) {
      const auto by_hand = naive.verdict(Property::kRobustness);
      compared += by_hand ? 1 : 0;
      // Ties alone allow a little more than executions do.
      if (by_hand && made.made.locks == 0 && *by_hand != whole->verdict()) {
        REQUIRE(made.analysis.relation.semantics == Semantics::kExact);
        const auto exact = Executions(trace, made.analysis.relation)
                               .verdict(Property::kRobustness, false, 10'000'000);
        REQUIRE((!exact || *exact == whole->verdict()));
      }
    }
    if (watched.complete && by_windows != whole->verdict()) {
      REQUIRE(made.made.locks != 0);
      ++by_locks;
      // Which releases came before the stretch of a window and which locks were held is not known
      // in it, or the paper's relation makes less of them (OrderPolicy).
      if (by_windows != Verdict::kPossible) {
        REQUIRE(made.analysis.relation.semantics == Semantics::kPaper);
        AnalysisOptions exact = made.analysis;
        exact.relation.semantics = Semantics::kExact;
        const auto refined = analyse(trace, exact);
        REQUIRE((refined && refined->verdict() == by_windows));
      }
    } else if (!watched.complete) {
      REQUIRE(watched.statistics.merged > 0);
      REQUIRE((whole->verdict() == Verdict::kClean || by_windows != Verdict::kClean));
      REQUIRE((by_windows != Verdict::kDefinite || whole->verdict() == Verdict::kDefinite));
    }
    if (made.made.values && watched.complete && made.detector.policy != DetectorPolicy::kSc) {
      AnalysisOptions with_values = made.analysis;
      with_values.values = true;
      const auto refined = analyse(trace, with_values);
      REQUIRE(refined.has_value());
      const Verdict window = judge_all(trace, watched, with_values);
      // Less is known of memory inside a window; where fewer sizes meet, a little more.
      REQUIRE((window == refined->verdict() || window == Verdict::kPossible ||
               (made.made.mixed_sizes && refined->verdict() == Verdict::kPossible)));
    }
  }
  MESSAGE(kRounds << " traces: " << violating << " violating, " << with_cycle
                  << " with a directed cycle, " << flagged << " windows, " << merged
                  << " with merged units, " << sharing << " events that share a node, " << by_locks
                  << " less certain for what was before a window, " << not_robust << " not robust, "
                  << compared << " compared with all orientations");
  CHECK(not_robust > kRounds / 100);
  CHECK(compared > kRounds / 100);
  CHECK(sharing > kRounds / 20);
  CHECK(by_locks <= 1 + kRounds / 10'000);
  CHECK(violating > kRounds / 10);
  CHECK(with_cycle > kRounds / 20);
  CHECK(merged > kRounds / 100);
}

namespace {

bool any_certain(const Watched& watched) {
  return std::any_of(watched.cycles.begin(), watched.cycles.end(),
                     [](const DetectedCycle& cycle) { return cycle.certain(); });
}

// Every step of a certain cycle is a conflict in the order of the trace.
void check_certain_steps(const Trace& trace, const Watched& watched) {
  for (const DetectedCycle& cycle : watched.cycles) {
    for (const DetectedStep& step : cycle.steps) {
      const Event& from = trace.events[step.from.index];
      const Event& to = trace.events[step.to.index];
      REQUIRE(overlap({from.address, from.size}, {to.address, to.size}));
      REQUIRE((from.kind() != EventKind::kRead || to.kind() != EventKind::kRead));
      REQUIRE(step.from.index < step.to.index);
      REQUIRE(
          (step.kind == EdgeKind::kOverlap || from.thread == to.thread || trace.hi(from) < to.lo));
    }
  }
}

}  // namespace

TEST_CASE("a window of units that were merged has them all, up to a bound") {
  for (const bool many : {false, true}) {
    std::string text = "T0:[acq(l) W(x) rel(l) ";
    const int units = many ? 1000 : 40;
    for (int i = 0; i < units; ++i) {
      text += fmt::format("T{}:[acq(l) R(x) W(x) rel(l)] ", 1 + i % 2);
    }
    const Trace trace = mini_trace(text + "T1:[acq(l) R(x) rel(l) W(y)] T0:R(y)]");
    const Watched watched = watch(trace, DetectorOptions(), {true, 64, 16});
    CHECK(watched.statistics.merged > 20);
    REQUIRE(watched.windows.size() == 1);
    CHECK(watched.windows.front().complete != many);
    CHECK(watched.complete != many);
    CHECK((many || watched.windows.front().units.size() == static_cast<size_t>(units) + 2));
    const AnalysisOptions analysis;
    const auto whole = analyse(trace, analysis);
    REQUIRE(whole.has_value());
    CHECK(whole->verdict() == Verdict::kPossible);
    CHECK(judge_all(trace, watched, analysis) ==
          (many ? Verdict::kInconclusive : Verdict::kPossible));
  }
}

TEST_CASE("units that recorded values let go take no violation with them") {
  constexpr uint64_t kSeed = 20261127;
  std::mt19937_64 random(kSeed);
  const int kTraces = kRounds / 8;
  int verdicts[4] = {};
  uint64_t known = 0;
  uint64_t merged = 0;
  for (int round = 0; round < kTraces; ++round) {
    Case made = random_case(random);
    made.made.steps = 10 + static_cast<uint32_t>(random() % (random() % 4 == 0 ? 60 : 20));
    made.made.locations += static_cast<uint32_t>(random() % 3);
    made.made.values = true;
    const RandomTrace happened = random_trace(random, made.made);
    const Trace trace = in_stream_order(happened.trace);
    RelationOptions& relation = made.analysis.relation;
    relation.fenced_release = false;
    made.detector.policy = DetectorPolicy::kTso;
    made.detector.relation = relation;
    made.detector.tuning.value_inference_threshold =
        static_cast<uint32_t>(random() % (random() % 2 == 0 ? 2 : 12));
    made.detector.tuning.value_inference_span = random() % 2 == 0 ? 1000 : 4 + random() % 30;
    made.analysis.property = Property::kSerializability;
    made.analysis.values = true;
    const Collection collection{true,
                                static_cast<uint32_t>(random() % 2 == 0 ? 4096 : random() % 16),
                                1 + static_cast<uint32_t>(random() % 6)};
    INFO("seed " << kSeed << " round " << round << " sweep every " << collection.sweep_every
                 << " ask at " << made.detector.tuning.value_inference_threshold << " merge at "
                 << collection.max_retained << "\n"
                 << show(trace));
    const Watched watched = watch(trace, made.detector, collection);
    const Verdict verdict = judge_all(trace, watched, made.analysis);
    const bool bad = Executions(happened.trace, relation)
                         .violates(Property::kSerializability, happened.execution);
    REQUIRE((!bad || verdict != Verdict::kClean));
    const bool exact = relation.semantics == Semantics::kExact;
    REQUIRE((bad || !exact || verdict != Verdict::kDefinite));
    const auto whole = analyse(trace, made.analysis);
    REQUIRE(whole.has_value());
    // A load of bytes that several stores wrote explains nothing, until these lie outside a window.
    if (exact && !made.made.mixed_sizes && whole->verdict() != Verdict::kInconclusive) {
      REQUIRE((verdict != Verdict::kClean || whole->verdict() == Verdict::kClean));
      REQUIRE((verdict != Verdict::kDefinite || whole->verdict() == Verdict::kDefinite));
    }
    ++verdicts[static_cast<int>(verdict)];
    known += watched.statistics.known;
    merged += watched.statistics.known != 0 ? watched.statistics.merged : 0;
  }
  MESSAGE(kTraces << " traces, clean " << verdicts[0] << ", possible " << verdicts[1]
                  << ", definite " << verdicts[2] << ", not judged " << verdicts[3] << "; " << known
                  << " units gone by values, " << merged << " merged beside them");
  CHECK(verdicts[0] > kTraces / 20);
  CHECK(verdicts[1] > kTraces / 20);
  CHECK(verdicts[2] > kTraces / 20);
  CHECK(known > static_cast<uint64_t>(kTraces) / 4);
  CHECK(merged > static_cast<uint64_t>(kTraces) / 10);
}

TEST_CASE("loads of a thread's own store that others stand for") {
  constexpr uint64_t kSeed = 20261128;
  std::mt19937_64 random(kSeed);
  const int kTraces = kRounds / 4;
  int verdicts[4] = {};
  int given_up = 0;
  for (int round = 0; round < kTraces; ++round) {
    const Trace trace = random_spinning(random);
    DetectorOptions options;
    options.tuning.max_pending_stores = 2 + static_cast<uint32_t>(random() % 6);
    options.tuning.edge_reduction_above = static_cast<uint32_t>(random() % 5);
    options.values = false;
    const Collection collection{true,
                                static_cast<uint32_t>(random() % 2 == 0 ? 4096 : random() % 9),
                                1 + static_cast<uint32_t>(random() % 9)};
    INFO("seed " << kSeed << " round " << round << " sweep every " << collection.sweep_every
                 << " merge at " << collection.max_retained << " unsettled "
                 << options.tuning.max_pending_stores << "\n"
                 << show(trace));
    const Watched watched = watch(trace, options, collection);
    if (watched.statistics.forced > 0) {
      ++given_up;
      continue;
    }
    const AnalysisOptions analysis;
    const auto whole = analyse(trace, analysis);
    REQUIRE(whole.has_value());
    const Verdict verdict = judge_all(trace, watched, analysis);
    REQUIRE((verdict == whole->verdict() || verdict == Verdict::kInconclusive));
    ++verdicts[static_cast<int>(verdict)];
  }
  MESSAGE(kTraces << " traces, clean " << verdicts[0] << ", possible " << verdicts[1]
                  << ", definite " << verdicts[2] << ", not judged " << verdicts[3] << "; "
                  << given_up << " with something given up");
  for (int verdict = 0; verdict < 3; ++verdict) {
    CHECK(verdicts[verdict] > kTraces / 500);
  }
}

TEST_CASE("threads that come, are joined, and are followed by others") {
  constexpr uint64_t kSeed = 99;
  std::mt19937_64 random(kSeed);
  int violating = 0;
  int by_locks = 0;
  for (int round = 0; round < kRounds / 10; ++round) {
    const Trace trace = mini_trace(random_generations(random));
    DetectorOptions options;
    options.tuning.coalesce_singletons = random() % 2 == 0;
    const Collection collection = random_collection(random);
    INFO("seed " << kSeed << " round " << round << " every " << collection.sweep_every << "\n"
                 << show(trace));
    const Truth truth(trace, options.relation);
    const Watched watched = watch(trace, options, collection);
    REQUIRE((truth.parts(!options.tuning.coalesce_singletons).empty() || !watched.cycles.empty()));
    for (const DetectedCycle& cycle : watched.cycles) {
      check_cycle(trace, truth, cycle, true);
    }
    const AnalysisOptions analysis;
    const auto whole = analyse(trace, analysis);
    REQUIRE(whole.has_value());
    const Verdict by_windows = judge_all(trace, watched, analysis);
    violating += whole->verdict() == Verdict::kClean ? 0 : 1;
    // The release that decided it may lie before the stretch of a window.
    if (watched.complete && by_windows != whole->verdict()) {
      REQUIRE(by_windows == Verdict::kPossible);
      ++by_locks;
    }
  }
  CHECK(by_locks < kRounds / 10'000);
  MESSAGE(violating << " violating of " << kRounds / 10 << ", " << by_locks << " with locks");
}

TEST_CASE("atomic sets: a cycle is reported iff the whole trace has one") {
  constexpr uint64_t kSeed = 7071;
  std::mt19937_64 random(kSeed);
  int violated = 0;
  int definite = 0;
  int known_as_definite = 0;
  for (int round = 0; round < kRounds / 2; ++round) {
    RandomTraceOptions made;
    made.threads = 2 + static_cast<uint32_t>(random() % 3);
    made.locations = 1 + static_cast<uint32_t>(random() % 4);
    made.steps = 5 + static_cast<uint32_t>(random() % 20);
    made.units = 20 + static_cast<uint32_t>(random() % 3) * 15;
    made.locked = static_cast<uint32_t>(random() % 2) * 15;
    made.nesting = random() % 3 != 0;
    made.mixed_sizes = random() % 4 == 0;
    made.intervals = random() % 3 == 0;
    Trace trace = in_stream_order(random_trace(random, made).trace);
    if (random() % 4 != 0) {
      const auto key = [&](uint32_t v) {
        return made.mixed_sizes ? LocationKey{0x1000 + 2 * v, 2} : LocationKey{v, 0};
      };
      trace.symbols.sets = {{"A", {key(0), key(1)}}, {"B", {key(1), key(2)}}};
      const uint32_t labels[] = {
          trace.symbols.labels.intern("a;A"), trace.symbols.labels.intern("b;B"),
          trace.symbols.labels.intern("ab;A,B"), trace.symbols.labels.intern("all"),
          trace.symbols.labels.intern("other;C")};
      for (Event& event : trace.events) {
        if (event.kind() == EventKind::kUnitBegin) {
          event.address = labels[random() % 5];
        } else if (event.kind() == EventKind::kFence && random() % 2 == 0) {
          event.set_kind(EventKind::kWait);
        }
      }
    }
    INFO("seed " << kSeed << " round " << round << "\n" << show(trace));
    AtomicSetOptions alone;
    alone.refine = false;
    const Analysis whole = analyse_atomic_sets(trace, alone);
    DetectorOptions options;
    options.policy = DetectorPolicy::kAtomicSets;
    const Watched watched = watch(trace, options, random_collection(random));
    REQUIRE(watched.cycles.empty() == whole.findings.empty());
    REQUIRE(watched.complete == whole.complete());
    check_certain_steps(trace, watched);
    REQUIRE((!any_certain(watched) || whole.verdict() == Verdict::kDefinite));
    REQUIRE((whole.verdict() != Verdict::kDefinite || made.intervals || any_certain(watched)));
    std::set<uint32_t> sets;
    for (const DetectedCycle& cycle : watched.cycles) {
      sets.insert(cycle.set);
    }
    REQUIRE(sets.size() == whole.findings.size());
    violated += whole.findings.empty() ? 0 : 1;
    definite += whole.verdict() == Verdict::kDefinite && made.intervals ? 1 : 0;
    known_as_definite += any_certain(watched) && made.intervals ? 1 : 0;
  }
  MESSAGE(violated << " violated; with intervals " << definite << " definite, of which "
                   << known_as_definite << " are reported as such");
  CHECK(violated > kRounds / 50);
  CHECK(known_as_definite > definite / 2);
}

TEST_CASE("atomic sets: units that are open when a set becomes known are declared on it") {
  for (const bool early : {false, true}) {
    CAPTURE(early);
    Symbols symbols;
    const uint32_t labels[] = {symbols.labels.intern("outer"), symbols.labels.intern("inner;A")};
    const auto event = [](EventKind kind, ThreadId thread, uint64_t address) {
      Event made;
      made.set_kind(kind);
      made.thread = thread;
      made.address = address;
      return made;
    };
    int cycles = 0;
    DetectorCallbacks callbacks;
    callbacks.on_cycle = [&](const DetectedCycle&) { ++cycles; };
    DetectorOptions options;
    options.policy = DetectorPolicy::kAtomicSets;
    Detector detector(symbols, options, callbacks);
    uint64_t index = 0;
    const auto add = [&](const Event& each) {
      EventBlock block;
      block.add(each, static_cast<int64_t>(index), static_cast<int64_t>(index));
      detector.add(block, index++);
    };
    if (early) {
      symbols.sets.push_back({"B", {{7, 0}}});
    }
    add(event(EventKind::kUnitBegin, 0, labels[1]));
    add(event(EventKind::kUnitBegin, 1, labels[0]));
    add(event(EventKind::kUnitBegin, 1, labels[1]));
    symbols.sets.push_back({"A", {{0, 0}}});
    add(event(EventKind::kRead, 0, 0));
    add(event(EventKind::kRead, 1, 0));
    add(event(EventKind::kUnitEnd, 1, 0));  // the outer one goes on
    add(event(EventKind::kWrite, 1, 0));
    add(event(EventKind::kUnitEnd, 1, 0));
    CHECK(cycles == 0);
    add(event(EventKind::kWrite, 0, 0));
    CHECK(cycles == 1);
    add(event(EventKind::kUnitEnd, 0, 0));
    detector.finish();
    CHECK(detector.complete());
  }
}

TEST_CASE("atomic sets: sets declared after accesses to objects leave nothing clean") {
  Symbols symbols;
  DetectorOptions options;
  options.policy = DetectorPolicy::kAtomicSets;
  Detector detector(symbols, options, {});
  Event event;
  EventBlock block;
  int64_t time = 0;
  for (const EventKind kind : {EventKind::kAllocate, EventKind::kRead}) {
    event.set_kind(kind);
    event.address = 0x1000;
    event.size = 8;
    block.add(event, time, time);
    ++time;
  }
  detector.add(block, 0);
  symbols.sets.push_back({"late", {{0x1000, 8}}});
  block.clear();
  event.set_kind(EventKind::kWrite);
  block.add(event, time, time);
  detector.add(block, 2);
  detector.finish();
  CHECK_FALSE(detector.complete());
}

TEST_CASE("atomic sets: objects that come and go") {
  constexpr uint64_t kSeed = 4711;
  std::mt19937_64 random(kSeed);
  int violated = 0;
  int with_intervals = 0;
  int ended = 0;
  for (int round = 0; round < kRounds / 4; ++round) {
    RandomTraceOptions made;
    made.threads = 2 + static_cast<uint32_t>(random() % 3);
    made.steps = 5 + static_cast<uint32_t>(random() % 40);
    made.units = 20 + static_cast<uint32_t>(random() % 3) * 15;
    made.fences = 5 + static_cast<uint32_t>(random() % 2) * 10;
    made.nesting = random() % 3 != 0;
    made.mixed_sizes = true;
    made.intervals = random() % 3 == 0;
    Trace trace = in_stream_order(random_trace(random, made).trace);
    bool first = true;
    for (Event& event : trace.events) {
      if (first || (event.kind() == EventKind::kFence && random() % 2 == 0)) {
        if (event.has_extras() == 0) {
          event.set_kind(EventKind::kAllocate);
          event.address = 0xFF8 + random() % 16;
          event.size = 1 + (random() % 10);
        }
      } else if (event.kind() == EventKind::kFence && random() % 2 == 0) {
        event.set_kind(EventKind::kFree);
        event.address = 0xFF8 + random() % 16;
      } else if (event.kind() == EventKind::kFence) {
        event.set_kind(EventKind::kWait);
      }
      first = false;
    }
    INFO("seed " << kSeed << " round " << round << "\n" << show(trace));
    const SetChoice choice = random() % 2 == 0 ? SetChoice::kObjects : SetChoice::kAuto;
    AtomicSetOptions alone;
    alone.refine = false;
    alone.sets = choice;
    const Analysis whole = analyse_atomic_sets(trace, alone);
    DetectorOptions options;
    options.policy = DetectorPolicy::kAtomicSets;
    options.sets = choice;
    const Watched watched = watch(trace, options, random_collection(random));
    if (watched.statistics.late_events > 0) {
      REQUIRE_FALSE(watched.complete);
      continue;
    }
    REQUIRE(watched.cycles.empty() == whole.findings.empty());
    REQUIRE((whole.complete() || !watched.complete));
    REQUIRE((watched.complete || made.intervals));
    check_certain_steps(trace, watched);
    REQUIRE((!any_certain(watched) || whole.verdict() == Verdict::kDefinite));
    REQUIRE((whole.verdict() != Verdict::kDefinite || made.intervals || any_certain(watched)));
    violated += whole.findings.empty() ? 0 : 1;
    with_intervals += made.intervals && any_certain(watched) ? 1 : 0;
    ended += static_cast<int>(watched.statistics.objects) > 1 ? 1 : 0;
  }
  MESSAGE(violated << " violated, " << with_intervals << " certainly in spite of intervals; "
                   << ended << " with more than one object");
  CHECK(violated > kRounds / 100);
  CHECK(with_intervals > kRounds / 2000);
  CHECK(ended > kRounds / 20);
}

// Edges that follow from others may be more or fewer.
TEST_CASE("the short ways change no part and no window") {
  constexpr uint64_t kSeed = 20261122;
  std::mt19937_64 random(kSeed);
  uint64_t alone = 0;
  uint64_t quiet = 0;
  uint64_t events = 0;
  for (int round = 0; round < kRounds / 2; ++round) {
    Case made = random_case(random);
    if (random() % 2 == 0) {  // few stores, many loads of the same unit
      for (Event& event : made.trace.events) {
        if (event.kind() == EventKind::kWrite && event.has_write_value == 0 && random() % 4 != 0) {
          event.set_kind(EventKind::kRead);
        }
      }
    }
    made.detector.policy = DetectorPolicy::kTso;
    const Collection collection = random_collection(random);
    INFO("seed " << kSeed << " round " << round << "\n" << show(made.trace));
    made.detector.tuning.fast_path = false;
    Watched all = watch(made.trace, made.detector, collection);
    made.detector.tuning.fast_path = true;
    Watched watched = watch(made.trace, made.detector, collection);
    // Those of one sweep come in no particular order.
    for (std::vector<DetectedWindow>* windows : {&all.windows, &watched.windows}) {
      std::sort(windows->begin(), windows->end(),
                [](const DetectedWindow& a, const DetectedWindow& b) {
                  return a.units.front().first < b.units.front().first;
                });
    }
    const auto same = [&](auto member) {
      return all.statistics.*member == watched.statistics.*member;
    };
    REQUIRE(all.statistics.quiet + all.statistics.alone == 0);
    REQUIRE(same(&DetectorStatistics::units));
    REQUIRE(same(&DetectorStatistics::sharing));
    // Inside a part they are not counted, and which edge of an event comes first may differ.
    REQUIRE((!all.cycles.empty() || same(&DetectorStatistics::undirected_edges)));
    REQUIRE(same(&DetectorStatistics::collected));
    REQUIRE(same(&DetectorStatistics::merged));
    REQUIRE(all.cycles.empty() == watched.cycles.empty());
    REQUIRE(all.parts.size() == watched.parts.size());
    REQUIRE(all.windows.size() == watched.windows.size());
    for (size_t i = 0; i < all.windows.size(); ++i) {
      REQUIRE(all.windows[i].directed == watched.windows[i].directed);
      REQUIRE(all.windows[i].index == watched.windows[i].index);
      REQUIRE(all.windows[i].units.size() == watched.windows[i].units.size());
      for (size_t k = 0; k < all.windows[i].units.size(); ++k) {
        REQUIRE(all.windows[i].units[k].first == watched.windows[i].units[k].first);
        REQUIRE(all.windows[i].units[k].last == watched.windows[i].units[k].last);
      }
    }
    quiet += watched.statistics.quiet;
    alone += watched.statistics.alone;
    events += made.trace.events.size();
  }
  MESSAGE(alone << " alone and " << quiet << " quiet of " << events << " events");
  CHECK(alone > events / 10);
  CHECK(quiet > events / 50);
}

TEST_CASE("collection and merging change no cycle of a long trace") {
  constexpr uint64_t kSeed = 99;
  std::mt19937_64 random(kSeed);
  int with_cycle = 0;
  uint64_t merged = 0;
  for (int round = 0; round < kLongRounds; ++round) {
    RandomTraceOptions made;
    made.threads = 2 + static_cast<uint32_t>(random() % 4);
    made.locations = 2 + static_cast<uint32_t>(random() % 2 == 0 ? random() % 30 : random() % 3000);
    made.steps = 200 + static_cast<uint32_t>(random() % 800);
    made.units = 10 + static_cast<uint32_t>(random() % 40);
    made.locked = static_cast<uint32_t>(random() % 4) * 10;
    made.fences = static_cast<uint32_t>(random() % 4) * 5;
    made.locks = random() % 2 == 0 ? 20 : 0;
    made.nesting = random() % 2 == 0;
    made.intervals = random() % 4 == 0;
    made.mixed_sizes = random() % 4 == 0;
    Trace trace = in_stream_order(random_trace(random, made).trace);
    // In some traces one unit stays open: it begins first and never ends.
    if (random() % 2 == 0) {
      bool begun = false;
      for (Event& event : trace.events) {
        const bool boundary =
            event.kind() == EventKind::kUnitBegin || event.kind() == EventKind::kUnitEnd;
        if (event.thread == 0 && boundary) {
          event.set_kind(begun ? EventKind::kBranch : EventKind::kUnitBegin);
          begun = true;
        }
      }
    }
    DetectorOptions options;
    options.policy = random() % 3 == 0 ? DetectorPolicy::kSc : DetectorPolicy::kTso;
    options.tuning.coalesce_singletons = random() % 2 == 0;
    options.tuning.edge_reduction_above = static_cast<uint32_t>(random() % 16);
    if (random() % 2 == 0) {
      options.relation.store_buffer = 1 + static_cast<uint32_t>(random() % 8);
    }
    INFO("seed " << kSeed << " round " << round);
    const Watched all = watch(trace, options, {false, 0, 0});
    const Watched collected = watch(trace, options, {true, 4096, 16});
    const Watched contracted = watch(trace, options, {true, 8, 16});
    for (const Watched* watched : {&collected, &contracted}) {
      REQUIRE(watched->cycles.empty() == all.cycles.empty());
      // The first cycle is closed by the same event.
      if (!all.cycles.empty()) {
        const auto closing = [](const DetectedCycle& cycle) {
          uint64_t last = 0;
          for (const DetectedStep& step : cycle.steps) {
            last = std::max(last, step.to.index);
          }
          return last;
        };
        REQUIRE(closing(watched->cycles.front()) == closing(all.cycles.front()));
      }
    }
    // A sweep ends what shares a node; how much does changes what is flagged, not what is violated.
    REQUIRE((options.tuning.coalesce_singletons || collected.windows.size() == all.windows.size()));
    REQUIRE(collected.parts.size() == all.parts.size());
    with_cycle += all.cycles.empty() ? 0 : 1;
    merged += contracted.statistics.merged;
  }
  MESSAGE(with_cycle << " with a cycle, " << merged << " units merged");
  CHECK(with_cycle > kLongRounds / 10);
  CHECK(with_cycle < kLongRounds);
  CHECK(merged > 1000);
}
