// The edges that are left out follow from others, however many threads there are.
#include "tso/order/event_graph.h"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tests/tso/search.h"
#include "tso/check/cycle.h"
#include "tso/model/location_table.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(60, 600);

// What each event reaches.
std::vector<std::vector<bool>> closure(size_t nodes, const std::vector<Edge>& edges) {
  const Adjacency successors(nodes, edges);
  std::vector<std::vector<bool>> all;
  for (uint32_t from = 0; from < nodes; ++from) {
    all.push_back(reached_by_search(successors, from));
  }
  return all;
}

}  // namespace

TEST_CASE("the event graph orders what is ordered, of few threads and of many") {
  constexpr uint64_t kSeed = 231126;
  std::mt19937_64 random(kSeed);
  uint64_t edges = 0;
  uint64_t pairs = 0;
  for (int round = 0; round < kRounds; ++round) {
    RandomTraceOptions made;
    made.threads = random() % 4 == 0 ? 3 : 17 + static_cast<uint32_t>(random() % 20);
    made.locations = 1 + static_cast<uint32_t>(random() % 3);
    made.steps = 40 + static_cast<uint32_t>(random() % 120);
    made.units = 10;
    made.locked = static_cast<uint32_t>(random() % 3) * 15;
    made.fences = static_cast<uint32_t>(random() % 3) * 10;
    made.locks = random() % 3 == 0 ? 20 : 0;
    made.store_buffer = random() % 3 == 0 ? 2 : 0;
    made.mixed_sizes = random() % 3 == 0;
    made.intervals = random() % 3 == 0;
    const Trace trace = random_trace(random, made).trace;
    RelationOptions options;
    options.store_buffer = made.store_buffer;
    options.semantics = random() % 2 == 0 ? Semantics::kPaper : Semantics::kExact;
    options.model = random() % 4 == 0 ? MemoryModel::kSc : MemoryModel::kTso;
    const LocationTable locations(trace);
    const Relation relation(trace, locations, options);
    const EventGraph graph = build_event_graph(relation, AccessIndex(relation));
    INFO("seed " << kSeed << " round " << round << "\n" << show(trace));
    REQUIRE(graph.complete);
    std::vector<Edge> ordered;
    const auto n = static_cast<uint32_t>(trace.events.size());
    for (uint32_t e = 0; e < n; ++e) {
      for (uint32_t f = 0; f < n; ++f) {
        if (e != f && is(trace.events[e], kinds::kNodes) && is(trace.events[f], kinds::kNodes) &&
            relation.between(e, f) == Order::kBefore) {
          ordered.push_back({e, f});
        }
      }
    }
    REQUIRE((closure(n, graph.directed) == closure(n, ordered)));
    edges += made.threads > 16 ? graph.directed.size() : 0;
    pairs += made.threads > 16 ? ordered.size() : 0;
  }
  MESSAGE(edges << " edges for " << pairs << " ordered pairs of many threads");
  CHECK(edges < pairs / 2);
}

TEST_CASE("an eighth of the events says how many pairs are open") {
  std::mt19937_64 random(261126);
  for (int round = 0; round < kRounds / 10; ++round) {
    RandomTraceOptions made;
    made.threads = 2 + static_cast<uint32_t>(random() % 4);
    made.locations = 5;
    made.steps = 4000;
    made.units = 10;
    made.fences = static_cast<uint32_t>(random() % 4);
    made.intervals = random() % 3 == 0;
    const Trace trace = random_trace(random, made).trace;
    const LocationTable locations(trace);
    const Relation relation(trace, locations, {});
    const AccessIndex accesses(relation);
    const uint64_t open = build_event_graph(relation, accesses).undirected.size();
    const uint64_t estimated = estimated_open_pairs(relation, accesses, UINT64_MAX);
    INFO("round " << round << ": " << open << " open, " << estimated << " estimated");
    CHECK(estimated > open - open / 4);
    CHECK(estimated < open + open / 4);
    CHECK(estimated_open_pairs(relation, accesses, open / 4) >= open / 4);
  }
}

TEST_CASE("a cycle is shortened where an edge that was left out goes further") {
  const Trace trace =
      mini_trace("T0:[W(x) T0:F T1:W(x) T1:F T2:W(x) T2:F T3:[R(x) T3:W(y) T3:F T3:] T0:R(y) T0:]");
  const LocationTable locations(trace);
  const Relation relation(trace, locations, {});
  const auto at = [&](ThreadId thread, EventKind kind) {
    uint32_t found = 0;
    for (uint32_t e = 0; e < trace.events.size(); ++e) {
      if (trace.events[e].thread == thread && trace.events[e].kind() == kind) {
        found = e;
      }
    }
    return found;
  };
  std::vector<uint32_t> class_of;
  for (const Event& event : trace.events) {
    class_of.push_back(event.thread);
  }
  const uint32_t one = at(0, EventKind::kWrite);
  const uint32_t two = at(1, EventKind::kWrite);
  const uint32_t three = at(2, EventKind::kWrite);
  const std::vector<CycleEdge> cycle = {
      {1, two, three, EdgeKind::kConflict},
      {2, three, at(3, EventKind::kRead), EdgeKind::kConflict},
      {3, at(3, EventKind::kWrite), at(0, EventKind::kRead), EdgeKind::kConflict},
      {0, one, two, EdgeKind::kConflict}};
  // Wherever it begins.
  for (size_t begin = 0; begin < cycle.size(); ++begin) {
    std::vector<CycleEdge> turned = cycle;
    std::rotate(turned.begin(), turned.begin() + static_cast<ptrdiff_t>(begin), turned.end());
    const std::vector<CycleEdge> found = shortened(relation, class_of, turned);
    REQUIRE(found.size() <= 3);
    CHECK((begin != 3 || found.size() == 2));
    for (size_t i = 0; i < found.size(); ++i) {
      CHECK(class_of[found[i].from] == found[i].unit);
      CHECK(class_of[found[i].to] == found[(i + 1) % found.size()].unit);
      INFO("from " << found[i].from << " to " << found[i].to << "\n" << show(trace));
      CHECK(relation.between(found[i].from, found[i].to) == Order::kBefore);
    }
  }
}
