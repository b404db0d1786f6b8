// Traces of threads that spin against the same traces without the inner loads of a run.
#include "decoders/capture/repeated_loads.h"

#include <map>
#include <random>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tso/check/analysis.h"
#include "tso/check/atomic_sets.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(500, 6'000);

// The trace with the runs of each thread merged: an event that stays is told by its `lo`.
Trace without_repeats(const Trace& trace) {
  std::vector<EventBlock> threads(trace.symbols.threads.size());
  for (size_t e = 0; e < trace.events.size(); ++e) {
    EventBlock& mine = threads[trace.events[e].thread];
    mine.events.push_back(mine.with_extras(trace, trace.events[e]));
  }
  struct Merged {
    const EventBlock* block;
    size_t event;
  };
  std::map<size_t, Merged> stays;  // by place in the trace
  for (EventBlock& mine : threads) {
    std::vector<std::pair<size_t, int64_t>> places;
    if (!mine.events.empty()) {
      for (size_t e = 0; e < trace.events.size(); ++e) {
        if (trace.events[e].thread == mine.events[0].thread) {
          places.emplace_back(e, trace.events[e].lo);
        }
      }
    }
    capture::merge_repeated_loads(mine);
    size_t from = places.size();
    for (size_t i = mine.events.size(); i-- > 0;) {
      // From the back: what stays last is the last of a run; its middle begins with the second.
      const Event& event = mine.events[i];
      while (places[from - 1].second != event.lo ||
             trace.events[places[from - 1].first].kind_bits != event.kind_bits) {
        --from;
      }
      stays[places[--from].first] = {&mine, i};
    }
  }
  Trace rest;
  rest.symbols = trace.symbols;
  for (const auto& [place, merged] : stays) {
    const Event& event = merged.block->events[merged.event];
    Event bare = event;
    bare.has_hi = bare.has_read_value = bare.has_write_value = 0;
    rest.add(bare, event.lo, merged.block->hi(event), merged.block->read_value(event),
             merged.block->write_value(event));
  }
  return rest;
}

RandomTraceOptions spinning_options(std::mt19937_64& random) {
  RandomTraceOptions made = random_options(random);
  made.mixed_sizes = false;
  made.repeats = 30 + static_cast<uint32_t>(random() % 50);
  made.steps += static_cast<uint32_t>(random() % 12);
  made.values = true;
  made.unique_values = random() % 3 != 0;
  return made;
}

// The second trace says what the first does: where that is anything (of sets overlapping intervals
// leave it open), no more, and no less where `equal`.
void compare(Verdict whole, Verdict rest, bool equal) {
  CAPTURE(static_cast<int>(whole));
  CAPTURE(static_cast<int>(rest));
  REQUIRE((rest == whole || whole == Verdict::kInconclusive ||
           (!equal && (rest == Verdict::kPossible || rest == Verdict::kInconclusive))));
}

}  // namespace

TEST_CASE("loads that repeat change no verdict") {
  constexpr uint64_t kSeed = 863;
  std::mt19937_64 random(kSeed);
  int verdicts[4] = {};
  uint64_t left_out = 0;
  int weaker = 0;
  for (int round = 0; round < kRounds; ++round) {
    const RandomTraceOptions made = spinning_options(random);
    const Trace trace = random_trace(random, made).trace;
    const Trace rest = without_repeats(trace);
    left_out += trace.events.size() - rest.events.size();
    AnalysisOptions options = random_analysis(random, made);
    options.values = random() % 4 != 0;
    const bool exact = options.values && made.unique_values;
    INFO("property " << static_cast<int>(options.property) << "\n"
                     << show(trace) << "without repeats\n"
                     << show(rest));
    const auto whole = analyse(trace, options);
    const auto twin = analyse(rest, options);
    REQUIRE(whole.has_value());
    REQUIRE(twin.has_value());
    compare(whole->verdict(), twin->verdict(), exact);
    weaker += whole->verdict() != twin->verdict() ? 1 : 0;
    ++verdicts[static_cast<int>(whole->verdict())];
    const Analysis sets = analyse_atomic_sets(trace, {});
    INFO("atomic sets");
    // Which write an access follows is asked of neighbours: overlapping intervals weaken that.
    compare(sets.verdict(), analyse_atomic_sets(rest, {}).verdict(), false);
  }
  CHECK(verdicts[static_cast<int>(Verdict::kClean)] > kRounds / 10);
  CHECK(verdicts[static_cast<int>(Verdict::kPossible)] > kRounds / 100);
  CHECK(verdicts[static_cast<int>(Verdict::kDefinite)] > kRounds / 100);
  CHECK(left_out > static_cast<uint64_t>(kRounds) / 10);
  CHECK(weaker < kRounds / 50);
}

