// The check of a stream against the analysis of the whole trace.
#include "monitor/judge/stream_check.h"

#include <algorithm>
#include <optional>
#include <random>

#include <doctest/doctest.h>

#include "monitor/findings/event_count.h"
#include "monitor/judge/candidate_bounds.h"
#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tso/check/witness.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(1000, 20'000);

CheckReport stream(const Trace& trace, const CheckOptions& options, size_t block_events) {
  StreamCheck check(trace.symbols, options);
  EventCount count;
  EventBlock block;
  for (size_t first = 0; first < trace.events.size(); first += block_events) {
    block.clear();
    block.append(trace, first, std::min(first + block_events, trace.events.size()));
    count.add(block);
    check.add(block);
  }
  auto report = check.finish(trace.complete, trace.lost_events);
  REQUIRE_MESSAGE(report.has_value(), report.error().to_string());
  report->threads = count.threads();
  report->units = count.units();
  return *report;
}

// The finding, in positions of the whole trace, is a cycle of units with a witness that holds.
void check_finding(const Trace& trace, const Finding& finding, const CheckOptions& options) {
  REQUIRE(finding.events.events.size() == finding.index.size());
  REQUIRE(std::is_sorted(finding.index.begin(), finding.index.end()));
  const UnitTable units(trace);
  const auto at = [&](uint32_t e) { return static_cast<uint32_t>(finding.index[e]); };
  const auto& cycle = finding.violation.cycle;
  REQUIRE(cycle.size() >= 2);
  for (size_t i = 0; i < cycle.size(); ++i) {
    const CycleEdge& next = cycle[(i + 1) % cycle.size()];
    REQUIRE(units.of_event(at(cycle[i].to)) == units.of_event(at(next.from)));
    REQUIRE(units.of_event(at(cycle[i].from)) != units.of_event(at(cycle[i].to)));
    REQUIRE(trace.events[at(cycle[i].from)].kind() == finding.events.events[cycle[i].from].kind());
  }
  if (!finding.violation.witness.empty()) {
    std::vector<Step> steps = finding.violation.witness;
    for (Step& step : steps) {
      step.event = at(step.event);
    }
    const auto checked = check_witness(
        trace, steps,
        {Property::kSerializability, options.analysis.relation, WitnessValues::kIgnored});
    REQUIRE_MESSAGE(checked.has_value(), checked.error().to_string());
  }
}

}  // namespace

