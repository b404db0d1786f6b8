// Strongly connected components of a mixed graph: directed edges one way, undirected edges both ways.
//
// Source      Theory section 3; the split is this project's own.
// Purpose     Every violating cycle of a trace lies inside one component of its mixed conflict graph, so
//             the components can be searched one by one. An undirected edge that is a bridge of its component
//             lies on no cycle, which makes a component that is only a tree of undirected edges clean.
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

struct MixedComponents {
  static constexpr uint32_t kNone = 0xFFFFFFFFU;
  uint32_t count = 0;
  std::vector<uint32_t> component_of_node;  // kNone: on no cycle
  std::vector<bool> edge_on_cycle;          // whether an edge can lie on a cycle
};

// Components are numbered from 0. Self-loops are ignored.
MixedComponents split_into_components(uint32_t nodes, const std::vector<MixedEdge>& edges);

// For every node the roots that reach it, itself included: bit i % 64 of word
// node * ((roots + 63) / 64) + i / 64 for roots[i]. O((nodes + edges) * roots / 64).
std::vector<uint64_t> reached_from(uint32_t nodes, const std::vector<MixedEdge>& edges,
                                   const std::vector<uint32_t>& roots);

}  // namespace tsomon
