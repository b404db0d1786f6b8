// Sets of fences against enumeration: of random monotone questions, and of random traces that
// the enumeration of all orientations judges with the fences in them.
#include "offline/explain/fence_sets.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "offline/explain/violation.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"

namespace tsomon::explain {
namespace {

using Set = std::vector<uint32_t>;
using testing::random_trace;
using testing::RandomTraceOptions;

std::vector<bool> chosen_of(uint32_t subset, size_t places) {
  std::vector<bool> chosen(places);
  for (size_t i = 0; i < places; ++i) {
    chosen[i] = (subset >> i & 1U) != 0;
  }
  return chosen;
}

// The sets that help all violations while no part of them does.
std::set<Set> naive_sets(size_t places, const std::vector<FenceQuestion>& violations) {
  std::vector<uint32_t> helping;
  for (uint32_t subset = 0; subset < (1U << places); ++subset) {
    const std::vector<bool> chosen = chosen_of(subset, places);
    if (std::all_of(violations.begin(), violations.end(), [&](const FenceQuestion& violation) {
          return violation(chosen) == Answer::kYes;
        })) {
      helping.push_back(subset);
    }
  }
  std::set<Set> minimal;
  for (const uint32_t subset : helping) {
    if (std::none_of(helping.begin(), helping.end(), [&](uint32_t other) {
          return other != subset && (other & subset) == other;
        })) {
      Set set;
      for (uint32_t place = 0; place < places; ++place) {
        if ((subset >> place & 1U) != 0) {
          set.push_back(place);
        }
      }
      minimal.insert(set);
    }
  }
  return minimal;
}

uint64_t cost_of(const Set& set, const std::vector<uint64_t>& costs) {
  return std::accumulate(set.begin(), set.end(), uint64_t{0},
                         [&](uint64_t sum, uint32_t place) { return sum + costs[place]; });
}

TEST_CASE("sets of fences are the minimal ones, the cheapest first") {
  std::mt19937 random(7);
  uint64_t several = 0;
  for (uint32_t round = 0; round < 2'000; ++round) {
    const size_t places = 1 + random() % 7;
    std::vector<uint64_t> costs(places);
    for (uint64_t& cost : costs) {
      cost = 1 + random() % 20;
    }
    // Each violation is removed by any one of some sets.
    std::vector<FenceQuestion> violations;
    for (size_t i = 1 + random() % 3; i > 0; --i) {
      std::vector<uint32_t> ways(1 + random() % 4);
      for (uint32_t& way : ways) {
        way = 1 + static_cast<uint32_t>(random() % ((1U << places) - 1));
      }
      violations.emplace_back([ways, places](const std::vector<bool>& chosen) {
        return std::any_of(ways.begin(), ways.end(),
                           [&](uint32_t way) {
                             for (size_t place = 0; place < places; ++place) {
                               if ((way >> place & 1U) != 0 && !chosen[place]) {
                                 return false;
                               }
                             }
                             return true;
                           })
                   ? Answer::kYes
                   : Answer::kNo;
      });
    }
    FenceBounds bounds;
    bounds.max_sets = 1'000;
    const FenceSets found = find_fence_sets(costs, violations, bounds);
    CHECK(found.complete);
    CHECK(std::set<Set>(found.sets.begin(), found.sets.end()) == naive_sets(places, violations));
    CHECK(std::is_sorted(found.sets.begin(), found.sets.end(), [&](const Set& a, const Set& b) {
      return cost_of(a, costs) < cost_of(b, costs);
    }));
    several += found.sets.size() > 1 ? 1 : 0;
  }
  CHECK(several > 300);
}

TEST_CASE("what no fence removes has no set, and a bound is told") {
  const auto never = [](const std::vector<bool>&) { return Answer::kNo; };
  CHECK(find_fence_sets({1, 1}, {never}).sets.empty());
  CHECK(find_fence_sets({1, 1}, {never}).complete);
  const auto unknown = [](const std::vector<bool>&) { return Answer::kUnknown; };
  CHECK(!find_fence_sets({1, 1}, {unknown}).complete);
  const auto both = [](const std::vector<bool>& chosen) {
    return chosen[0] && chosen[1] ? Answer::kYes : Answer::kNo;
  };
  FenceBounds few;
  few.max_questions = 2;
  CHECK(!find_fence_sets({1, 1}, {both}, few).complete);
  CHECK(find_fence_sets({1, 1}, {both}).sets == std::vector<Set>{{0, 1}});
}

// With a fence after each of these events, which has ended when the thread next empties its buffer.
Trace fenced(const Trace& trace, const std::vector<uint32_t>& after) {
  Trace result;
  result.symbols = trace.symbols;
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    result.append(trace, e, e + 1);
    if (std::count(after.begin(), after.end(), e) > 0) {
      int64_t end = kTimeMax;
      for (uint32_t f = e + 1; f < trace.events.size() && end == kTimeMax; ++f) {
        if (trace.events[f].thread == trace.events[e].thread &&
            is(trace.events[f], kinds::kDrains)) {
          end = trace.hi(trace.events[f]);
        }
      }
      Event fence;
      fence.set_kind(EventKind::kFence);
      fence.thread = trace.events[e].thread;
      result.add(fence, trace.events[e].lo, end);
    }
  }
  return result;
}

TEST_CASE("fences of random traces are those that enumeration finds") {
  std::mt19937_64 random(31);
  uint64_t asked = 0;
  uint64_t helped = 0;
  uint64_t pairs = 0;
  for (uint32_t round = 0; round < 20'000 && asked < 1'000; ++round) {
    RandomTraceOptions made;
    made.threads = 2 + round % 2;
    made.locations = 2;
    made.steps = 6 + static_cast<uint32_t>(random() % 3);
    made.units = 25;
    made.fences = 5;
    made.locked = 5;
    const Trace trace = random_trace(random, made).trace;
    AnalysisOptions options;
    options.property = round % 3 == 0 ? Property::kSerializability : Property::kRobustness;
    std::vector<EventRange> all;
    for (ThreadId thread = 0; thread < made.threads; ++thread) {
      all.push_back({thread, 0, static_cast<uint32_t>(trace.events.size()) - 1});
    }
    const ViolatedSlice slice(trace, all, {}, options);
    const Set stores = slice.late_stores();
    if (!slice.can_ask() || stores.empty() || stores.size() > 6) {
      continue;
    }
    const auto after = [&](const std::vector<bool>& chosen) {
      Set places;
      for (size_t i = 0; i < stores.size(); ++i) {
        if (chosen[i]) {
          places.push_back(stores[i]);
        }
      }
      return places;
    };
    const FenceQuestion exact = [&](const std::vector<bool>& chosen) {
      const Left left = slice.with_fences_after(after(chosen), FenceTime::kOpen);
      REQUIRE(left != Left::kUnknown);
      return left == Left::kNothing || left == Left::kNoExecution ? Answer::kYes : Answer::kNo;
    };
    const FenceQuestion naive = [&](const std::vector<bool>& chosen) {
      const auto found = analyse(fenced(trace, after(chosen)), options);
      REQUIRE(found);
      return found->verdict() == Verdict::kClean ? Answer::kYes : Answer::kNo;
    };
    FenceBounds bounds;
    bounds.max_sets = 100;
    const FenceSets found =
        find_fence_sets(std::vector<uint64_t>(stores.size(), 1), {exact}, bounds);
    INFO("round " << round << " " << testing::show(trace));
    const std::set<Set> expected = naive_sets(stores.size(), {naive});
    ++asked;
    CHECK(std::set<Set>(found.sets.begin(), found.sets.end()) == expected);
    helped += found.sets.empty() ? 0 : 1;
    pairs += !found.sets.empty() && found.sets.back().size() > 1 ? 1 : 0;
  }
  CHECK(asked == 1'000);
  CHECK(helped > 200);
  CHECK(pairs > 20);
}

}  // namespace
}  // namespace tsomon::explain
