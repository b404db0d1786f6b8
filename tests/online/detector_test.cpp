// The detector against the checkers of tso/ on random traces: cycles, components, candidates, collection.
#include "online/detector/detector.h"

#include <algorithm>
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/online/detector_cases.h"
#include "tests/tso/executions.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tests/tso/sequences.h"
#include "tso/check/analysis.h"

using namespace tsomon;
using namespace tsomon::testing;

TEST_CASE("cycles, components and candidates equal those of all pairs of events") {
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
    REQUIRE(watched.statistics.evicted == 0);

    // A cycle of directed edges is reported iff there is one, and the components are the same. Among
    // single events there is none.
    const bool robustness = made.detector.policy == DetectorPolicy::kRobustness;
    const bool own_nodes = !made.detector.tuning.coalesce_singletons;
    const auto components =
        robustness ? std::set<std::set<uint64_t>>() : truth.components(own_nodes);
    const bool thread_events = made.made.threads_start;
    REQUIRE((components.empty() || !watched.cycles.empty()));
    if (!thread_events) {
      REQUIRE(watched.cycles.empty() == components.empty());
    }
    for (const DetectedCycle& cycle : watched.cycles) {
      check_cycle(trace, truth, cycle, thread_events);
    }
    with_cycle += components.empty() ? 0 : 1;
    merged += watched.statistics.merged > 0 ? 1 : 0;
    sharing += watched.statistics.sharing;
    if (watched.statistics.merged == 0 && !thread_events) {
      std::set<std::set<uint64_t>> reported;
      for (const DetectedComponent& component : watched.components) {
        std::set<uint64_t> members;
        for (const DetectedUnit& unit : component.members) {
          if (own_nodes || unit.label != Interner::kNone) {
            members.insert(unit.first);
          }
        }
        REQUIRE((!own_nodes || members.size() == component.units));
        reported.insert(members);
      }
      REQUIRE(reported == components);
    }

    // What is violated is violated inside a candidate, and nothing else is.
    const auto whole = analyse(trace, made.analysis);
    REQUIRE_MESSAGE(whole.has_value(), whole.error().to_string());
    const Verdict by_candidates = judge_all(trace, watched, made.analysis);
    flagged += watched.candidates.size();
    violating += whole->verdict() == Verdict::kClean ? 0 : 1;
    not_robust += robustness && whole->verdict() != Verdict::kClean ? 1 : 0;
    if (const NaiveChecker naive(trace, made.analysis.relation);
        robustness && round % 4 == 0 && trace.events.size() <= 64) {
      const auto by_hand = naive.verdict(Property::kRobustness);
      compared += by_hand ? 1 : 0;
      // Forwarding constraints alone allow a little more than executions do.
      if (by_hand && made.made.locks == 0 && *by_hand != whole->verdict()) {
        REQUIRE(made.analysis.relation.semantics == Semantics::kExact);
        const auto exact = Executions(trace, made.analysis.relation)
                               .verdict(Property::kRobustness, false, 10'000'000);
        REQUIRE((!exact || *exact == whole->verdict()));
      }
    }
    if (watched.complete && by_candidates != whole->verdict()) {
      REQUIRE(made.made.locks != 0);
      ++by_locks;
      // Which releases came before the slice of a candidate and which locks were held is not known
      // in it, or the paper's relation makes less of them (OrderPolicy).
      if (by_candidates != Verdict::kPossible) {
        REQUIRE(made.analysis.relation.semantics == Semantics::kPaper);
        AnalysisOptions exact = made.analysis;
        exact.relation.semantics = Semantics::kExact;
        const auto refined = analyse(trace, exact);
        REQUIRE((refined && refined->verdict() == by_candidates));
      }
    } else if (!watched.complete) {
      REQUIRE((watched.statistics.merged > 0 || watched.statistics.misled));
      REQUIRE((whole->verdict() == Verdict::kClean || by_candidates != Verdict::kClean));
      REQUIRE((by_candidates != Verdict::kDefinite || whole->verdict() == Verdict::kDefinite));
    }
    if (made.made.values && watched.complete && made.detector.policy != DetectorPolicy::kSc) {
      AnalysisOptions with_values = made.analysis;
      with_values.values = true;
      const auto refined = analyse(trace, with_values);
      REQUIRE(refined.has_value());
      const Verdict candidate = judge_all(trace, watched, with_values);
      // Less is known of memory inside a candidate; where fewer sizes meet, a little more.
      REQUIRE((candidate == refined->verdict() || candidate == Verdict::kPossible ||
               (made.made.mixed_sizes && refined->verdict() == Verdict::kPossible)));
    }
  }
  MESSAGE(kRounds << " traces: " << violating << " violating, " << with_cycle
                  << " with a directed cycle, " << flagged << " candidates, " << merged
                  << " with merged units, " << sharing << " events that share a node, " << by_locks
                  << " less certain for what was before a candidate, " << not_robust
                  << " not robust, " << compared << " compared with all orientations");
  CHECK(not_robust > kRounds / 100);
  CHECK(compared > kRounds / 100);
  CHECK(sharing > kRounds / 20);
  CHECK(by_locks <= 1 + kRounds / 10'000);
  CHECK(violating > kRounds / 10);
  CHECK(with_cycle > kRounds / 20);
  CHECK(merged > kRounds / 100);
}