TEST_CASE("bounds on all candidates together grow with the input and are used up") {
  CHECK(bound_left(10, 2, 0, 0) == 10);
  CHECK(bound_left(10, 2, 5, 7) == 13);
  CHECK(bound_left(10, 2, 5, 20) == 0);
  CHECK(bound_left(10, 2, 5, 21) == 0);

  AnalysisOptions each;
  each.max_undirected = 100;
  each.max_total_work = 1'000;
  const auto after = [&](uint64_t events, uint64_t edges, uint64_t work) {
    CandidateCosts costs;
    costs.add_events(events);
    Analysis analysis;
    analysis.open_edges = edges;
    analysis.work = work;
    costs.add(analysis);
    return costs.left(each, 10, 50);
  };
  CHECK(after(0, 0, 0) == CandidateShare{true, 100, 1'000});
  CHECK(after(0, 100 + 10 * kEdgesPerEvent, 0) == CandidateShare{true, 100, 1'000});
  CHECK(after(0, 199 + 10 * kEdgesPerEvent, 0) == CandidateShare{true, 1, 1'000});
  CHECK(after(0, 200 + 10 * kEdgesPerEvent, 0) == CandidateShare());
  CHECK(after(0, 0, 1'999 + 10 * kWorkPerEvent) == CandidateShare{true, 100, 1});
  CHECK(after(0, 0, 2'000 + 10 * kWorkPerEvent) == CandidateShare());
  const uint64_t most = kAnalysedAtFirst + 10 * kAnalysedPerEvent;
  CHECK(after(most - 50, 0, 0).affordable);
  CHECK(!after(most - 49, 0, 0).affordable);
}

TEST_CASE("a stream is judged like the whole trace") {
  constexpr uint64_t kSeed = 4711;
  std::mt19937_64 random(kSeed);
  int verdicts[4] = {};
  int weaker = 0;
  for (int round = 0; round < kRounds; ++round) {
    RandomTraceOptions made;
    made.threads = 2 + static_cast<uint32_t>(random() % 3);
    made.locations = 1 + static_cast<uint32_t>(random() % 6);
    made.steps = 4 + static_cast<uint32_t>(random() % 30);
    made.units = 30;
    made.locked = static_cast<uint32_t>(random() % 2) * 15;
    made.fences = static_cast<uint32_t>(random() % 3) * 10;
    made.locks = random() % 3 == 0 ? 30 : 0;
    made.store_buffer = random() % 3 == 0 ? 2 : 0;
    made.nesting = random() % 2 == 0;
    made.mixed_sizes = random() % 4 == 0;
    made.threads_start = random() % 4 == 0;
    made.values = random() % 2 == 0;
    const Trace trace = random_trace(random, made).trace;
    CheckOptions options;
    options.analysis.relation.store_buffer = made.store_buffer;
    constexpr Property kProperties[] = {Property::kSerializability, Property::kScSerializability,
                                        Property::kAtomicSets, Property::kRobustness};
    options.property = kProperties[random() % 4];
    const bool kept = random() % 2 == 0;
    if (kept || random() % 3 == 0) {
      options.history_events = 1000;
      options.max_whole = kept ? 1000 : random() % 64;
    } else {
      options.history_events = 1 + random() % 32;
    }
    INFO("seed " << kSeed << " round " << round << " property "
                 << static_cast<int>(options.property) << " history " << options.history_events
                 << "\n"
                 << show(trace));
    const auto whole = check_trace(trace, options);
    REQUIRE(whole.has_value());
    const CheckReport streamed = stream(trace, options, 1 + random() % 7);
    ++verdicts[static_cast<int>(streamed.verdict())];
    REQUIRE(streamed.events == whole->events);
    REQUIRE(streamed.units == whole->units);
    REQUIRE(streamed.threads == whole->threads);
    if (kept) {
      REQUIRE(streamed.verdict() == whole->verdict());
      REQUIRE(streamed.complete() == whole->complete());
      REQUIRE(streamed.violations() == whole->violations());
    } else {
      weaker += streamed.verdict() == whole->verdict() ? 0 : 1;
      REQUIRE((streamed.verdict() != Verdict::kClean || whole->verdict() == Verdict::kClean ||
               whole->verdict() == Verdict::kInconclusive));
      REQUIRE((streamed.verdict() != Verdict::kDefinite || whole->verdict() == Verdict::kDefinite ||
               made.mixed_sizes || !whole->complete()));
    }
    const bool bad =
        streamed.verdict() == Verdict::kDefinite || streamed.verdict() == Verdict::kPossible;
    REQUIRE(bad == !streamed.findings.empty());
    for (const Finding& finding : streamed.findings) {
      if (options.property == Property::kSerializability) {
        check_finding(trace, finding, options);
      }
    }
  }
  MESSAGE(kRounds << " traces: " << verdicts[0] << " clean, " << verdicts[1] << " possible, "
                  << verdicts[2] << " definite, " << verdicts[3] << " inconclusive; " << weaker
                  << " known less of with a short history");
  CHECK(verdicts[1] > kRounds / 50);
  CHECK(verdicts[2] > kRounds / 20);
  CHECK(verdicts[0] > kRounds / 20);
}

// Which of two stores a load read is certain only with what memory held before.
TEST_CASE("values from before a candidate count, also where the input is longer than the history") {
  for (const uint64_t before : {0, 1}) {
    Trace trace;
    for (const char* name : {"T0", "T1", "T2"}) {
      trace.symbols.threads.intern(name);
    }
    int64_t time = 0;
    int64_t width = 0;
    const auto add = [&](ThreadId thread, EventKind kind, uint64_t name = 0,
                         std::optional<uint64_t> read = {}, std::optional<uint64_t> write = {}) {
      Event event;
      event.set_kind(kind);
      event.thread = thread;
      event.address = name;
      trace.add(event, time, time + width, read, write);
    };
    constexpr uint64_t kX = 1;
    constexpr uint64_t kY = 2;
    constexpr uint64_t kZ = 3;
    const auto pass_time = [&](int count) {
      for (int i = 0; i < count; ++i) {
        time += 10;
        add(2, EventKind::kWrite, kZ);
        add(2, EventKind::kFence);
      }
    };
    pass_time(20'000);
    add(2, EventKind::kWrite, kX, {}, before);
    add(2, EventKind::kWrite, kY, {}, 0);
    pass_time(1);
    add(0, EventKind::kFence);
    add(1, EventKind::kFence);
    pass_time(2'000);
    time += 10;
    width = 10;
    add(1, EventKind::kUnitBegin);
    add(0, EventKind::kUnitBegin);
    add(1, EventKind::kWrite, kX, {}, 1);
    add(0, EventKind::kRead, kX, 1);
    add(0, EventKind::kRead, kY, 0);
    add(1, EventKind::kWrite, kY, {}, 1);
    add(1, EventKind::kUnitEnd);
    add(0, EventKind::kUnitEnd);
    time += 20;
    width = 0;
    add(0, EventKind::kFence);
    add(1, EventKind::kFence);
    pass_time(20'000);
    CheckOptions options;
    options.history_events = 10'000;
    const CheckReport report = stream(trace, options, 500);
    CHECK(report.violations() == 1);
    CHECK(report.verdict() == (before == 0 ? Verdict::kDefinite : Verdict::kPossible));
  }
}

TEST_CASE("without units there is no violation, and nothing is looked at") {
  constexpr uint64_t kSeed = 147;
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < kRounds / 10; ++round) {
    RandomTraceOptions made;
    made.threads = 2 + static_cast<uint32_t>(random() % 3);
    made.locations = 1 + static_cast<uint32_t>(random() % 3);
    made.steps = 4 + static_cast<uint32_t>(random() % 30);
    made.units = random() % 8 == 0 ? 20 : 0;
    made.values = random() % 2 == 0;
    made.intervals = random() % 2 == 0;
    const Trace trace = random_trace(random, made).trace;
    const bool units = std::any_of(trace.events.begin(), trace.events.end(), [](const Event& e) {
      return e.kind() == EventKind::kUnitBegin;
    });
    CheckOptions options;
    options.property =
        random() % 2 == 0 ? Property::kSerializability : Property::kScSerializability;
    StreamCheck check(trace.symbols, options);
    check.expect_no_units();
    check.add(trace);
    const auto report = check.finish(true, 0);
    REQUIRE(report.has_value());
    REQUIRE(report->events == trace.events.size());
    REQUIRE(report->verdict() == (units ? Verdict::kInconclusive : Verdict::kClean));
    REQUIRE(report->complete() == !units);
    if (!units) {
      const auto whole = check_trace(trace, options);
      REQUIRE(whole.has_value());
      REQUIRE(whole->verdict() == Verdict::kClean);
    }
  }
}

TEST_CASE("a check that is stopped reports what it has found, and nothing that is not so") {
  std::mt19937_64 random(77);
  uint64_t found = 0;
  for (int i = 0; i < kRounds / 20; ++i) {
    RandomTraceOptions made;
    made.threads = 3;
    made.steps = 60;
    made.intervals = random() % 2 == 0;
    const Trace trace = random_trace(random, made).trace;
    CheckOptions options;
    options.history_events = random() % 2 == 0 ? 16 : 1024;
    const CheckReport whole = stream(trace, options, 8);
    StopFlag stop;
    WorkMeter meter({}, &stop);
    const WorkScope scope(&meter);
    StreamCheck check(trace.symbols, options);
    EventBlock block;
    const size_t stop_at = random() % (trace.events.size() + 1);
    for (size_t first = 0; first < trace.events.size(); first += 8) {
      if (first >= stop_at) {
        stop.ask();
        check.end(WorkLimit::kStopped);
      }
      block.clear();
      block.append(trace, first, std::min(first + 8, trace.events.size()));
      check.add(block);
    }
    stop.ask();
    check.end(WorkLimit::kStopped);
    const auto report = check.finish(true, 0);
    REQUIRE(report.has_value());
    REQUIRE(!report->complete());
    REQUIRE(report->verdict() != Verdict::kClean);
    REQUIRE((report->verdict() == Verdict::kInconclusive) == (report->violations() == 0));
    REQUIRE(report->notes.size() >= 1);
    if (report->verdict() == Verdict::kDefinite) {
      ++found;
      REQUIRE(whole.verdict() == Verdict::kDefinite);
    }
  }
  CHECK(found > 0);
}
