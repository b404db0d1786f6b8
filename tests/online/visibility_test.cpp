// What the detector keeps of accesses whose order stays open for long, and when it gives them up.
#include <algorithm>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "online/detector/detector.h"
#include "online/tso_policy/order_threads.h"
#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tso/check/analysis.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(1'000, 20'000);

struct Detected {
  uint64_t candidates = 0;
  bool complete = false;
  DetectorStatistics statistics;
};

// With a sweep after every hundredth event.
Detected detect(const Trace& trace, const DetectorOptions& options) {
  Detected outcome;
  DetectorCallbacks callbacks;
  callbacks.on_candidate = [&](DetectedCandidate&&) { ++outcome.candidates; };
  Detector detector(trace.symbols, options, callbacks);
  EventBlock block;
  for (uint64_t first = 0; first < trace.events.size(); first += block.events.size()) {
    block.clear();
    block.append(trace, first, std::min<uint64_t>(first + 100, trace.events.size()));
    detector.add(block, first);
    detector.sweep();
  }
  detector.finish();
  detector.check_invariants();
  outcome.complete = detector.complete();
  outcome.statistics = detector.statistics();
  return outcome;
}

// Each event of `text`, repeated, begins when the one before it ends.
Trace touching(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) {
    all += text;
  }
  const Trace trace = mini_trace(all);
  Trace result;
  result.symbols = trace.symbols;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const auto time = static_cast<int64_t>(i);
    result.add(trace.events[i], time, time + 1);
  }
  return result;
}

}  // namespace

TEST_CASE("one thread at work behind a fence that ends where its next access begins") {
  DetectorOptions options;
  options.tuning.max_pending_stores = 16;
  // The store is visible only after the next access to x, and is then covered by the next store.
  const Detected outcome = detect(touching("T0:R(x) W(x) F ", 500), options);
  CHECK(outcome.statistics.evicted == 0);
  CHECK(outcome.complete);
}

TEST_CASE("a fence that is over very late, and later ones that are over soon") {
  std::string text = "T2:W(q) T2:F ";
  for (int i = 0; i < 4'000; ++i) {
    text += "T0:[W(x) W(y) F] T2:[W(x) W(y) F] T1:[R(x) R(y) F] ";
  }
  const Trace trace = mini_trace(text);
  for (const int64_t late : {int64_t{1'000'000'000'000}, kTimeMax}) {
    Trace paused;
    paused.symbols = trace.symbols;
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const auto time = static_cast<int64_t>(2 * i);
      paused.add(trace.events[i], time, i == 1 ? late : time);
    }
    const Detected outcome = detect(paused, DetectorOptions());
    CHECK(outcome.statistics.evicted == 0);
    CHECK(outcome.candidates == 0);
    CHECK(outcome.complete);
  }
}

// Each of the loads and locked operations is a unit of its own, and none can go while T0's store
// lasts.
TEST_CASE("a thread that spins while another is held up: edges are as many as events") {
  for (const bool forwarded : {false, true}) {
    std::string text = forwarded ? "T0:W(q) T1:W(x) " : "T0:W(q) ";
    for (int i = 0; i < 500; ++i) {
      text += "T1:R(x) T1:R(x) T1:R(x) T2:U(x) ";
    }
    const Trace trace = mini_trace(text);
    Trace paused;
    paused.symbols = trace.symbols;
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const auto time = static_cast<int64_t>(2 * i);
      paused.add(trace.events[i], time, i == 0 ? kTimeMax : time + 1);
    }
    const DetectorStatistics statistics = detect(paused, DetectorOptions()).statistics;
    CHECK(statistics.directed_edges + statistics.undirected_edges < 16 * trace.events.size());
  }
}

TEST_CASE("what is told of stores is taken in any order") {
  constexpr uint64_t kSeed = 815;
  std::mt19937_64 random(kSeed);
  const DetectorCallbacks callbacks;
  ConflictGraph graph(&callbacks);
  OrderThreads threads(graph, DetectorOptions());
  OrderThread thread;
  struct Told {
    uint64_t stores;
    int64_t hi;
  };
  std::vector<Told> all;
  for (int step = 0; step < kRounds; ++step) {
    INFO("seed " << kSeed << " step " << step);
    const Told told{static_cast<uint64_t>(step) / 4 + random() % 20,
                    random() % 50 == 0 ? kTimeMax : step + static_cast<int64_t>(random() % 30)};
    all.push_back(told);
    threads.mark_visible(thread, told.stores, told.hi);
    threads.set_now(step);
    uint64_t expected = 0;
    for (const Told& one : all) {
      expected = one.hi < step ? std::max(expected, one.stores) : expected;
    }
    REQUIRE(threads.visible_stores(thread) == expected);
    REQUIRE(thread.becoming_visible.size() <= 30);
    std::erase_if(all, [&](const Told& one) { return one.hi < step && one.stores < expected; });
  }
}

