// What a watch says while events arrive against the analysis of the whole trace.
#include "monitor/judge/watch.h"

#include <random>

#include <doctest/doctest.h>

#include "monitor/judge/check.h"
#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tests/tso/sequences.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(4'000, 20'000);

// Behind a store of another thread that never drains its buffer.
Trace behind_a_store(const Trace& trace, ThreadId thread) {
  Trace result;
  result.symbols = trace.symbols;
  Event store;
  store.set_kind(EventKind::kWrite);
  store.thread = thread;
  store.address = 100;
  result.add(store, -1000, -900, std::nullopt, 1);
  result.append(trace);
  return result;
}

}  // namespace

TEST_CASE("a watch with a short history may know less, and nothing else") {
  constexpr uint64_t kSeed = 20261124;
  std::mt19937_64 random(kSeed);
  int judged[4] = {};
  int less = 0;
  int not_robust = 0;
  uint64_t known = 0;
  for (int round = 0; round < kRounds; ++round) {
    RandomTraceOptions made;
    made.threads = 2 + static_cast<uint32_t>(random() % 3);
    made.locations = 1 + static_cast<uint32_t>(random() % 6);
    made.steps = 4 + static_cast<uint32_t>(random() % (round % 8 == 0 ? 160 : 40));
    made.units = 30;
    made.locked = static_cast<uint32_t>(random() % 2) * 15;
    made.fences = static_cast<uint32_t>(random() % 3) * 10;
    made.locks = random() % 3 == 0 ? 30 : 0;
    made.nesting = random() % 2 == 0;
    made.intervals = random() % 2 == 0;
    made.values = random() % 4 != 0;
    const Trace trace = in_stream_order(random_trace(random, made).trace);
    WatchOptions options;
    // A sweep comes after an eighth of the history.
    options.detector.history_events = random() % 2 == 0 ? 20 + random() % 200 : 1 + random() % 40;
    options.detector.tuning.max_retained = static_cast<uint32_t>(random() % 40);
    options.detector.tuning.value_inference_threshold = static_cast<uint32_t>(random() % 20);
    CheckOptions asked;
    asked.property = round % 3 == 0 ? Property::kRobustness : Property::kSerializability;
    options.ask(asked.property);
    INFO("seed " << kSeed << " round " << round << " history " << options.detector.history_events
                 << "\n"
                 << show(trace));
    uint64_t findings = 0;
    uint64_t definite = 0;
    Watch watch(trace.symbols, options, [&](const ReportedFinding& found) {
      ++findings;
      definite += found.definite() ? 1 : 0;
    });
    EventBlock block;
    const size_t step = 1 + random() % 7;
    for (size_t e = 0; e < trace.events.size(); e += step) {
      block.clear();
      block.append(trace, e, std::min(e + step, trace.events.size()));
      watch.add(block);
    }
    watch.finish();
    const WatchSummary summary = watch.summary();
    REQUIRE(summary.found.all() == findings);
    known += summary.detector.known;
    REQUIRE(summary.property == asked.property);
    const auto whole = check_trace(trace, asked);
    REQUIRE(whole.has_value());
    const Verdict verdict = summary.verdict();
    if (whole->verdict() == Verdict::kInconclusive) {
      continue;
    }
    REQUIRE((verdict != Verdict::kClean || whole->verdict() == Verdict::kClean));
    REQUIRE((verdict != Verdict::kDefinite || whole->verdict() == Verdict::kDefinite));
    REQUIRE((definite > 0) == (verdict == Verdict::kDefinite));
    REQUIRE((findings > 0) == (verdict == Verdict::kDefinite || verdict == Verdict::kPossible));
    ++judged[static_cast<int>(verdict)];
    not_robust += asked.property == Property::kRobustness &&
                          (verdict == Verdict::kPossible || verdict == Verdict::kDefinite)
                      ? 1
                      : 0;
    less += verdict == whole->verdict() ? 0 : 1;
  }
  MESSAGE("clean " << judged[0] << ", possible " << judged[1] << ", definite " << judged[2]
                   << ", inconclusive " << judged[3] << "; " << less << " of " << kRounds
                   << " are not what the whole trace shows; " << known << " units gone by values");
  CHECK(known > kRounds / 10);
  CHECK(not_robust > kRounds / 100);
  for (const int each : judged) {
    CHECK(each > kRounds / 200);
  }
}

TEST_CASE("a store that waits for longer than the history") {
  std::mt19937_64 random(7);
  RandomTraceOptions made;
  made.threads = 2;
  made.locations = 40;
  made.steps = 20'000;
  made.units = 40;
  made.fences = 10;
  made.values = true;
  const Trace trace = behind_a_store(in_stream_order(random_trace(random, made).trace), 2);
  WatchOptions options;
  options.detector.history_events = 1;
  Watch watch(trace.symbols, options, [](const ReportedFinding&) {});
  EventBlock block;
  for (size_t e = 0; e < trace.events.size(); e += 1000) {
    block.clear();
    block.append(trace, e, std::min(e + 1000, trace.events.size()));
    watch.add(block);
  }
  watch.finish();
  const WatchSummary summary = watch.summary();
  CHECK(summary.found.all() > 0);
  CHECK(summary.candidates > summary.unjudged + 10);
}
