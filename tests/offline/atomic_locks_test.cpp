// Locks that programs make of atomics: which section came first only the values say, and the same
// few come again and again.
#include <functional>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "offline/check/orientation_search.h"
#include "tests/tso/mini_trace.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

struct AtomicLock {
  std::string name;
  int sections;  // at most: beyond that the search may give up
  std::function<std::string(int thread, int section)> enter;  // the section's number among all
  std::function<std::string(int thread, int section)> leave;
};

const AtomicLock kLocks[] = {
    {"test and set", 12, [](int, int) { return "U(l=0,1)"; }, [](int, int) { return "W(l=0)"; }},
    {"test and test and set", 10, [](int, int) { return "R(l=0) U(l=0,1)"; },
     [](int, int) { return "W(l=0)"; }},
    {"semaphore", 12, [](int, int) { return "R(l=1) U(l=1,0)"; },
     [](int, int) { return "U(l=0,1)"; }},
    {"ticket", 12, [](int, int k) { return fmt::format("U(n={},{}) R(s={})", k, k + 1, k); },
     [](int, int k) { return fmt::format("W(s={})", k + 1); }},
    {"Peterson", 12,
     [](int t, int) { return fmt::format("W(f{}=1) W(turn={}) F R(f{}=0)", t, 1 - t, 1 - t); },
     [](int t, int) { return fmt::format("W(f{}=0)", t); }},
};

// Two threads take turns; nothing is known of that.
Verdict verdict(const AtomicLock& lock, int sections, bool values, bool both_lock = true) {
  std::string text;
  for (int k = 0; k < sections; ++k) {
    const int t = k % 2;
    const bool locked = t == 0 || both_lock;
    text += fmt::format("T{}:{} T{}:[R(x) W(x)] T{}:{} ", t, locked ? lock.enter(t, k) : "R(a)", t,
                        t, locked ? lock.leave(t, k) : "W(b)");
  }
  Trace trace = mini_trace(text);
  trace.symbols.initial_zero = lock.name != "semaphore";
  AnalysisOptions options;
  options.relation.order = TraceOrder::kThread;
  options.values = values;
  const auto result = analyse_exactly(trace, options);
  REQUIRE(result);
  return result->verdict();
}

}  // namespace

TEST_CASE("locks made of atomics exclude, by the values that were read") {
  for (const AtomicLock& lock : kLocks) {
    for (int sections = 2; sections <= lock.sections; sections += 2) {
      INFO(lock.name << ", " << sections << " sections");
      CHECK(verdict(lock, sections, true) == Verdict::kClean);
      CHECK(verdict(lock, sections, false) == Verdict::kPossible);
    }
  }
  // The second thread does not take the lock.
  CHECK(verdict(kLocks[0], 4, true, false) == Verdict::kPossible);
}

TEST_CASE("pairs that lie on no cycle decide what was read by loads that do") {
  // The second store of t=1 and the first of t=0 overlap, and nothing leads back from either.
  struct Timed {
    const char* text;
    int64_t lo;
    int64_t hi;
  };
  const Timed events[] = {{"T0:W(t=1)", 10, 20},  {"T0:F", 20, 30},        {"T0:W(t=1)", 30, 100},
                          {"T1:W(t=0)", 60, 70},  {"T1:F", 60, 70},        {"T1:R(t=1)", 70, 120},
                          {"T1:[R(x)", 70, 120},  {"T1:W(x)]", 70, 120},   {"T1:W(t=0)", 70, 120},
                          {"T0:F", 100, 110},     {"T0:R(t=0)", 110, 200}, {"T0:[R(x)", 110, 200},
                          {"T0:W(x)]", 110, 200}, {"T0:W(t=1)", 110, 200}};
  std::string text;
  for (const Timed& event : events) {
    text += std::string(event.text) + " ";
  }
  const Trace untimed = mini_trace(text);
  const auto verdict = [&](bool values) {
    Trace trace;
    trace.symbols = untimed.symbols;
    const Timed* next = events;
    for (const Event& event : untimed.events) {
      Event own = event;
      own.has_hi = own.has_read_value = own.has_write_value = 0;
      const Timed& timed = event.kind() == EventKind::kUnitEnd ? *(next - 1) : *next;
      trace.add(own, timed.lo, timed.hi, untimed.read_value(event), untimed.write_value(event));
      next += is(event, kinds::kNodes) ? 1 : 0;
    }
    REQUIRE(next == std::end(events));
    AnalysisOptions options;
    options.values = values;
    const auto result = analyse_exactly(trace, options);
    REQUIRE(result);
    return result->verdict();
  };
  CHECK(verdict(true) == Verdict::kClean);
  CHECK(verdict(false) == Verdict::kPossible);
}
