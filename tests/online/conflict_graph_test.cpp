// The conflict graph against the same graph as a matrix: cycles, candidates and what a sweep drops.
#include "online/graph/conflict_graph.h"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "tests/rounds.h"

using namespace tsomon;

namespace {

const int kRounds = rounds(400, 8'000);
constexpr uint64_t kSeed = 20261125;
using Node = ConflictGraph::Node;
using Matrix = std::vector<std::vector<bool>>;

Matrix closed(Matrix edges) {
  const size_t n = edges.size();
  for (size_t k = 0; k < n; ++k) {
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; edges[i][k] && j < n; ++j) {
        edges[i][j] = edges[i][j] || edges[k][j];
      }
    }
  }
  return edges;
}

// Which units each one shares cycles with, those alone left out.
std::set<std::set<uint64_t>> parts_of(const Matrix& reach, const std::vector<bool>& among) {
  std::set<std::set<uint64_t>> components;
  for (size_t i = 0; i < reach.size(); ++i) {
    std::set<uint64_t> component{i};
    for (size_t j = 0; among[i] && j < reach.size(); ++j) {
      if (among[j] && reach[i][j] && reach[j][i]) {
        component.insert(j);
      }
    }
    if (component.size() > 1) {
      components.insert(component);
    }
  }
  return components;
}

}  // namespace

TEST_CASE("conflict graph: an edge closes a cycle exactly where its end reaches its beginning") {
  std::mt19937_64 random(kSeed);
  uint64_t cycles = 0;
  for (int round = 0; round < kRounds; ++round) {
    CAPTURE(round);
    uint64_t reported = 0;
    DetectorCallbacks callbacks;
    callbacks.on_cycle = [&](const DetectedCycle& cycle) {
      ++reported;
      REQUIRE(cycle.steps.size() >= 2);
      for (size_t i = 0; i < cycle.steps.size(); ++i) {
        // Each edge leads from its own unit to the next one.
        const DetectedStep& next = cycle.steps[(i + 1) % cycle.steps.size()];
        CHECK(cycle.steps[i].from.index == cycle.steps[i].unit.first);
        CHECK(cycle.steps[i].to.index == next.unit.first);
      }
    };
    ConflictGraph graph(&callbacks);
    const auto n = static_cast<uint32_t>(2 + random() % 10);
    Matrix edges(n, std::vector<bool>(n, false));
    for (uint32_t i = 0; i < n; ++i) {
      REQUIRE(graph.add_unit({i, 0, i, i, true, 0}) == i);
    }
    uint64_t closing = 0;
    for (uint64_t step = 0; step < 3 * n; ++step) {
      const auto from = static_cast<Node>(random() % n);
      const auto to = static_cast<Node>(random() % n);
      if (from == to) {
        continue;
      }
      const Matrix reach = closed(edges);
      const bool joined = reach[from][to] && reach[to][from];
      closing += !joined && reach[to][from] ? 1 : 0;
      edges[from][to] = true;
      graph.add_directed(
          from, to, EdgeKind::kConflict, [&](DetectedAccess& source, DetectedAccess& target) {
            // Places of their own, or cycles would be told apart by nothing.
            source = {from, 8, 8, static_cast<uint32_t>(step), from, EventKind::kWrite};
            target = {to, 8, 8, static_cast<uint32_t>(step + 1000), to, EventKind::kRead};
          });
      graph.check_invariants();
      REQUIRE(graph.statistics().cycles == closing);
    }
    CHECK(reported <= closing);
    CHECK((reported > 0) == (closing > 0));
    cycles += closing;
  }
  CHECK(cycles > static_cast<uint64_t>(kRounds));
}

TEST_CASE("conflict graph: a sweep drops what no open unit reaches, and reports its candidates") {
  std::mt19937_64 random(kSeed + 1);
  uint64_t dropped = 0;
  uint64_t candidates = 0;
  for (int round = 0; round < kRounds; ++round) {
    CAPTURE(round);
    const DetectorCallbacks callbacks;
    ConflictGraph graph(&callbacks);
    const auto n = static_cast<uint32_t>(2 + random() % 10);
    Matrix edges(n, std::vector<bool>(n, false));
    for (uint32_t i = 0; i < n; ++i) {
      graph.add_unit({i, 0, 2 * uint64_t{i}, 2 * uint64_t{i} + 1, true, 0});
    }
    for (uint64_t step = 0; step < 2 * n; ++step) {
      const auto from = static_cast<Node>(random() % n);
      const auto to = static_cast<Node>(random() % n);
      if (from == to) {
        continue;
      }
      edges[from][to] = true;
      if (random() % 2 == 0) {
        edges[to][from] = true;
        graph.add_undirected(from, to, true);
      } else {
        graph.add_directed(from, to, EdgeKind::kConflict,
                           [&](DetectedAccess& source, DetectedAccess& target) {
                             source.index = 2 * uint64_t{from};
                             target.index = 2 * uint64_t{to};
                           });
      }
    }
    std::vector<bool> open(n);
    for (uint32_t i = 0; i < n; ++i) {
      open[i] = random() % 4 == 0;
    }
    const Matrix reach = closed(edges);
    std::vector<bool> gone(n, true);
    for (uint32_t i = 0; i < n; ++i) {
      for (uint32_t j = 0; open[i] && j < n; ++j) {
        gone[j] = gone[j] && i != j && !reach[i][j];
      }
    }
    std::set<std::set<uint64_t>> found;
    const auto on_candidate = [&](ConflictGraph::Candidate&& candidate) {
      std::set<uint64_t> units;
      for (const DetectedUnit& unit : candidate.units) {
        units.insert(unit.first / 2);
      }
      REQUIRE(found.insert(units).second);
    };
    graph.sweep([&](Node node) { return !open[node]; }, on_candidate, {1000, 1000, 0}, {});
    REQUIRE(found == parts_of(reach, gone));
    for (Node node = 0; node < n; ++node) {
      REQUIRE(graph.moved_to(node) == (gone[node] ? ConflictGraph::kNone : node));
      dropped += gone[node] ? 1 : 0;
    }
    REQUIRE(graph.size() == static_cast<size_t>(std::count(gone.begin(), gone.end(), false)));
    candidates += found.size();
    graph.check_invariants();
  }
  CHECK(dropped > static_cast<uint64_t>(kRounds));
  CHECK(candidates > static_cast<uint64_t>(kRounds) / 8);
}
