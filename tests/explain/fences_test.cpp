// Sets of fences against every set of places there is: each that is found makes the whole trace clean,
// no part of it does, and the cheapest is among them.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "offline/check/orientation_search.h"
#include "offline/explain/fenced_input.h"
#include "offline/explain/repairs.h"
#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"

namespace tsomon::explain {
namespace {

using tsomon::testing::random_trace;
using tsomon::testing::RandomTraceOptions;

const int kRounds = rounds(150, 4'000);

bool is_clean(const FencedInput& input, const std::vector<uint32_t>& stores, FenceTime time) {
  const Left left = input.with_fences_after(stores, time);
  return left == Left::kNothing || left == Left::kNoExecution;
}

// All sets of places by how many there are in them, that help while no part of them does.
std::vector<std::vector<uint32_t>> minimal_sets(const FencedInput& input,
                                                const std::vector<uint32_t>& place_of,
                                                uint32_t places, FenceTime time) {
  std::vector<uint32_t> helping;  // as bits
  std::vector<std::vector<uint32_t>> minimal;
  std::vector<uint32_t> all(size_t{1} << places);
  for (uint32_t set = 0; set < all.size(); ++set) {
    all[set] = set;
  }
  std::stable_sort(all.begin(), all.end(), [](uint32_t a, uint32_t b) {
    return __builtin_popcount(a) < __builtin_popcount(b);
  });
  for (const uint32_t set : all) {
    if (std::any_of(helping.begin(), helping.end(),
                    [&](uint32_t part) { return (part & set) == part; })) {
      continue;
    }
    std::vector<uint32_t> stores;
    for (const uint32_t store : input.late_stores()) {
      if ((set >> place_of[store] & 1U) != 0) {
        stores.push_back(store);
      }
    }
    if (is_clean(input, stores, time)) {
      helping.push_back(set);
      std::vector<uint32_t>& list = minimal.emplace_back();
      for (uint32_t place = 0; place < places; ++place) {
        if ((set >> place & 1U) != 0) {
          list.push_back(place);
        }
      }
    }
  }
  std::sort(minimal.begin(), minimal.end());
  return minimal;
}

// As many places as `locations`: stores share them.
Trace random_input(std::mt19937_64& random, uint32_t locations) {
  RandomTraceOptions options;
  options.steps = 6 + random() % 5;
  options.units = random() % 2 == 0 ? 0 : 30;
  options.locked = options.fences = 5;
  options.intervals = random() % 3 == 0;
  Trace trace = random_trace(random, options).trace;
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    trace.events[e].location = Event::kNumericLocation | (e % locations);
  }
  return trace;
}

}  // namespace

TEST_CASE("fences: every set that is enough for the whole trace, and no other") {
  constexpr uint64_t kSeed = 20261128;
  std::mt19937_64 random(kSeed);
  int violated = 0;
  int repaired = 0;
  for (int round = 0; round < kRounds; ++round) {
    const uint32_t locations = random() % 2 == 0 ? 4 : 64;
    const Trace trace = random_input(random, locations);
    RepairOptions options;
    options.blocks = false;
    options.analysis.property =
        random() % 2 == 0 ? Property::kRobustness : Property::kSerializability;
    const auto found = analyse_exactly(trace, options.analysis);
    REQUIRE(found);
    const FencedInput input(trace, options.analysis);
    if (found->findings.empty() || !input.can_ask()) {
      continue;
    }
    INFO("seed " << kSeed << " round " << round << "\n" << tsomon::testing::show(trace));
    ++violated;
    ViolatingTrace one{&trace, {}, [](const std::string&) { return CodePlace(); }};
    for (const Violation& violation : found->findings) {
      if (!violation.cycle.empty()) {
        one.cycles.push_back(violation.cycle);
      }
    }
    if (one.cycles.empty()) {
      continue;
    }
    std::vector<std::string> places;
    std::vector<uint32_t> place_of(trace.events.size(), 0);
    for (const uint32_t store : input.late_stores()) {
      const std::string text = location_of(trace, store);
      const auto at = std::find(places.begin(), places.end(), text);
      place_of[store] = static_cast<uint32_t>(at - places.begin());
      if (at == places.end()) {
        places.push_back(text);
      }
    }
    const auto count = static_cast<uint32_t>(places.size());
    auto wanted = minimal_sets(input, place_of, count, FenceTime::kOpen);
    const bool by_times = wanted.empty();
    if (by_times) {
      wanted = minimal_sets(input, place_of, count, FenceTime::kRecorded);
    }
    const Repairs repairs = find_repairs({one}, {}, options);
    std::vector<std::vector<uint32_t>> sets;
    for (const Repair& repair : repairs.repairs) {
      CHECK(repair.verified == std::optional(true));
      CHECK(repair.assumes_times == by_times);
      std::vector<uint32_t>& set = sets.emplace_back();
      for (const FencePlace& fence : repair.fences) {
        set.push_back(static_cast<uint32_t>(
            std::find(places.begin(), places.end(), fence.location) - places.begin()));
      }
      std::sort(set.begin(), set.end());
    }
    std::sort(sets.begin(), sets.end());
    const auto text_of = [&](const std::vector<std::vector<uint32_t>>& all) {
      std::string text;
      for (const std::vector<uint32_t>& set : all) {
        text += " {";
        for (const uint32_t place : set) {
          text += " " + places[place];
        }
        text += " }";
      }
      return text;
    };
    INFO("found" << text_of(sets) << ", wanted" << text_of(wanted));
    if (wanted.size() <= 8) {
      CHECK(sets == wanted);
    } else {
      CHECK(sets.size() == 8);
    }
    repaired += sets.empty() ? 0 : 1;
  }
  MESSAGE(violated << " violated traces, " << repaired << " that fences repair");
  CHECK(repaired > kRounds / 50);
}

}  // namespace tsomon::explain
