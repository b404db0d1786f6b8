// Which nodes reach which, against a search from every root.
#include "tso/order/mixed_graph.h"

#include <random>

#include <doctest/doctest.h>

namespace tsomon {
namespace {

std::vector<bool> search(uint32_t nodes, const std::vector<MixedEdge>& edges, uint32_t root) {
  std::vector<bool> reached(nodes, false);
  reached[root] = true;
  for (bool grew = true; grew;) {
    grew = false;
    for (const MixedEdge& edge : edges) {
      const auto step = [&](uint32_t from, uint32_t to) {
        if (reached[from] && !reached[to]) {
          reached[to] = true;
          grew = true;
        }
      };
      step(edge.from, edge.to);
      if (edge.undirected) {
        step(edge.to, edge.from);
      }
    }
  }
  return reached;
}

TEST_CASE("the roots that reach a node") {
  constexpr uint64_t kSeed = 5;
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 1000; ++round) {
    CAPTURE(kSeed);
    CAPTURE(round);
    const auto nodes = static_cast<uint32_t>(1 + random() % 90);
    const auto any = [&] { return static_cast<uint32_t>(random() % nodes); };
    std::vector<MixedEdge> edges;
    for (uint64_t i = random() % (2 * nodes); i > 0; --i) {
      edges.push_back({any(), any(), random() % 4 == 0});
    }
    std::vector<uint32_t> roots;
    for (uint32_t node = 0; node < nodes; ++node) {
      if (random() % (round % 2 == 0 ? 8 : 1) == 0) {
        roots.push_back(node);
      }
    }
    const auto sets = reached_from(nodes, edges, roots);
    const size_t words = (roots.size() + 63) / 64;
    REQUIRE(sets.size() == nodes * words);
    bool equal = true;
    for (size_t i = 0; i < roots.size(); ++i) {
      const std::vector<bool> reached = search(nodes, edges, roots[i]);
      for (uint32_t node = 0; node < nodes; ++node) {
        equal &= reached[node] == ((sets[node * words + i / 64] >> (i % 64) & 1) != 0);
      }
    }
    CHECK(equal);
  }
}

}  // namespace
}  // namespace tsomon