TEST_CASE("a candidate of units that were merged has them all, up to a bound") {
  for (const bool many : {false, true}) {
    std::string text = "T0:[acq(l) W(x) rel(l) ";
    const int units = many ? 1000 : 40;
    for (int i = 0; i < units; ++i) {
      text += fmt::format("T{}:[acq(l) R(x) W(x) rel(l)] ", 1 + i % 2);
    }
    const Trace trace = mini_trace(text + "T1:[acq(l) R(x) rel(l) W(y)] T0:R(y)]");
    const Watched watched = watch(trace, DetectorOptions(), {true, 64, 16});
    CHECK(watched.statistics.merged > 20);
    REQUIRE(watched.candidates.size() == 1);
    CHECK(watched.candidates.front().complete != many);
    CHECK(watched.complete != many);
    CHECK((many || watched.candidates.front().units.size() == static_cast<size_t>(units) + 2));
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
    // A load of bytes that several stores wrote explains nothing, until these lie outside a candidate.
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
  int evicted = 0;
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
                 << " merge at " << collection.max_retained << " pending "
                 << options.tuning.max_pending_stores << "\n"
                 << show(trace));
    const Watched watched = watch(trace, options, collection);
    if (watched.statistics.evicted > 0) {
      ++evicted;
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
                  << evicted << " with something evicted");
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
    REQUIRE(
        (truth.components(!options.tuning.coalesce_singletons).empty() || !watched.cycles.empty()));
    for (const DetectedCycle& cycle : watched.cycles) {
      check_cycle(trace, truth, cycle, true);
    }
    const AnalysisOptions analysis;
    const auto whole = analyse(trace, analysis);
    REQUIRE(whole.has_value());
    const Verdict by_candidates = judge_all(trace, watched, analysis);
    violating += whole->verdict() == Verdict::kClean ? 0 : 1;
    // The release that decided it may lie before the slice of a candidate.
    if (watched.complete && by_candidates != whole->verdict()) {
      REQUIRE(by_candidates == Verdict::kPossible);
      ++by_locks;
    }
  }
  CHECK(by_locks < kRounds / 10'000);
  MESSAGE(violating << " violating of " << kRounds / 10 << ", " << by_locks << " with locks");
}

TEST_CASE("the fast path changes no component and no candidate") {
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
    for (std::vector<DetectedCandidate>* candidates : {&all.candidates, &watched.candidates}) {
      std::sort(candidates->begin(), candidates->end(),
                [](const DetectedCandidate& a, const DetectedCandidate& b) {
                  return a.units.front().first < b.units.front().first;
                });
    }
    const auto same = [&](auto member) {
      return all.statistics.*member == watched.statistics.*member;
    };
    REQUIRE(all.statistics.quiet + all.statistics.alone == 0);
    REQUIRE(same(&DetectorStatistics::units));
    REQUIRE(same(&DetectorStatistics::sharing));
    // Inside a component they are not counted, and which edge of an event comes first may differ.
    REQUIRE((!all.cycles.empty() || same(&DetectorStatistics::undirected_edges)));
    REQUIRE(same(&DetectorStatistics::collected));
    REQUIRE(same(&DetectorStatistics::merged));
    REQUIRE(all.cycles.empty() == watched.cycles.empty());
    REQUIRE(all.components.size() == watched.components.size());
    REQUIRE(all.candidates.size() == watched.candidates.size());
    for (size_t i = 0; i < all.candidates.size(); ++i) {
      REQUIRE(all.candidates[i].directed == watched.candidates[i].directed);
      REQUIRE(all.candidates[i].slice.index == watched.candidates[i].slice.index);
      REQUIRE(all.candidates[i].units.size() == watched.candidates[i].units.size());
      for (size_t k = 0; k < all.candidates[i].units.size(); ++k) {
        REQUIRE(all.candidates[i].units[k].first == watched.candidates[i].units[k].first);
        REQUIRE(all.candidates[i].units[k].last == watched.candidates[i].units[k].last);
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
    REQUIRE((options.tuning.coalesce_singletons ||
             collected.candidates.size() == all.candidates.size()));
    REQUIRE(collected.components.size() == all.components.size());
    with_cycle += all.cycles.empty() ? 0 : 1;
    merged += contracted.statistics.merged;
  }
  MESSAGE(with_cycle << " with a cycle, " << merged << " units merged");
  CHECK(with_cycle > kLongRounds / 10);
  CHECK(with_cycle < kLongRounds);
  CHECK(merged > 1000);
}
