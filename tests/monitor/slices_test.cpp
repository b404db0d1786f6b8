// What is definite in a slice (monitor/probe/slices.h) is definite in the run that it was cut from: the ground on which
// `tsomon record --pid` and `run --pid` stand (docs/theory.md, section 10).
#include <algorithm>
#include <map>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/std/reader.h"
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

// What functions did that were not watched: any accesses and fences of theirs are missing, and calls that were units
// may be none.
class LeftOut {
 public:
  LeftOut(std::mt19937_64& random, bool any)
      : random_(random), accesses_(any ? random() % 4 : 0), units_(any && random() % 2 == 0) {}

  bool operator()(const Event& event) {
    Thread& thread = threads_[event.thread];
    if (event.kind() == EventKind::kUnitBegin) {
      thread.open.push_back(units_ && random_() % 3 == 0);
      return thread.open.back();
    }
    if (event.kind() == EventKind::kUnitEnd && !thread.open.empty()) {
      const bool left_out = thread.open.back();
      thread.open.pop_back();
      return left_out;
    }
    constexpr uint32_t kPlainCode = kind_mask(EventKind::kRead) | kind_mask(EventKind::kWrite) |
                                    kind_mask(EventKind::kReadModifyWrite) |
                                    kind_mask(EventKind::kFence);
    return is(event, kPlainCode) && random_() % 8 < accesses_;
  }

 private:
  struct Thread {
    std::vector<bool> open;  // units: whether they are left out
  };
  std::mt19937_64& random_;
  uint64_t accesses_;
  bool units_;
  std::map<uint32_t, Thread> threads_;
};

Trace random_slice(std::mt19937_64& random, const Trace& trace) {
  LeftOut left_out(random, random() % 2 == 0);
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
    if (at >= part.begin && at < part.end && !left_out(event)) {
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
    keep_what_is_certain("a slice", how.analysis.relation, &*watched);
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

// The load may have been forwarded from a store of its unit that was not seen; the turns of the lock say it all the same.
TEST_CASE("in a slice a unit that gives its lock back is violated by its locks") {
  const std::string text =
      "A|begin(u)|a1|0..0\nA|acq(l)|a2|10..10\nA|r(x)|a3|11..12\nA|rel(l)|a4|13..13\n"
      "B|begin(u)|b1|15..15\nB|acq(l)|b2|20..20\nB|r(x)|b3|21..22\nB|rel(l)|b4|23..23\n"
      "A|acq(l)|a5|30..30\nA|w(x)|a6|31..32\nA|rel(l)|a7|33..33\nA|end|a8|34..34\n"
      "B|acq(l)|b5|40..40\nB|w(x)|b6|41..42\nB|rel(l)|b7|43..43\nB|end|b8|44..44\n";
  const auto verdict_of_slice = [](const std::string& lines) {
    Trace slice = *read_std_text(lines, "slice");
    slice.sampled = true;
    CheckOptions how;
    how.analysis.values = false;
    auto watched = check_trace(slice, how);
    REQUIRE(watched.has_value());
    keep_what_is_certain("a slice", how.analysis.relation, &*watched);
    return watched->verdict();
  };
  CHECK(verdict_of_slice(text) == Verdict::kDefinite);
  // One that keeps its lock is not.
  std::string kept = text;
  for (const char* const line : {"A|rel(l)|a4|13..13\n", "B|acq(l)|b2|20..20\n",
                                 "B|rel(l)|b4|23..23\n", "A|acq(l)|a5|30..30\n"}) {
    kept.erase(kept.find(line), std::string(line).size());
  }
  CHECK(verdict_of_slice(kept) != Verdict::kDefinite);
}
