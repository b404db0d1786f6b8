// PT as a trace of events: against the accesses and calls of the stepped run.
#include "decoders/pt/trace.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/pt/traced_programs.h"

using namespace tsomon;
using namespace tsomon::test;

namespace {

// The function that is called most often.
uint64_t busiest_function(const SteppedRun& run, size_t& calls) {
  std::map<uint64_t, size_t> targets;
  for (const Step& step : run.steps) {
    if (run.at(step.ip).branch == x86::Branch::kCall) {
      ++targets[step.next];
    }
  }
  const auto most = std::max_element(targets.begin(), targets.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  REQUIRE(most != targets.end());
  calls = most->second;
  return most->first;
}

size_t count(const Trace& trace, EventKind kind) {
  return static_cast<size_t>(
      std::count_if(trace.events.begin(), trace.events.end(),
                    [&](const Event& event) { return event.kind() == kind; }));
}

}  // namespace

TEST_CASE("events are accesses of the run, in their time, threads in their order") {
  for (const std::string& name : traced_programs()) {
    CAPTURE(name);
    const SteppedRun& run = stepped(name);
    const EncodedRun encoded = encode(run);
    const pt::DecodedTrace decoded = make_trace(decode_flow(input_of(run, encoded)));
    const Trace& trace = decoded.trace;
    CHECK(trace.complete == (decoded.counts.unknown == 0));
    // What each thread did at which address, in order.
    std::vector<std::vector<size_t>> steps(run.threads.size());
    for (size_t i = 0; i < run.steps.size(); ++i) {
      steps[run.steps[i].thread].push_back(i);
    }
    std::vector<size_t> next(run.threads.size());
    int64_t last = kTimeMin;
    size_t found = 0;
    for (const Event& event : trace.events) {
      CHECK(event.lo >= last);
      last = event.lo;
      if (!is(event, kinds::kAccesses)) {
        continue;
      }
      // The next step of the thread at this place that accesses these bytes.
      const std::string text(trace.symbols.threads.text(event.thread));
      const int tid = std::stoi(text.substr(text.find('/') + 1));
      const auto thread = static_cast<size_t>(
          std::find(run.threads.begin(), run.threads.end(), tid) - run.threads.begin());
      const std::string place = trace.symbols.location_text(event.location);
      const uint64_t ip = std::stoull(place, nullptr, 16);
      size_t& at = next[thread];
      bool same = false;
      for (; at < steps[thread].size(); ++at) {
        const Step& step = run.steps[steps[thread][at]];
        const auto time = static_cast<int64_t>(time_of(steps[thread][at]));
        if (step.ip != ip || time < trace.lo(event) || time > trace.hi(event)) {
          continue;
        }
        for (const x86::Access& access : run.at(ip)) {
          const auto range = evaluate(access, step.registers);
          same |= range && range->address == event.address && range->size == event.size;
        }
        if (same) {
          break;
        }
      }
      CHECK(same);
      ++found;
    }
    CHECK(found > 0);
  }
}

TEST_CASE("units are the calls of a function") {
  for (const char* name : {"hash_table", "recursion"}) {
    const SteppedRun& run = stepped(name);
    size_t calls = 0;
    const uint64_t entry = busiest_function(run, calls);
    REQUIRE(calls > 50);
    pt::TraceOptions options;
    options.units = {{"busy", entry, run.threads[0]}};
    options.branches = true;
    EncodeOptions encoding;
    EncodedRun encoded = encode(run, encoding);
    const pt::Flow flow = decode_flow(input_of(run, encoded));
    const Trace trace = make_trace(flow, options).trace;
    CHECK(count(trace, EventKind::kUnitBegin) == calls);
    CHECK(count(trace, EventKind::kUnitEnd) <= calls);
    CHECK(count(trace, EventKind::kUnitEnd) + 110 >= calls);  // the last ones are open
    CHECK(count(trace, EventKind::kBranch) > calls);
    // Depth never falls below zero.
    int depth = 0;
    for (const Event& event : trace.events) {
      depth += event.kind() == EventKind::kUnitBegin ? 1 : 0;
      depth -= event.kind() == EventKind::kUnitEnd ? 1 : 0;
      CHECK(depth >= 0);
    }

    encoding.overflow_one_in = 400;
    encoded = encode(run, encoding);
    const pt::DecodedTrace damaged = make_trace(decode_flow(input_of(run, encoded)), options);
    CHECK(!damaged.trace.complete);
    CHECK(damaged.counts.incomplete_units > 0);
    CHECK(count(damaged.trace, EventKind::kUnitBegin) < calls);
  }
}

TEST_CASE("locked operations and fences") {
  const SteppedRun& run = stepped("queue");
  size_t locked = 0;
  for (const Step& step : run.steps) {
    locked += run.at(step.ip).locked() ? 1 : 0;
  }
  const EncodedRun encoded = encode(run);
  const Trace trace = make_trace(decode_flow(input_of(run, encoded))).trace;
  CHECK(locked >= 600);
  CHECK(count(trace, EventKind::kReadModifyWrite) >= 600);
  CHECK(count(trace, EventKind::kReadModifyWrite) + count(trace, EventKind::kFence) >= locked);
}
