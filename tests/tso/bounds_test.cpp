// What the analysis may cost: bounds that hold, and that weaken a verdict without making it wrong.
#include <algorithm>
#include <random>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tso/check/analysis.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

#if defined(TSOMON_SANITIZED)
constexpr int kScale = 10;
#else
constexpr int kScale = 1;
#endif

Event event_of(EventKind kind, ThreadId thread, uint64_t address) {
  Event event;
  event.set_kind(kind);
  event.thread = thread;
  event.address = address;
  return event;
}

void add(Trace& trace, EventKind kind, ThreadId thread, uint64_t address) {
  const auto now = static_cast<int64_t>(trace.events.size());
  trace.add(event_of(kind, thread, address), now, now);
}

// Units of two to four accesses, no locks and no fences, the threads in turns.
Trace one_component(std::mt19937_64& random, uint32_t units, ThreadId threads, uint32_t locations) {
  Trace trace;
  trace.symbols.labels.intern("u");
  std::vector<uint64_t> left(threads, 0);
  for (uint32_t begun = 0; begun < units;) {
    const auto thread = static_cast<ThreadId>(random() % threads);
    if (left[thread] == 0) {
      left[thread] = 3 + random() % 3;
      add(trace, EventKind::kUnitBegin, thread, 0);
      ++begun;
    } else if (--left[thread] == 0) {
      add(trace, EventKind::kUnitEnd, thread, 0);
    } else {
      add(trace, random() % 2 == 0 ? EventKind::kRead : EventKind::kWrite, thread,
          random() % locations);
    }
  }
  return trace;
}

}  // namespace

TEST_CASE("a component of a thousand units that nothing orders ends within its bounds") {
  std::mt19937_64 random(3);
  int searched = 0;
  for (const ThreadId threads : {2U, 4U}) {
    for (const uint32_t locations : {1U, 3U}) {
      for (const uint32_t units : {250U, 1000U}) {
        const Trace trace = one_component(random, units, threads, locations);
        AnalysisOptions options;
        options.bounds.max_work = 40'000'000 / kScale;
        options.max_total_work = options.bounds.max_work;
        const auto analysis = analyse(trace, options);
        REQUIRE(analysis);
        INFO(threads << " threads, " << locations << " locations, work " << analysis->work);
        // Two goals, and one step of a search with a few million words of order above the bound.
        CHECK(analysis->work <= 3 * options.bounds.max_work + 10'000'000);
        CHECK(analysis->verdict() != Verdict::kClean);
        CHECK(analysis->complete() == (analysis->verdict() != Verdict::kInconclusive));
        searched += analysis->work > options.bounds.max_work / 2 ? 1 : 0;
      }
    }
  }
  CHECK((searched > 0 || kScale > 1));
}

TEST_CASE("thousands of components share the bound on their work") {
  Trace trace;
  trace.symbols.labels.intern("u");
  const uint64_t components = 3000 / kScale;
  for (uint64_t component = 0; component < components; ++component) {
    // T0:[W(x) T1:[W(y) T0:R(y)] T1:R(x)], over locations of their own, fences between the components
    const uint64_t x = 2 * component;
    for (const ThreadId thread : {0U, 1U}) {
      add(trace, EventKind::kUnitBegin, thread, 0);
      add(trace, EventKind::kWrite, thread, x + thread);
    }
    for (const ThreadId thread : {0U, 1U}) {
      add(trace, EventKind::kRead, thread, x + 1 - thread);
      add(trace, EventKind::kUnitEnd, thread, 0);
      add(trace, EventKind::kFence, thread, 0);
    }
  }
  AnalysisOptions options;
  const auto whole = analyse(trace, options);
  REQUIRE(whole);
  CHECK(whole->violations() == components);
  CHECK(whole->complete());
  // One of the components alone is searched when it is asked for; all of them when each is.
  const auto size = static_cast<uint32_t>(trace.events.size());
  options.only = {{0, size - 10, size - 1}, {1, size - 10, size - 1}};
  CHECK(analyse(trace, options)->components == 1);
  options.only.clear();
  for (uint32_t e = 0; e < size; e += 10) {
    options.only.push_back({0, e, e + 9});
    options.only.push_back({1, e, e + 9});
  }
  CHECK(analyse(trace, options)->components == components);
  options.only.clear();
  options.max_total_work = 1;
  options.bounds.max_work = 20;
  const auto bounded = analyse(trace, options);
  CHECK_FALSE(bounded->complete());
  CHECK(bounded->undecided_components == components);
  CHECK(bounded->verdict() == Verdict::kInconclusive);
}

TEST_CASE("a violation of two very long units is shown by the ends of its edges") {
  Trace trace;
  trace.symbols.labels.intern("u");
  const uint64_t length = 100'000 / kScale;
  for (uint64_t i = 0; i < length; ++i) {
    for (const ThreadId thread : {0U, 1U}) {
      if (i == 0) {
        add(trace, EventKind::kUnitBegin, thread, 0);
      }
      add(trace, EventKind::kRead, thread, 1000 * thread + i % 900);
      if (i == 100 || i == length - 100) {
        add(trace, EventKind::kReadModifyWrite, thread, 5000);
      }
      if (i + 1 == length) {
        add(trace, EventKind::kUnitEnd, thread, 0);
      }
    }
  }
  const auto analysis = analyse(trace, {});
  REQUIRE(analysis);
  CHECK(analysis->verdict() == Verdict::kDefinite);
  CHECK(analysis->complete());
  REQUIRE(analysis->findings.size() == 1);
  CHECK(analysis->findings[0].slice.size() <= 4);
  CHECK(analysis->findings[0].witness.size() >= 2);
}

TEST_CASE("a bound on the work weakens verdicts and never turns them") {
  constexpr uint64_t kSeed = 77;
  std::mt19937_64 random(kSeed);
  int weaker = 0;
  int same = 0;
  for (int round = 0; round < 10'000 / kScale; ++round) {
    RandomTraceOptions made;
    made.threads = 2 + static_cast<uint32_t>(random() % 2);
    made.steps = 4 + static_cast<uint32_t>(random() % 20);
    made.locked = 5;
    made.fences = 5;
    made.values = random() % 2 == 0;
    const Trace trace = random_trace(random, made).trace;
    AnalysisOptions options;
    options.property = random() % 3 == 0 ? Property::kRobustness : Property::kSerializability;
    const auto whole = analyse(trace, options);
    options.bounds.max_work = 1 + random() % 2000;
    options.max_total_work = options.bounds.max_work;
    const auto bounded = analyse(trace, options);
    REQUIRE(whole);
    REQUIRE(bounded);
    INFO("seed " << kSeed << " round " << round << "\n" << show(trace));
    if (bounded->complete()) {
      REQUIRE(bounded->verdict() == whole->verdict());
      ++same;
      continue;
    }
    ++weaker;
    REQUIRE(bounded->verdict() != Verdict::kClean);
    if (bounded->verdict() != Verdict::kInconclusive) {
      REQUIRE(whole->verdict() != Verdict::kClean);
      REQUIRE((bounded->verdict() == Verdict::kPossible || whole->verdict() == Verdict::kDefinite));
    }
  }
  CHECK(weaker > 50 / kScale);
  CHECK(same > 1000 / kScale);
}
