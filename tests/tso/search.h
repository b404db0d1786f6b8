// Reachability by walking along the edges: the brute-force twin.
#pragma once

#include <cstdint>
#include <vector>

#include "tso/order/reachability.h"

namespace tsomon::testing {

inline std::vector<bool> reached_by_search(const Adjacency& edges, uint32_t from) {
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

}  // namespace tsomon::testing
