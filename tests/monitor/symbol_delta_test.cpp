// Symbols that grow on one thread and are learnt on another, and events that lie out of place.
#include "monitor/events/symbol_delta.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "monitor/events/reorder.h"
#include "tests/rounds.h"

using namespace tsomon;

namespace {

std::vector<std::string> all_of(const Interner& texts) {
  std::vector<std::string> all;
  for (uint32_t id = 0; id < texts.size(); ++id) {
    all.emplace_back(texts.text(id));
  }
  return all;
}

}  // namespace

TEST_CASE("symbol delta: what is learnt from all deltas is what was written") {
  std::mt19937_64 random(21);
  for (int round = 0; round < rounds(20, 200); ++round) {
    Symbols symbols;
    Symbols judged;
    Symbols shown;
    SymbolDeltaWriter judged_writer(SymbolDeltaWriter::What::kJudged);
    SymbolDeltaWriter all_writer(SymbolDeltaWriter::What::kAll);
    SymbolDelta delta;
    SymbolDelta named;
    for (int block = 0; block < 20; ++block) {
      for (uint64_t i = random() % 5; i > 0; --i) {
        const std::string name = "n" + std::to_string(random() % 50);
        switch (random() % 5) {
          case 0:
            symbols.labels.intern(name);
            break;
          case 1:
            symbols.threads.intern(name);
            break;
          case 2:
            symbols.locations.intern(name);
            break;
          case 3:
            symbols.initial_values.push_back({});
            break;
          default:
            symbols.sets.resize(std::max<size_t>(symbols.sets.size(), 1 + random() % 3));
        }
      }
      symbols.initial_zero = random() % 2 == 0;
      judged_writer.write(symbols, delta);
      CHECK(delta.threads.empty());
      CHECK(delta.locations.empty());
      learn(std::move(delta), judged);
      all_writer.write(symbols, named);
      learn(std::move(named), shown);
      REQUIRE(all_of(shown.labels) == all_of(symbols.labels));
      REQUIRE(all_of(shown.threads) == all_of(symbols.threads));
      REQUIRE(all_of(shown.locations) == all_of(symbols.locations));
      REQUIRE(all_of(judged.labels) == all_of(symbols.labels));
      for (const Symbols* learnt : {&judged, &shown}) {
        REQUIRE(learnt->sets.size() == symbols.sets.size());
        REQUIRE(learnt->initial_values.size() == symbols.initial_values.size());
        REQUIRE(learnt->initial_zero == symbols.initial_zero);
      }
    }
  }
}

TEST_CASE(
    "reorder: what lies a little out of place comes out by time, each thread in program order") {
  std::mt19937_64 random(22);
  for (int round = 0; round < rounds(10, 80); ++round) {
    const uint64_t apart = round % 4 == 0 ? 0 : 1 + random() % 500;
    Reorder reorder;
    std::vector<Event> expected;
    std::vector<Event> out;
    std::vector<int64_t> latest(3, kTimeMin);
    EventBlock block;
    EventBlock given;
    BlockOrigin origin;
    const auto take = [&](bool ready) {
      if (ready) {
        out.insert(out.end(), given.events.begin(), given.events.end());
      }
      given = {};
    };
    for (int64_t i = 0; i < 12'000; ++i) {
      Event event;
      event.thread = static_cast<ThreadId>(random() % latest.size());
      event.lo = 10 * i - static_cast<int64_t>(apart == 0 ? 0 : random() % (10 * apart));
      event.address = static_cast<uint64_t>(i);
      block.events.push_back(event);
      latest[event.thread] = event.lo = std::max(event.lo, latest[event.thread]);
      expected.push_back(event);
      if (random() % 300 == 0) {
        take(reorder.add(block, given, origin));
        block = {};
      }
    }
    take(reorder.add(block, given, origin));
    while (reorder.flush(given, origin)) {
      take(true);
    }
    std::stable_sort(expected.begin(), expected.end(),
                     [](const Event& a, const Event& b) { return a.lo < b.lo; });
    REQUIRE(out.size() == expected.size());
    for (size_t i = 0; i < out.size(); ++i) {
      REQUIRE(out[i].address == expected[i].address);
      REQUIRE(out[i].lo == expected[i].lo);
    }
  }
}
