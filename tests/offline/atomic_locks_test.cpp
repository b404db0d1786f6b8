// Locks that programs make of atomics: which section came first only the values say, and the same
// few come again and again.
#include <functional>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "offline/orientation_search.h"
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
  return result->verdict;
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
