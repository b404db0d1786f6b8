// What one execution shows, against the analysis of the whole trace.
#include "online/detector/bounded_detector.h"

#include <algorithm>
#include <random>

#include <doctest/doctest.h>

#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tests/tso/sequences.h"
#include "tso/check/analysis.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(500, 20'000);
constexpr WorkBudget kNothing = {.work_at_first = 0, .work_per_event = 0};

struct Seen {
  uint64_t candidates = 0;
  uint64_t violated = 0;
  bool simple = false;
  bool complete = true;
};

// All candidates, each analysed on its own, as those who watch do it.
Seen watch(const Trace& trace, size_t block_events, WorkBudget mixed) {
  Seen seen;
  DetectorCallbacks callbacks;
  callbacks.on_candidate = [&](DetectedCandidate&& candidate) {
    ++seen.candidates;
    REQUIRE(candidate.complete);
    REQUIRE_FALSE(candidate.slice.events.events.empty());
    Trace own;
    static_cast<EventBlock&>(own) = std::move(candidate.slice.events);
    own.symbols.initial_zero = false;
    own.pending_prefix = candidate.slice.pending_prefix;
    AnalysisOptions options;
    options.values = false;  // of memory nothing is known
    options.only = ranges_of(candidate.units, candidate.slice.index);
    const auto analysis = analyse(own, options);
    REQUIRE(analysis.has_value());
    seen.violated += analysis->violations() != 0 ? 1 : 0;
  };
  BoundedDetector detector(trace.symbols, {}, callbacks, mixed);
  EventBlock block;
  for (size_t first = 0; first < trace.events.size(); first += block_events) {
    block.clear();
    block.append(trace, first, std::min(first + block_events, trace.events.size()));
    detector.add(block, first);
  }
  detector.finish();
  seen.simple = detector.simple();
  seen.complete = detector.complete();
  return seen;
}

}  // namespace

TEST_CASE("what one execution shows is possible in the trace") {
  std::mt19937_64 random(20261125);
  int violated = 0;
  int shown = 0;
  for (int round = 0; round < kRounds; ++round) {
    CAPTURE(round);
    RandomTraceOptions made = random_options(random);
    made.steps = 10 + static_cast<uint32_t>(random() % 20);
    const Trace trace = in_stream_order(random_trace(random, made).trace);
    AnalysisOptions options;
    options.values = false;
    const auto whole = analyse(trace, options);
    if (!whole || whole->verdict() == Verdict::kInconclusive) {
      continue;
    }
    const Seen seen = watch(trace, 1 + random() % 16, kNothing);
    CHECK(seen.simple);
    CHECK_FALSE(seen.complete);
    violated += whole->violations() != 0 ? 1 : 0;
    shown += seen.violated != 0 ? 1 : 0;
    if (seen.violated != 0) {
      CHECK(whole->violations() != 0);
    }
  }
  MESSAGE(violated << " traces are violated, " << shown << " of them in one execution");
  CHECK(violated > kRounds / 20);
  CHECK(shown > violated / 4);
}

TEST_CASE("a detector within its bound is the detector") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 50; ++round) {
    const Trace trace = in_stream_order(random_trace(random, random_options(random)).trace);
    CHECK_FALSE(watch(trace, 16, kMixedBudget).simple);
  }
}

TEST_CASE("units without fences are bounded in work, and their lost update is found") {
  // Two threads that count up without a lock, their units overlapping.
  Trace trace;
  const uint32_t label = trace.symbols.labels.intern("add");
  const auto add = [&](EventKind kind, ThreadId thread) {
    Event event;
    event.set_kind(kind);
    event.thread = thread;
    if (kind == EventKind::kUnitBegin) {
      event.address = label;
    } else if (kind != EventKind::kUnitEnd) {
      event.address = 64;
      event.size = 8;
    }
    const auto at = static_cast<int64_t>(trace.events.size());
    trace.add(event, at, at, std::nullopt, std::nullopt);
  };
  for (int i = 0; i < 30'000; ++i) {
    add(EventKind::kUnitBegin, 0);
    add(EventKind::kRead, 0);
    add(EventKind::kUnitBegin, 1);
    add(EventKind::kRead, 1);
    add(EventKind::kWrite, 0);
    add(EventKind::kUnitEnd, 0);
    add(EventKind::kWrite, 1);
    add(EventKind::kUnitEnd, 1);
  }
  uint64_t definite = 0;
  DetectorCallbacks callbacks;
  callbacks.on_cycle = [&](const DetectedCycle&) { ++definite; };
  uint64_t candidates = 0;
  callbacks.on_candidate = [&](DetectedCandidate&& candidate) {
    ++candidates;
    CHECK_FALSE(candidate.slice.events.events.empty());
    CHECK(candidate.slice.pending_prefix <= BoundedDetector::kMostPendingPrefix);
  };
  BoundedDetector detector(trace.symbols, {}, callbacks,
                           {.work_at_first = 1'000'000, .work_per_event = 0});
  detector.add(trace, 0);
  detector.finish();
  CHECK(detector.simple());
  CHECK_FALSE(detector.exhausted());
  CHECK(definite + candidates > 0);
}

TEST_CASE("a thread that is held up for long hides nothing of what others do meanwhile") {
  constexpr int64_t kLong = 1'000'000;
  Trace trace;
  const uint32_t label = trace.symbols.labels.intern("add");
  const auto add = [&](EventKind kind, ThreadId thread, uint64_t address, int64_t lo, int64_t hi) {
    Event event;
    event.set_kind(kind);
    event.thread = thread;
    event.address = address;
    event.size = kind == EventKind::kUnitBegin || kind == EventKind::kUnitEnd ? 0 : 8;
    trace.add(event, lo, hi, std::nullopt, std::nullopt);
  };
  for (int i = 0; i < 10; ++i) {
    add(EventKind::kWrite, 2, 1024, 0, kLong);
  }
  // Each thread alone, and in the end both at once.
  int64_t now = 1;
  for (int i = 0; i < 20'000; ++i) {
    const auto thread = static_cast<ThreadId>(i % 2);
    add(EventKind::kUnitBegin, thread, label, now, now);
    add(EventKind::kWrite, thread, 512 + 8 * thread, now + 1, now + 1);
    add(EventKind::kUnitEnd, thread, 0, now + 2, now + 2);
    now += 3;
  }
  for (const EventKind kind :
       {EventKind::kUnitBegin, EventKind::kRead, EventKind::kWrite, EventKind::kUnitEnd}) {
    for (const ThreadId thread : {0U, 1U}) {
      add(kind, thread, kind == EventKind::kUnitBegin ? label : 64, now, now);
      ++now;
    }
  }
  REQUIRE(now < kLong);
  const Seen seen = watch(trace, 1000, kNothing);
  CHECK(seen.simple);
  CHECK(seen.candidates == 1);
  CHECK(seen.violated == 1);
}
