// The policy of atomic sets by itself, against the definition by all pairs of accesses.
#include <map>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "online/set_policy/atomic_set_policy.h"
#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(400, 8'000);

// Whether the policy reports a cycle, all locations being one set.
bool reports(const Trace& trace) {
  uint64_t cycles = 0;
  DetectorCallbacks counted;
  counted.on_cycle = [&](const DetectedCycle&) { ++cycles; };
  ConflictGraph graph(&counted);
  AtomicSetPolicy policy(graph, trace.symbols, SetChoice::kAuto,
                         [&](const DetectedCycle&) { ++cycles; }, {}, {});
  policy.add(trace, 0);
  policy.finish();
  return cycles != 0 || graph.statistics().cycles != 0;
}

// Units and the order of their conflicting accesses, as written down.
bool has_cycle(const Trace& trace) {
  std::vector<uint32_t> unit_of(trace.events.size());
  std::map<ThreadId, uint32_t> open;
  uint32_t units = 0;
  for (size_t e = 0; e < trace.events.size(); ++e) {
    const Event& event = trace.events[e];
    if (event.kind() == EventKind::kUnitBegin) {
      open[event.thread] = units++;
    } else if (event.kind() == EventKind::kUnitEnd) {
      open.erase(event.thread);
    } else {
      unit_of[e] = open.count(event.thread) != 0 ? open[event.thread] : units++;
    }
  }
  std::vector<std::vector<bool>> before(units, std::vector<bool>(units, false));
  for (size_t e = 0; e < trace.events.size(); ++e) {
    for (size_t f = e + 1; f < trace.events.size(); ++f) {
      const Event& a = trace.events[e];
      const Event& b = trace.events[f];
      const bool accesses = is(a, kinds::kAccesses) && is(b, kinds::kAccesses);
      if (accesses && a.address == b.address && unit_of[e] != unit_of[f] &&
          (a.kind() != EventKind::kRead || b.kind() != EventKind::kRead)) {
        before[unit_of[e]][unit_of[f]] = true;
      }
    }
  }
  for (uint32_t k = 0; k < units; ++k) {
    for (uint32_t i = 0; i < units; ++i) {
      for (uint32_t j = 0; before[i][k] && j < units; ++j) {
        before[i][j] = before[i][j] || before[k][j];
      }
    }
  }
  for (uint32_t i = 0; i < units; ++i) {
    if (before[i][i]) {
      return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("set policy: a write between two accesses of a unit is a cycle, around them it is none") {
  CHECK(reports(mini_trace("T0:[R(x) T1:W(x) T0:W(x)]")));
  CHECK_FALSE(reports(mini_trace("T0:[R(x) W(x)] T1:W(x)")));
  CHECK_FALSE(reports(mini_trace("T0:[R(x) T1:R(x) T0:R(x)]")));
  // No program order: what a thread does between its units orders nothing.
  CHECK_FALSE(reports(mini_trace("T0:[R(x) T1:W(y) W(x) T0:R(z)]")));
}

TEST_CASE("set policy: a cycle is reported exactly where the accesses have one") {
  std::mt19937_64 random(20261125);
  int cyclic = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::string text;
    std::vector<bool> open(3, false);
    for (uint64_t step = 0; step < 6 + random() % 20; ++step) {
      const uint64_t thread = random() % 3;
      const bool opens = !open[thread] && random() % 3 == 0;
      const bool closes = (open[thread] || opens) && random() % 4 == 0;
      open[thread] = (open[thread] || opens) && !closes;
      text +=
          fmt::format("T{}:{}{}({}){} ", thread, opens ? "[" : "", random() % 2 == 0 ? "W" : "R",
                      random() % 2 == 0 ? "x" : "y", closes ? "]" : "");
    }
    for (uint64_t thread = 0; thread < 3; ++thread) {
      text += open[thread] ? fmt::format("T{}:R(z)] ", thread) : "";
    }
    CAPTURE(text);
    const Trace trace = mini_trace(text);
    const bool expected = has_cycle(trace);
    REQUIRE(reports(trace) == expected);
    cyclic += expected ? 1 : 0;
  }
  CHECK(cyclic > kRounds / 10);
  CHECK(cyclic < kRounds);
}
