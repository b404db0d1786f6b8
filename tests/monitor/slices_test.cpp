// What is definite in a slice (monitor/probe/slices.h) is definite in the run that it was cut from: the ground on which
// `tsomon record --pid` and `run --pid` stand (docs/theory.md, section 10).
#include <algorithm>
#include <map>
#include <vector>

#include <doctest/doctest.h>

#include "monitor/judge/check.h"
#include "monitor/judge/losses.h"
#include "tests/rounds.h"
#include "tests/tso/executions.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tso/check/analysis.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(6000, 60000);

// Of one thread: the events from `begin` to `end`, by their place among its own.
struct Part {
  size_t begin = 0;
  size_t end = 0;
};

// Where a thread may join: none of its units is open, and its store buffer is empty.
std::vector<size_t> places_to_join(const std::vector<Event>& events) {
  std::vector<size_t> places = {0};
  int units = 0;
  for (size_t i = 0; i != events.size(); ++i) {
    const EventKind kind = events[i].kind();
    units += kind == EventKind::kUnitBegin ? 1 : 0;
    units -= kind == EventKind::kUnitEnd ? 1 : 0;
    const bool drained = kind == EventKind::kFence || kind == EventKind::kReadModifyWrite;
    if (units == 0 && drained) {
      places.push_back(i + 1);
    }
  }
  return places;
}

Trace random_slice(std::mt19937_64& random, const Trace& trace) {
  std::map<uint32_t, std::vector<Event>> threads;
  for (const Event& event : trace.events) {
    threads[event.thread].push_back(event);
  }
  std::map<uint32_t, Part> parts;
  for (const auto& [thread, events] : threads) {
    const std::vector<size_t> places = places_to_join(events);
    Part& part = parts[thread];
    part.begin = random() % 6 == 0 ? events.size() : places[random() % places.size()];
    part.end = random() % 2 == 0 ? events.size()
                                 : part.begin + random() % (events.size() - part.begin + 1);
  }
  Trace slice;
  slice.symbols = trace.symbols;
  slice.symbols.initial_zero = false;
  slice.symbols.initial_values.clear();
  slice.sampled = true;
  std::map<uint32_t, size_t> place;
  for (const Event& event : trace.events) {
    const size_t at = place[event.thread]++;
    const Part& part = parts[event.thread];
    if (at >= part.begin && at < part.end) {
      Event bare = event;
      bare.has_hi = bare.has_read_value = bare.has_write_value = 0;
      slice.add(bare, trace.lo(event), trace.hi(event), trace.read_value(event),
                trace.write_value(event));
    }
  }
  return slice;
}

}  // namespace

TEST_CASE("what is definite in a slice is definite in the run") {
  std::mt19937_64 random(20261129);
  int definite = 0;
  int smaller = 0;
  int refused = 0;
  for (int round = 0; round < kRounds; ++round) {
    RandomTraceOptions made = random_options(random);
    made.steps += 4;
    const RandomTrace run = random_trace(random, made);
    AnalysisOptions asked = random_analysis(random, made);
    asked.relation.semantics = Semantics::kExact;
    const Trace slice = random_slice(random, run.trace);
    if (slice.events.empty()) {
      continue;
    }
    CheckOptions how;
    how.property = asked.property;
    how.analysis = asked;
    how.analysis.values = false;
    auto watched = check_trace(slice, how);
    if (!watched) {
      ++refused;
      continue;
    }
    keep_what_is_certain("a slice", &*watched);
    INFO(show(run.trace));
    INFO(show(slice));
    CHECK(watched->verdict() != Verdict::kClean);
    smaller += slice.events.size() < run.trace.events.size() ? 1 : 0;
    if (watched->verdict() != Verdict::kDefinite) {
      continue;
    }
    ++definite;
    const auto whole = analyse(run.trace, asked);
    REQUIRE(whole.has_value());
    REQUIRE(whole->verdict() == Verdict::kDefinite);
    if (asked.property != Property::kScSerializability) {
      REQUIRE(Executions(run.trace, asked.relation).violates(asked.property, run.execution));
    }
  }
  CHECK(smaller > kRounds / 4);
  CHECK(definite > kRounds / 200);
  CHECK(refused < kRounds / 4);
}
