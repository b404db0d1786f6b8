// Units whose end is waited for, against the trace that was resolved as a whole.
#include "monitor/events/held_units.h"

#include <random>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "monitor/judge/watch.h"
#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tso/model/cancelled_units.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(1000, 10'000);

RandomTraceOptions long_options(std::mt19937_64& random) {
  RandomTraceOptions made;
  made.threads = 2 + static_cast<uint32_t>(random() % 3);
  made.locations = 1 + static_cast<uint32_t>(random() % 4);
  made.steps = 4 + static_cast<uint32_t>(random() % 40);
  made.units = 40;
  made.locked = static_cast<uint32_t>(random() % 2) * 30;
  made.fences = static_cast<uint32_t>(random() % 3) * 10;
  made.nesting = random() % 2 == 0;
  return made;
}

// Some of the units are cancelled.
Trace trace_with_cancels(std::mt19937_64& random) {
  Trace trace = random_trace(random, long_options(random)).trace;
  for (Event& event : trace.events) {
    if (event.kind() == EventKind::kUnitEnd && random() % 2 == 0) {
      event.set_kind(kUnitCancel);
    }
  }
  return trace;
}

void take_all(HeldUnits& held, Trace* out) {
  HeldUnits::Part part;
  while (held.take(part)) {
    out->append(part.events);
    part.events.clear();
  }
}

Trace stream(const Trace& trace, size_t block_events, HeldUnits& held) {
  Trace out;
  out.symbols = trace.symbols;
  for (size_t first = 0; first < trace.events.size(); first += block_events) {
    HeldUnits::Part part;
    part.events.append(trace, first, std::min(first + block_events, trace.events.size()));
    held.add(part);
    REQUIRE(part.events.events.empty());
    take_all(held, &out);
  }
  held.finish();
  take_all(held, &out);
  return out;
}

std::vector<EventKind> kinds_of(const Trace& trace) {
  std::vector<EventKind> kinds;
  for (const Event& event : trace.events) {
    kinds.push_back(event.kind());
  }
  return kinds;
}

Verdict watched(const Trace& trace, bool cancels, size_t block_events, WatchSummary* summary) {
  Watch watch(trace.symbols, {}, [](const ReportedFinding&) {});
  if (cancels) {
    watch.expect_cancels();
  }
  for (size_t first = 0; first < trace.events.size(); first += block_events) {
    EventBlock block;
    block.append(trace, first, std::min(first + block_events, trace.events.size()));
    watch.add(block);
  }
  watch.finish();
  *summary = watch.summary();
  return summary->verdict();
}

}  // namespace

TEST_CASE("units that are waited for are what they are in the whole trace") {
  constexpr uint64_t kSeed = 2511;
  std::mt19937_64 random(kSeed);
  uint64_t cancelled = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Trace trace = trace_with_cancels(random);
    const bool said = random() % 2 == 0;
    Trace whole = trace;
    resolve_cancelled_units(whole, said);
    HeldUnits held;
    if (said) {
      held.expect_cancels();
    }
    const Trace out = stream(trace, 1 + random() % 10, held);
    REQUIRE(kinds_of(out) == kinds_of(whole));
    REQUIRE(held.taken_apart() == 0);
    REQUIRE(held.misjudged() == 0);
    cancelled += held.cancelled();
  }
  CHECK(cancelled > static_cast<uint64_t>(kRounds));
}

TEST_CASE("units that cannot be waited for are never units that are cancelled") {
  constexpr uint64_t kSeed = 2512;
  std::mt19937_64 random(kSeed);
  uint64_t apart = 0;
  uint64_t misjudged = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Trace trace = trace_with_cancels(random);
    Trace whole = trace;
    resolve_cancelled_units(whole, true);
    const uint64_t most = random() % 10;
    const size_t block_events = 1 + random() % 4;
    HeldUnits held(most);
    held.expect_cancels();
    const Trace out = stream(trace, block_events, held);
    REQUIRE(out.events.size() == trace.events.size());
    REQUIRE(held.misjudged() == 0);
    uint64_t differ = 0;
    for (size_t e = 0; e < out.events.size(); ++e) {
      const EventKind is = out.events[e].kind();
      const EventKind should = whole.events[e].kind();
      if (is != should) {
        const bool begin = should == EventKind::kUnitBegin && is == kCancelledBegin;
        const bool end = should == EventKind::kUnitEnd && is == kUnitCancel;
        REQUIRE((begin || end));
        differ += end ? 1 : 0;
      }
    }
    REQUIRE(held.taken_apart() == differ);
    apart += differ;

    // Where nobody said that units may be cancelled.
    HeldUnits unsaid(most);
    stream(trace, block_events, unsaid);
    misjudged += unsaid.misjudged();
  }
  CHECK(apart > static_cast<uint64_t>(kRounds) / 10);
  CHECK(misjudged > static_cast<uint64_t>(kRounds) / 10);
}

TEST_CASE("a unit that a gap leaves open counts where units cannot be cancelled") {
  for (const bool said : {false, true}) {
    Trace trace = mini_trace("T0:[R(x) T1:R(y) T0:R(x)]");
    HeldUnits held;
    if (said) {
      held.expect_cancels();
    }
    HeldUnits::Part part;
    part.events.append(trace, 0, 2);
    held.add(part);
    part.events.append(trace, 2, trace.events.size());
    part.losses.push_back({0, 0});
    held.add(part);
    Trace out;
    take_all(held, &out);
    REQUIRE(out.events.size() == trace.events.size());
    CHECK(out.events[0].kind() == (said ? kCancelledBegin : EventKind::kUnitBegin));
    CHECK(out.events.back().kind() == EventKind::kUnitEnd);  // of nothing
    CHECK(held.taken_apart() == 0);
  }
}

TEST_CASE("a watch that expects cancels judges what is left without the cancelled units") {
  constexpr uint64_t kSeed = 2513;
  std::mt19937_64 random(kSeed);
  int verdicts[4] = {};
  int surprised = 0;
  for (int round = 0; round < kRounds / 4; ++round) {
    const Trace trace = trace_with_cancels(random);
    Trace whole = trace;
    resolve_cancelled_units(whole, true);
    const size_t block_events = 1 + random() % 10;
    WatchSummary summary;
    WatchSummary twin;
    INFO(show(trace));
    const Verdict verdict = watched(trace, true, block_events, &summary);
    for (Event& event : whole.events) {
      if (event.kind() == kUnitCancel) {
        event.set_kind(EventKind::kBranch);  // no surprise
      }
    }
    REQUIRE(verdict == watched(whole, false, block_events, &twin));
    REQUIRE(summary.found == twin.found);
    REQUIRE(summary.detector.units == twin.detector.units);
    REQUIRE(summary.complete() == twin.complete());
    REQUIRE(summary.surprises == 0);
    ++verdicts[static_cast<int>(verdict)];
    // Where it does not expect them nothing is definite, or clean.
    const Verdict unexpected = watched(trace, false, block_events, &summary);
    if (summary.surprises != 0) {
      ++surprised;
      REQUIRE(unexpected != Verdict::kDefinite);
      REQUIRE(unexpected != Verdict::kClean);
    }
  }
  CHECK(verdicts[static_cast<int>(Verdict::kClean)] > kRounds / 60);
  CHECK(verdicts[static_cast<int>(Verdict::kDefinite)] > kRounds / 100);
  CHECK(surprised > kRounds / 10);
}
