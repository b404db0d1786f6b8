// What comes before what: the clocks against a search of the edges.
#include "tso/order/reachability.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tests/tso/search.h"
#include "tso/model/location_table.h"
#include "tso/order/refinement.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(300, 5000);

}  // namespace

TEST_CASE("reachability is that of the directed edges") {
  constexpr uint64_t kSeed = 90;
  std::mt19937_64 random(kSeed);
  uint64_t forwarded_pairs = 0;
  int shared = 0;
  for (int round = 0; round < kRounds; ++round) {
    RandomTraceOptions made;
    made.threads_start = random() % 2 == 0;
    made.threads = made.threads_start ? 6 : 1 + static_cast<uint32_t>(random() % 3);
    made.locations = 1 + static_cast<uint32_t>(random() % 4);
    made.steps = 4 + static_cast<uint32_t>(random() % (made.threads_start ? 80 : 40));
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
    ThreadId threads = 0;
    for (ThreadId thread = 0; thread < relation.threads(); ++thread) {
      threads += relation.of_thread(thread).empty() ? 0 : 1;
    }
    shared += refined->order.chains() + 1 < 2 * threads ? 1 : 0;
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
  CHECK(shared > kRounds / 200);
}

TEST_CASE("edges that are inserted are as if they had been there from the beginning") {
  constexpr uint64_t kSeed = 91;
  std::mt19937_64 random(kSeed);
  int refused = 0;
  int from_forwarded = 0;
  for (int round = 0; round < kRounds; ++round) {
    RandomTraceOptions made;
    made.threads = 2 + static_cast<uint32_t>(random() % 3);
    made.locations = 1 + static_cast<uint32_t>(random() % 4);
    made.steps = 4 + static_cast<uint32_t>(random() % 40);
    made.locked = static_cast<uint32_t>(random() % 2) * 5;
    made.fences = static_cast<uint32_t>(random() % 2) * 5;
    made.mixed_sizes = random() % 2 == 0;
    const Trace trace = random_trace(random, made).trace;
    const LocationTable locations(trace);
    const Relation relation(trace, locations, {});
    const AccessIndex accesses(relation);
    auto order = Reachability::build(relation, build_event_graph(relation, accesses).directed);
    REQUIRE(order);
    INFO("seed " << kSeed << " round " << round << "\n" << show(trace));
    const auto n = static_cast<uint32_t>(trace.events.size());
    const auto is_node = [&](uint32_t e) { return is(trace.events[e], kinds::kNodes); };
    const auto forwarded = [&](uint32_t e) { return relation.source(e) != Relation::kNever; };
    for (int i = 0; i < 10; ++i) {
      const auto from = static_cast<uint32_t>(random() % n);
      const auto to = static_cast<uint32_t>(random() % n);
      if (!is_node(from) || !is_node(to) || (forwarded(from) && forwarded(to))) {
        continue;
      }
      const bool fits = from != to && !order->reaches(to, from);
      REQUIRE(order->insert({from, to}) == fits);
      refused += fits ? 0 : 1;
      from_forwarded += fits && forwarded(from) ? 1 : 0;
      REQUIRE(order->reaches(from, to) == fits);
    }
    order->put_together();
    for (uint32_t e = 0; e < n; ++e) {
      const std::vector<bool> expected = reached_by_search(order->edges(), e);
      for (uint32_t f = 0; f < n; ++f) {
        REQUIRE_MESSAGE(order->reaches(e, f) == expected[f], "from " << e << " to " << f);
      }
    }
  }
  CHECK(refused > kRounds);
  CHECK(from_forwarded > kRounds / 10);
}

TEST_CASE("threads that run one after the other share chains") {
  const auto chains = [](const std::string& text) {
    const Trace trace = mini_trace(text);
    const LocationTable locations(trace);
    const Relation relation(trace, locations, {});
    const AccessIndex accesses(relation);
    const auto refined = refine(relation, accesses, {});
    REQUIRE(refined);
    for (uint32_t e = 0; e < trace.events.size(); ++e) {
      const std::vector<bool> expected = reached_by_search(refined->order.edges(), e);
      for (uint32_t f = 0; f < trace.events.size(); ++f) {
        INFO(text << ": from " << e << " to " << f);
        REQUIRE(refined->order.reaches(e, f) == expected[f]);
      }
    }
    return refined->order.chains();
  };
  std::string text;
  for (int i = 1; i <= 50; ++i) {
    text += fmt::format(
        "T0:fork(T{0}) T0:fork(T{1}) T{0}:W(x) T{1}:R(x) T{1}:W(y) T{0}:R(y) T0:join(T{1}) "
        "T0:join(T{0}) ",
        2 * i - 1, 2 * i);
  }
  CHECK(chains(text) == 6);
  // Threads without events have none.
  CHECK(chains("T40:W(x) T41:R(x) T41:W(y) T40:R(y)") == 4);
  // A thread that joined others leaves their chains to the one that joins it.
  CHECK(chains("T0:fork(T1) T1:fork(T2) T2:W(x) T2:R(y) T1:join(T2) T0:join(T1) T0:fork(T3) "
               "T0:fork(T4) T3:W(x) T4:R(x) T4:W(y) T3:R(y)") == 6);
  // What did not end before, was joined twice, or is joined by one and replaced by another.
  CHECK(chains("T0:fork(T1) T1:W(x) T0:join(T1) T0:fork(T2) T2:W(x) T1:W(y) T2:R(y)") == 6);
  CHECK(chains("T0:fork(T1) T1:W(x) T0:join(T1) T0:join(T1) T0:fork(T2) T0:fork(T3) T2:W(x) "
               "T3:W(y) T2:R(y) T3:R(x)") == 6);
  CHECK(chains("T0:fork(T1) T0:fork(T2) T1:W(x) T0:join(T1) T2:fork(T3) T3:W(x) T3:R(z) T2:W(y)") ==
        8);
}
