// Slices of a run that are asked about while it goes on.
#include "monitor/predict/slices.h"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/std/reader.h"

using namespace tsomon;

namespace {

struct Said {
  std::vector<std::string> texts;  // of each report
  SliceSummary summary;
};

// In blocks of so many events.
Said predicted(const std::string& lines, const SliceOptions& options, size_t block_events) {
  const auto trace = read_std_text(lines, "test");
  REQUIRE(trace.has_value());
  Said said;
  SlicePredictor predictor(options, [&](const Prediction& prediction) {
    said.texts.push_back(predictions_text(prediction));
  });
  EventBlock block;
  for (size_t begin = 0; begin < trace->events.size(); begin += block_events) {
    block.clear();
    block.append(*trace, begin, std::min(begin + block_events, trace->events.size()));
    predictor.add(block, trace->symbols, {});
    predictor.idle({});
  }
  predictor.finish(trace->symbols, {});
  said.summary = predictor.summary();
  return said;
}

std::string take_both(const std::string& thread, const std::string& first,
                      const std::string& second) {
  return thread + "|acq(" + first + ")|1" + first + "\n" + thread + "|acq(" + second + ")|2" +
         first + "\n" + thread + "|rel(" + second + ")|3\n" + thread + "|rel(" + first + ")|4\n";
}

// Of a thread that nobody else has to do with.
std::string others(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    lines += "T9|w(own)|9\n";
  }
  return lines;
}

}  // namespace

TEST_CASE("locks in both orders are an occasion, and what is known is not told again") {
  const std::string inversion = take_both("T1", "a", "b") + others(10) + take_both("T2", "b", "a");
  for (const size_t block : {1U, 7U, 1'000U}) {
    const Said once = predicted(inversion, {}, block);
    CHECK(once.summary.slices == 1);
    CHECK(once.summary.predicted == 1);
    REQUIRE(once.texts.size() == 1);
    CHECK(once.texts.front().find("deadlock, each waits for the next") != std::string::npos);
    SliceOptions short_slices;
    short_slices.slice_events = 100;
    const Said again = predicted(inversion + others(200) + inversion, short_slices, block);
    CHECK(again.texts.size() == 1);
    CHECK(again.summary.predicted == 1);
  }
  CHECK(predicted(take_both("T1", "a", "b") + take_both("T2", "a", "b"), {}, 3).summary.slices ==
        0);
}

TEST_CASE("accesses that come close are an occasion, unless a common lock keeps them apart") {
  const std::string one = "T1|acq(l)|1\nT1|w(x)|2\nT1|rel(l)|3\n";
  const std::string other = "T2|acq(l)|4\nT2|w(x)|5\nT2|rel(l)|6\n";
  CHECK(predicted(one + other, {}, 2).summary.slices == 0);
  const Said race = predicted(one + "T2|w(x)|7\n", {}, 2);
  CHECK(race.summary.slices == 1);
  REQUIRE(race.texts.size() == 1);
  CHECK(race.texts.front().find("race:") != std::string::npos);
  // What comes later than two thousand events is not close.
  CHECK(predicted(one + others(3'000) + "T2|w(x)|7\n", {}, 50).summary.slices == 0);
}

TEST_CASE("what is further apart than a slice is long is not seen") {
  SliceOptions options;
  options.slice_events = 100;
  const Said said =
      predicted(take_both("T1", "a", "b") + others(500) + take_both("T2", "b", "a"), options, 10);
  CHECK(said.summary.slices == 1);
  CHECK(said.summary.predicted == 0);
  CHECK(said.texts.empty());
}

TEST_CASE("occasions beyond the budget are left out and counted") {
  SliceOptions options;
  options.max_work = 0;
  const Said said = predicted("T1|w(x)|1\nT2|w(x)|2\nT1|w(y)|3\nT2|w(y)|4\n", options, 1);
  CHECK(said.summary.slices == 0);
  CHECK(said.summary.left_out == 2);
  CHECK(said.texts.empty());
}