TEST_CASE("what counts as a repetition") {
  const auto rest = [](const char* text) {
    EventBlock block = mini_trace(text);
    capture::merge_repeated_loads(block);
    std::vector<int64_t> times;
    for (const Event& event : block.events) {
      times.push_back(event.lo);
    }
    return times;
  };
  using Times = std::vector<int64_t>;
  const Times all{0, 1, 2, 3, 4, 5, 6, 7};
  CHECK(rest("T0:R(x=1) R(x=1) R(x=1)") == Times{0, 1, 2});
  CHECK(rest("T0:R(x=1) R(x=1) R(x=1) R(x=1) R(x=1) R(x=2) R(x=2) R(x=2) R(x=2) W(x=3)") ==
        Times{0, 1, 4, 5, 6, 8, 9});
  // Another value, another location, none at all, something between.
  CHECK(rest("T0:R(x=1) R(x=2) R(x=1) R(x=2) R(x=1) R(x=2) R(x=1) R(x=2)") == all);
  CHECK(rest("T0:R(x=1) R(y=1) R(x=1) R(y=1) R(x=1) R(y=1) R(x=1) R(y=1)") == all);
  CHECK(rest("T0:R(x) R(x) R(x) R(x) R(x) R(x) R(x) R(x)") == all);
  CHECK(rest("T0:R(x=1) R(x=1) R(x=1) R(x) R(x=1) R(x=1) R(x=1) R(x)") == all);
  CHECK(rest("T0:R(x=1) R(x=1) W(y=1) R(x=1) R(x=1) W(x=1) R(x=1) R(x=1)") == all);
  CHECK(rest("T0:U(x=1,1) U(x=1,1) U(x=1,1) U(x=1,1)") == Times{0, 1, 2, 3});
  CHECK(rest("T0:[R(x=1)] [R(x=1)] [R(x=1)] [R(x=1)]").size() == 12);
  // Compare-exchanges that fail.
  CHECK(rest("T0:F R(x=1) F R(x=1) F R(x=1) F R(x=1) F R(x=2)") == Times{0, 1, 3, 6, 7, 8, 9});
  CHECK(rest("T0:R(x=1) F R(x=1) F R(x=1) F R(x=1) F R(x=1) F") == Times{0, 1, 2, 4, 7, 8, 9});
  CHECK(rest("T0:F R(x=1) F R(x=1) F R(x=1)") == Times{0, 1, 2, 3, 4, 5});
}

TEST_CASE("the middle event has the interval of all that it stands for") {
  EventBlock block;
  for (int64_t i = 0; i < 10; ++i) {
    Event event;
    event.set_kind(EventKind::kRead);
    event.address = 64;
    event.size = 8;
    block.add(event, 10 * i, 10 * i + (i == 3 ? int64_t{1} << 40 : 5), 7);
    if (i == 4) {
      event.set_kind(EventKind::kWrite);
      block.add(event, 10 * i, 10 * i, {}, 8);
    }
  }
  capture::merge_repeated_loads(block);
  REQUIRE(block.events.size() == 7);
  const std::vector<std::pair<int64_t, int64_t>> intervals{
      {0, 5}, {10, (int64_t{1} << 40) + 30}, {40, 45}, {40, 40}, {50, 55}, {60, 85}, {90, 95}};
  for (size_t i = 0; i < intervals.size(); ++i) {
    CAPTURE(i);
    const Event& event = block.events[i];
    CHECK(block.lo(event) == intervals[i].first);
    CHECK(block.hi(event) == intervals[i].second);
    CHECK(block.read_value(event) == (i == 3 ? std::nullopt : std::optional<uint64_t>(7)));
    CHECK(block.write_value(event) == (i == 3 ? std::optional<uint64_t>(8) : std::nullopt));
  }
  // Again, as where blocks follow one another: nothing changes.
  const EventBlock once = block;
  capture::merge_repeated_loads(block);
  CHECK(block.events.size() == once.events.size());
}
