// What comes before what: the clocks against a search of the edges.
#include "tso/reachability.h"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tso/location_table.h"
#include "tso/refinement.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

#if defined(TSOMON_SANITIZED)
constexpr int kRounds = 300;
#else
constexpr int kRounds = 5000;
#endif

std::vector<bool> reached_by_search(const Adjacency& edges, uint32_t from) {
  std::vector<bool> reached(edges.nodes(), false);
  std::vector<uint32_t> open{from};
  while (!open.empty()) {
    const uint32_t e = open.back();
    open.pop_back();
    for (const uint32_t next : edges.successors(e)) {
      if (!reached[next]) {
        reached[next] = true;
        open.push_back(next);
      }
    }
  }
  return reached;
}

}  // namespace

TEST_CASE("reachability is that of the directed edges") {
  constexpr uint64_t kSeed = 90;
  std::mt19937_64 random(kSeed);
  uint64_t forwarded_pairs = 0;
  for (int round = 0; round < kRounds; ++round) {
    RandomTraceOptions made;
    made.threads = 1 + static_cast<uint32_t>(random() % 3);
    made.locations = 1 + static_cast<uint32_t>(random() % 4);
    made.steps = 4 + static_cast<uint32_t>(random() % 40);
    made.locked = static_cast<uint32_t>(random() % 2) * 5;
    made.fences = static_cast<uint32_t>(random() % 2) * 5;
    made.store_buffer = random() % 3 == 0 ? 2 : 0;
    made.mixed_sizes = random() % 2 == 0;
    made.values = random() % 2 == 0;
    made.intervals = random() % 2 == 0;
    const Trace trace = random_trace(random, made).trace;
    RelationOptions options;
    options.store_buffer = made.store_buffer;
    options.semantics = random() % 2 == 0 ? Semantics::kPaper : Semantics::kExact;
    const LocationTable locations(trace);
    const Relation relation(trace, locations, options);
    const AccessIndex accesses(relation);
    const auto refined = refine(relation, accesses, {});
    REQUIRE(refined);
    INFO("seed " << kSeed << " round " << round << "\n" << show(trace));
    std::vector<uint32_t> some;
    for (uint32_t e = 0; e < trace.events.size(); ++e) {
      if (is(trace.events[e], kinds::kNodes) && random() % 3 != 0) {
        some.push_back(e);
      }
    }
    std::shuffle(some.begin(), some.end(), random);
    const PartialOrder among = refined->order.among(some);
    for (uint32_t i = 0; i < some.size(); ++i) {
      for (uint32_t j = 0; j < some.size(); ++j) {
        const bool expected = i == j || refined->order.reaches(some[i], some[j]);
        REQUIRE_MESSAGE(among.reaches(i, j) == expected, "from " << some[i] << " to " << some[j]);
      }
    }
    for (uint32_t e = 0; e < trace.events.size(); ++e) {
      const std::vector<bool> expected = reached_by_search(refined->order.edges(), e);
      for (uint32_t f = 0; f < trace.events.size(); ++f) {
        const bool found = refined->order.reaches(e, f);
        REQUIRE_MESSAGE(found == expected[f], "from " << e << " to " << f);
        forwarded_pairs += found && relation.source(e) != Relation::kNever &&
                                   relation.source(f) != Relation::kNever
                               ? 1
                               : 0;
      }
    }
  }
  CHECK(forwarded_pairs > kRounds / 10);
}
