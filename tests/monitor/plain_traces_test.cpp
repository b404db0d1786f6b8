// Long traces of threads that never drain their store buffers.
#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "monitor/judge/check.h"
#include "monitor/judge/stream_check.h"
#include "tso/check/witness.h"

namespace tsomon {
namespace {

constexpr uint64_t kEvents = 24'000;

class Maker {
 public:
  Maker() {
    trace_.symbols.threads.intern("T0");
    trace_.symbols.threads.intern("T1");
    trace_.symbols.labels.intern("unit");
  }

  void add(ThreadId thread, EventKind kind, uint64_t address = 0,
           std::optional<uint64_t> value = std::nullopt) {
    Event event;
    event.set_kind(kind);
    event.thread = thread;
    event.address = address;
    const auto time = static_cast<int64_t>(trace_.events.size());
    const bool load = kind == EventKind::kRead;
    trace_.add(event, time, time, load ? value : std::nullopt, load ? std::nullopt : value);
  }
  Trace take() { return std::move(trace_); }

  // Each thread on its own data; T1 looks at one location of T0 now and then.
  Trace make(bool planted) {
    for (uint64_t unit = 0; trace_.events.size() < kEvents; ++unit) {
      if (planted && trace_.events.size() >= kEvents / 2) {
        plant();
        planted = false;
      }
      for (const ThreadId thread : {0U, 1U}) {
        const uint64_t own = 100 * (thread + 1) + unit % 7;
        add(thread, EventKind::kUnitBegin);
        add(thread, EventKind::kRead, own);
        add(thread, EventKind::kWrite, own);
        if (thread == 1 && unit % 10 == 0) {
          add(thread, EventKind::kRead, 100 + unit % 7);
        }
        add(thread, EventKind::kUnitEnd);
      }
    }
    return std::move(trace_);
  }

 private:
  // Each stores what the other one then does not see.
  void plant() {
    for (const ThreadId thread : {0U, 1U}) {
      add(thread, EventKind::kUnitBegin);
      add(thread, EventKind::kWrite, 1 + thread);
    }
    for (const ThreadId thread : {0U, 1U}) {
      add(thread, EventKind::kRead, 2 - thread);
      add(thread, EventKind::kUnitEnd);
    }
  }

  Trace trace_;
};

// Two threads that count in two shared variables, without a lock, on a machine whose stores commit
// late; all values are recorded, as those of atomic variables are.
Trace counters() {
  Maker maker;
  std::mt19937_64 random(27);
  uint64_t memory[2] = {};
  struct Thread {
    std::deque<std::pair<uint64_t, uint64_t>> buffer;  // variable, value
    int step = 0;
    uint64_t value = 0;
  } threads[2];
  for (uint64_t steps = 0; steps < kEvents; ++steps) {
    const auto number = static_cast<ThreadId>(random() % 2);
    Thread& thread = threads[number];
    if (!thread.buffer.empty() && random() % 2 == 0) {
      memory[thread.buffer.front().first] = thread.buffer.front().second;
      thread.buffer.pop_front();
      continue;
    }
    const uint64_t variable = thread.step < 3 ? 0 : 1;
    switch (thread.step) {
      case 0:
        maker.add(number, EventKind::kUnitBegin);
        break;
      case 5:
        maker.add(number, EventKind::kUnitEnd);
        break;
      case 1:
      case 3: {
        const auto own = std::find_if(thread.buffer.rbegin(), thread.buffer.rend(),
                                      [&](const auto& one) { return one.first == variable; });
        thread.value = own == thread.buffer.rend() ? memory[variable] : own->second;
        maker.add(number, EventKind::kRead, variable, thread.value);
        break;
      }
      default:
        thread.buffer.emplace_back(variable, thread.value + 1);
        maker.add(number, EventKind::kWrite, variable, thread.value + 1);
        break;
    }
    thread.step = (thread.step + 1) % 6;
  }
  return maker.take();
}

CheckReport judge(const Trace& trace, CheckOptions options, bool complete = true) {
  StreamCheck check(trace.symbols, options);
  EventBlock block;
  for (size_t first = 0; first < trace.events.size(); first += 1000) {
    block.clear();
    block.append(trace, first, std::min(first + 1000, trace.events.size()));
    check.add(block);
  }
  auto report = check.finish(complete, complete ? 0 : 3);
  REQUIRE(report);
  return std::move(*report);
}

}  // namespace

TEST_CASE("plain traces: nothing that crosses is serializable, whatever its length") {
  const Trace trace = Maker().make(false);
  for (const Property property : {Property::kSerializability, Property::kRobustness}) {
    CheckOptions options;
    options.property = property;
    const CheckReport report = judge(trace, options);
    for (const std::string& note : report.notes) {
      INFO(note);
    }
    CHECK(report.verdict() == Verdict::kClean);
  }
  CheckOptions options;
  options.analysis.relation.order = TraceOrder::kThread;
  const auto report = check_trace(trace, options);
  REQUIRE(report);
  CHECK(report->verdict() == Verdict::kClean);
}

TEST_CASE("plain traces: a late store in the middle is found, with an execution") {
  const Trace trace = Maker().make(true);
  for (const Property property : {Property::kSerializability, Property::kRobustness}) {
    CheckOptions options;
    options.property = property;
    const CheckReport report = judge(trace, options);
    REQUIRE(report.findings.size() == 1);
    const Finding& found = report.findings.front();
    CHECK(found.violation.verdict == Verdict::kPossible);
    WitnessClaim claim;
    claim.property =
        property == Property::kRobustness ? Property::kRobustness : Property::kSerializability;
    CHECK(check_witness(found.events, found.violation.witness, claim));
    CHECK(std::any_of(found.events.events.begin(), found.events.events.end(),
                      [](const Event& event) { return event.address == 1 || event.address == 2; }));
  }
}

TEST_CASE("plain traces: counters with values are violated, and it is known how badly") {
  const Trace trace = counters();
  for (const TraceOrder order : {TraceOrder::kIssue, TraceOrder::kThread}) {
    CheckOptions options;
    options.analysis.relation.order = order;
    const auto checked = check_trace(trace, options);
    REQUIRE(checked);
    const CheckReport streamed = judge(trace, options);
    for (const CheckReport* report : {&*checked, &streamed}) {
      REQUIRE(report->violations() > 0);
      CHECK(report->verdict() == Verdict::kDefinite);
      const Finding& found = report->findings.front();
      CHECK(check_witness(
          found.events, found.violation.witness,
          {Property::kSerializability, options.analysis.relation, WitnessValues::kIgnored}));
    }
  }
}

TEST_CASE("plain traces: with events lost nothing is serializable") {
  Trace trace = Maker().make(false);
  trace.complete = false;
  trace.lost_events = 3;
  for (const Property property : {Property::kSerializability, Property::kRobustness}) {
    CheckOptions options;
    options.property = property;
    CHECK(judge(trace, options, false).verdict() == Verdict::kInconclusive);
    options.analysis.relation.order = TraceOrder::kThread;
    const auto report = check_trace(trace, options);
    REQUIRE(report);
    CHECK(report->verdict() == Verdict::kInconclusive);
  }
}

TEST_CASE("plain traces: what is longer than the history is inconclusive") {
  const Trace trace = Maker().make(false);
  CheckOptions options;
  options.history_events = 4000;
  const CheckReport report = judge(trace, options);
  CHECK(report.verdict() == Verdict::kInconclusive);
  CHECK_FALSE(report.complete());
  CHECK_FALSE(report.notes.empty());
}

}  // namespace tsomon
