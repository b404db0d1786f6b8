// Traces with an injected race that sync-preserving detection misses (RaceInjector, Wang et al.,
// 2023; tests/data/raceinjector): two writes to BUGGY_ADDR.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/std/reader.h"
#include "offline/predict/races.h"
#include "offline/predict/rapid_threads.h"

using namespace tsomon;
using namespace tsomon::predict;

TEST_CASE("injected races that keep no order of the sections are found") {
  for (const std::string name : {"arraylist", "treeset"}) {
    CAPTURE(name);
    auto trace = read_std(TSOMON_TEST_DATA "/raceinjector/" + name + ".std");
    REQUIRE(trace.has_value());
    unite_rapid_threads(*trace, trace->symbols.threads);
    const uint32_t buggy = trace->symbols.names.find("BUGGY_ADDR");
    std::vector<uint32_t> injected;
    for (uint32_t i = 0; i < trace->events.size(); ++i) {
      if (trace->events[i].kind() == EventKind::kWrite && trace->events[i].address == buggy) {
        injected.push_back(i);
      }
    }
    REQUIRE(injected.size() == 2);
    const RaceResult result = predict_races(*trace, {});
    CHECK(result.complete());
    CHECK(result.branches == Branches::kAfterEveryRead);
    const auto found = std::find_if(
        result.races.begin(), result.races.end(),
        [&](const Race& race) { return race.first == injected[0] && race.second == injected[1]; });
    REQUIRE(found != result.races.end());
    CHECK(found->tier == Tier::kClosure);
    CHECK(found->witness.size() > 2);
  }
}

TEST_CASE("a thread that RAPID starts by its number is the one that acts") {
  auto trace =
      read_std_text("T1|w(x)|0\nT1|fork(2)|1\nT2|w(x)|2\n3|w(y)|3\nT1|fork(3)|4\n", "test");
  REQUIRE(trace.has_value());
  CHECK(predict_races(*trace, {}).races.size() == 1);
  unite_rapid_threads(*trace, trace->symbols.threads);
  CHECK(predict_races(*trace, {}).races.empty());
  CHECK(trace->events[4].address == trace->events[3].thread);
}
