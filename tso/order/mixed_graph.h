// Strongly connected parts of a mixed graph: directed edges one way, undirected edges both ways.
//
// Source      Theory section 3; the split is this project's own.
// Purpose     Every violating cycle of a trace lies inside one part of its mixed conflict graph, so
//             the parts can be searched one by one. An undirected edge that is a bridge of its part
//             lies on no cycle, which makes a part that is only a tree of undirected edges clean.
// Complexity  O(nodes + edges) for the first round, later ones in what may still lie on a cycle; as
//             many rounds as bridges keep appearing (few).
#pragma once

#include <cstdint>
#include <vector>

namespace tsomon {

struct MixedEdge {
  uint32_t from = 0;
  uint32_t to = 0;
  bool undirected = false;
};

struct MixedParts {
  static constexpr uint32_t kNone = 0xFFFFFFFFU;
  uint32_t count = 0;
  std::vector<uint32_t> part_of_node;  // kNone: on no cycle
  std::vector<bool> edge_on_cycle;     // whether an edge can lie on a cycle
};

// Parts are numbered from 0. Self-loops are ignored.
MixedParts split_into_parts(uint32_t nodes, const std::vector<MixedEdge>& edges);

// For every node the roots that reach it, itself included: bit i % 64 of word
// node * ((roots + 63) / 64) + i / 64 for roots[i]. O((nodes + edges) * roots / 64).
std::vector<uint64_t> reached_from(uint32_t nodes, const std::vector<MixedEdge>& edges,
                                   const std::vector<uint32_t>& roots);

}  // namespace tsomon
