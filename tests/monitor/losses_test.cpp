// What is found in a trace that lacks events, against the whole one.
#include "monitor/judge/losses.h"

#include <cstdint>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tso/model/idle_iterations.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(2000, 16'000);

// Without `count` events of a thread from its `first` one on, as the reader of a capture gives it:
// units that are open there end, ends without a begin are none (decoders/capture/stream.h).
Trace without(const Trace& whole, ThreadId thread, size_t first, size_t count) {
  Trace trace;
  trace.symbols = whole.symbols;
  trace.complete = false;
  size_t place = 0;
  int open = 0;
  for (size_t e = 0; e < whole.events.size(); ++e) {
    const Event& event = whole.events[e];
    const bool begins = event.kind() == EventKind::kUnitBegin;
    const bool ends = event.kind() == EventKind::kUnitEnd;
    if (event.thread != thread) {
      trace.append(whole, e, e + 1);
      continue;
    }
    const size_t here = place++;
    if (here == first) {
      for (; open != 0; --open) {
        Event end;
        end.thread = thread;
        end.set_kind(EventKind::kUnitEnd);
        trace.add(end, whole.lo(event), whole.hi(event));
      }
    }
    if ((here >= first && here - first < count) || (ends && open == 0)) {
      continue;
    }
    open += begins ? 1 : ends ? -1 : 0;
    trace.append(whole, e, e + 1);
  }
  return trace;
}

CheckReport checked(Trace trace, Property property, Damage damage = Damage::kGaps) {
  for (Event& event : trace.events) {  // the same place does the same to the same bytes
    event.location =
        static_cast<uint32_t>(event.address * 64 + event.kind_bits) | Event::kNumericLocation;
  }
  resolve_idle_iterations(trace);
  CheckOptions options;
  options.property = property;
  options.jobs = 1;
  auto report = check_trace(trace, options);
  REQUIRE(report);
  if (!trace.complete) {
    leave_out_what_losses_may_rule_out(damage, trace.symbols, options.sets, &*report);
  }
  return std::move(*report);
}

TEST_CASE("what is definite whatever was lost is so of the whole trace, and nothing else counts") {
  std::mt19937_64 random(20261128);
  const auto below = [&](size_t bound) { return static_cast<size_t>(random() % bound); };
  int kept = 0;
  int ruled_out = 0;  // that look violated, where the whole is not
  for (int round = 0; round < kRounds; ++round) {
    CAPTURE(round);
    RandomTraceOptions made = random_options(random);
    made.steps = 6 + static_cast<uint32_t>(below(10));
    made.units = 60;
    made.fences = random() % 2 == 0 ? 30 : made.fences;
    made.repeats = random() % 2 == 0 ? 20 : 0;
    const RandomTrace run = random_trace(random, made);
    const Property property = std::vector<Property>{
        Property::kSerializability, Property::kScSerializability, Property::kRobustness}[below(3)];
    const bool ends = random() % 2 == 0;
    const Trace part = without(run.trace, static_cast<ThreadId>(below(made.threads)), below(8),
                               ends ? run.trace.events.size() : 1 + below(4));
    CheckReport lossy = checked(part, property, ends ? Damage::kEnds : Damage::kGaps);
    const Verdict verdict = lossy.verdict();
    REQUIRE(verdict != Verdict::kClean);
    REQUIRE(verdict != Verdict::kPossible);
    const Verdict whole = checked(run.trace, property).verdict();
    if (verdict == Verdict::kDefinite) {
      ++kept;
      CHECK_MESSAGE(whole == Verdict::kDefinite, show(run.trace), "without:\n", show(part));
    } else if (whole == Verdict::kClean && lossy.notes.size() > 1) {
      ++ruled_out;
    }
  }
  CHECK(kept > kRounds / 100);
  CHECK(ruled_out > 0);
}

TEST_CASE("a store has not committed where a store that is missing may have been forwarded") {
  // T1 sees the first store of T0 only if T0's load of more bytes has waited for it.
  const auto verdict = [](bool covered, bool lost) {
    Trace trace;
    const uint64_t label = trace.symbols.labels.intern("u");
    int64_t time = 0;
    const auto add = [&](ThreadId thread, EventKind kind, uint64_t address = 0, uint32_t size = 0) {
      trace.symbols.threads.intern(thread == 0 ? "T0" : "T1");
      Event event;
      event.thread = thread;
      event.address = address;
      event.size = size & Event::kMaxSize;
      event.set_kind(kind);
      trace.add(event, time, time);
      ++time;
    };
    add(0, EventKind::kUnitBegin, label);
    add(0, EventKind::kWrite, 0x1000, 4);
    if (covered) {
      add(0, EventKind::kWrite, 0x1000, 8);
    }
    add(0, EventKind::kRead, 0x1000, 8);
    add(1, EventKind::kUnitBegin, label);
    add(1, EventKind::kRead, 0x1000, 4);
    add(1, EventKind::kWrite, 0x2000, 4);
    add(1, EventKind::kFence);
    add(0, EventKind::kRead, 0x2000, 4);
    trace.complete = !lost;
    return checked(std::move(trace), Property::kSerializability).verdict();
  };
  CHECK(verdict(false, false) == Verdict::kDefinite);
  CHECK(verdict(true, false) == Verdict::kPossible);
  CHECK(verdict(false, true) == Verdict::kInconclusive);
}

}  // namespace
