// The detector with atomic sets, against the checker of whole traces.
#include <algorithm>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "online/detector/detector.h"
#include "tests/online/detector_cases.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tests/tso/sequences.h"
#include "tso/check/analysis.h"
#include "tso/check/atomic_sets.h"

using namespace tsomon;
using namespace tsomon::testing;

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