// The acquisition by T1 tells that the first store to x has committed, not the second.
TEST_CASE("a store before a release is visible before one behind it") {
  const Trace trace =
      mini_trace("T2:[R(y) T0:[acq(l) W(x) rel(l) W(x) T1:acq(l) T2:R(x) T0:W(y)] T0:F T2:R(z)]");
  const auto whole = analyse(trace, AnalysisOptions());
  REQUIRE(whole);
  CHECK(whole->verdict() == Verdict::kDefinite);
  CHECK(detect(trace, DetectorOptions()).statistics.cycles == 1);
}

TEST_CASE("a thread that never drains its buffer") {
  DetectorOptions options;
  options.tuning.max_pending_stores = 64;
  options.tuning.max_pending_units = 64;
  const Trace trace = touching("T0:W(x) T0:R(x) ", 2'000);
  const Detected unbounded = detect(trace, options);
  CHECK(unbounded.statistics.evicted > 0);
  CHECK(!unbounded.complete);
  options.relation.store_buffer = 16;
  const Detected bounded = detect(trace, options);
  CHECK(bounded.statistics.evicted == 0);
  CHECK(bounded.complete);
}

TEST_CASE("accesses between two stamps become visible with the second one") {
  DetectorOptions options;
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += i % 30 == 0 ? "T0:W(x) " : "T0:R(x) ";
  }
  const Trace accesses = mini_trace(text);
  const auto until = [&](int64_t hi) {
    Trace trace;
    trace.symbols = accesses.symbols;
    Event fence;
    fence.set_kind(EventKind::kFence);
    fence.thread = 1;
    trace.add(fence, -1, -1);
    for (size_t i = 0; i < accesses.events.size(); ++i) {
      trace.add(accesses.events[i], static_cast<int64_t>(i), hi);
    }
    fence.thread = 0;
    trace.add(fence, 1000, 1001);
    return detect(trace, options);
  };
  for (const bool units : {true, false}) {
    options.tuning.max_pending_units = units ? 64 : 4096;
    options.tuning.max_pending_stores = units ? 4096 : 64;
    CHECK(until(1000).complete);
    CHECK(until(1000).statistics.evicted == 0);
    CHECK(until(kTimeMax).statistics.evicted > 0);
  }
}

TEST_CASE("events of their own, merged: no violation is possible, nothing is to be searched") {
  DetectorOptions options;
  options.tuning.max_retained = 4;
  options.relation.store_buffer = 4;
  const Trace trace = mini_trace([] {
    std::string text;
    for (int i = 0; i < 500; ++i) {
      text += "T0:W(x) T1:R(x) T1:W(y) T0:R(y) ";
    }
    return text;
  }());
  const Detected outcome = detect(trace, options);
  CHECK(outcome.statistics.merged > 0);
  CHECK(outcome.statistics.undirected_edges > 1'000);
  CHECK(outcome.candidates == 0);
  CHECK(outcome.complete);
}

TEST_CASE("giving up never makes a clean verdict") {
  constexpr uint64_t kSeed = 4711;
  std::mt19937_64 random(kSeed);
  int evicted = 0;
  int clean = 0;
  for (int round = 0; round < kRounds; ++round) {
    RandomTraceOptions made;
    made.threads = 2;
    made.locations = 1 + static_cast<uint32_t>(random() % 2);
    made.steps = 20 + static_cast<uint32_t>(random() % 10);
    made.units = static_cast<uint32_t>(random() % 3) * 4;
    made.fences = static_cast<uint32_t>(random() % 3) * 20;
    const Trace trace = random_trace(random, made).trace;
    DetectorOptions options;
    options.tuning.max_pending_stores = 1 + static_cast<uint32_t>(random() % 6);
    options.tuning.max_pending_units =
        random() % 2 == 0 ? 4096 : 1 + static_cast<uint32_t>(random() % 8);
    INFO("seed " << kSeed << " round " << round << "\n" << show(trace));
    const Detected outcome = detect(trace, options);
    evicted += outcome.statistics.evicted > 0 ? 1 : 0;
    REQUIRE(outcome.complete == (outcome.statistics.evicted == 0));
    if (outcome.complete && outcome.candidates == 0) {
      const auto whole = analyse(trace, AnalysisOptions());
      REQUIRE(whole);
      REQUIRE(whole->verdict() == Verdict::kClean);
      ++clean;
    }
  }
  MESSAGE(kRounds << " traces, " << evicted << " with something evicted, " << clean << " clean");
  CHECK(evicted > kRounds / 20);
  CHECK(clean > kRounds / 20);
}
