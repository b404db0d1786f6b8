#include "tso/order/mixed_graph.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tso/support/work.h"

namespace tsomon {
namespace {

struct Arc {
  uint32_t to;
  uint32_t edge;
};

// Outgoing arcs, as compressed rows.
class Arcs {
 public:
  Arcs(uint32_t nodes, const std::vector<MixedEdge>& edges, bool both_ways) : first_(nodes + 1, 0) {
    const auto each = [&](auto&& visit) {
      for (uint32_t i = 0; i < edges.size(); ++i) {
        spend(2);
        visit(edges[i].from, edges[i].to, i);
        if (both_ways || edges[i].undirected) {
          visit(edges[i].to, edges[i].from, i);
        }
      }
    };
    each([&](uint32_t from, uint32_t, uint32_t) { ++first_[from + 1]; });
    for (uint32_t i = 0; i < nodes; ++i) {
      first_[i + 1] += first_[i];
    }
    arcs_.resize(first_[nodes]);
    std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
    each([&](uint32_t from, uint32_t to, uint32_t edge) { arcs_[next[from]++] = {to, edge}; });
  }
  uint32_t begin(uint32_t node) const { return first_[node]; }
  uint32_t end(uint32_t node) const { return first_[node + 1]; }
  const Arc& operator[](uint32_t at) const { return arcs_[at]; }

 private:
  std::vector<uint32_t> first_;
  std::vector<Arc> arcs_;
};

struct Frame {
  uint32_t node;
  uint32_t at;     // next arc
  uint32_t entry;  // edge it was reached by
};

constexpr uint32_t kUnseen = 0xFFFFFFFFU;

// Tarjan (1972), without recursion. An arc between two components leads to the smaller number.
std::vector<uint32_t> components(uint32_t nodes, const Arcs& arcs) {
  std::vector<uint32_t> component(nodes, kUnseen);
  std::vector<uint32_t> index(nodes, kUnseen);
  std::vector<uint32_t> low(nodes, 0);
  std::vector<uint32_t> stack;
  std::vector<Frame> frames;
  stack.reserve(nodes);
  frames.reserve(nodes);
  uint32_t next_index = 0;
  uint32_t next_component = 0;
  for (uint32_t root = 0; root < nodes; ++root) {
    if (index[root] != kUnseen) {
      continue;
    }
    frames.push_back({root, arcs.begin(root), kUnseen});
    index[root] = low[root] = next_index++;
    stack.push_back(root);
    while (!frames.empty()) {
      spend(2);
      Frame& frame = frames.back();
      const uint32_t node = frame.node;
      if (frame.at < arcs.end(node)) {
        const uint32_t to = arcs[frame.at++].to;
        if (index[to] == kUnseen) {
          index[to] = low[to] = next_index++;
          stack.push_back(to);
          frames.push_back({to, arcs.begin(to), kUnseen});
        } else if (component[to] == kUnseen) {
          low[node] = std::min(low[node], index[to]);
        }
        continue;
      }
      if (low[node] == index[node]) {
        uint32_t member = kUnseen;
        do {
          member = stack.back();
          stack.pop_back();
          component[member] = next_component;
        } while (member != node);
        ++next_component;
      }
      frames.pop_back();
      if (!frames.empty()) {
        low[frames.back().node] = std::min(low[frames.back().node], low[node]);
      }
    }
  }
  return component;
}

// Undirected edges that are bridges of the graph without directions. `arcs` goes both ways.
std::vector<uint32_t> undirected_bridges(uint32_t nodes, const Arcs& arcs,
                                         const std::vector<MixedEdge>& edges) {
  std::vector<uint32_t> bridges;
  std::vector<uint32_t> index(nodes, kUnseen);
  std::vector<uint32_t> low(nodes, 0);
  std::vector<Frame> frames;
  uint32_t next_index = 0;
  for (uint32_t root = 0; root < nodes; ++root) {
    if (index[root] != kUnseen || arcs.begin(root) == arcs.end(root)) {
      continue;
    }
    frames.push_back({root, arcs.begin(root), kUnseen});
    index[root] = low[root] = next_index++;
    while (!frames.empty()) {
      spend(2);
      Frame& frame = frames.back();
      const uint32_t node = frame.node;
      if (frame.at < arcs.end(node)) {
        const Arc arc = arcs[frame.at++];
        if (arc.edge == frame.entry) {
          continue;
        }
        if (index[arc.to] == kUnseen) {
          index[arc.to] = low[arc.to] = next_index++;
          frames.push_back({arc.to, arcs.begin(arc.to), arc.edge});
        } else {
          low[node] = std::min(low[node], index[arc.to]);
        }
        continue;
      }
      const uint32_t entry = frame.entry;
      frames.pop_back();
      if (!frames.empty()) {
        const uint32_t parent = frames.back().node;
        low[parent] = std::min(low[parent], low[node]);
        if (low[node] > index[parent] && edges[entry].undirected) {
          bridges.push_back(entry);
        }
      }
    }
  }
  return bridges;
}

// The edges that may still lie on a cycle, and the nodes that have some, numbered anew.
struct LiveGraph {
  uint32_t nodes = 0;
  std::vector<MixedEdge> edges;
  std::vector<uint32_t> original;  // of each edge

  // Of a graph those edges for which wanted(i).
  template <typename Wanted>
  LiveGraph(uint32_t all_nodes, const std::vector<MixedEdge>& all, const Wanted& wanted) {
    std::vector<uint32_t> number(all_nodes, kUnseen);
    edges.reserve(all.size());
    original.reserve(all.size());
    const auto renumber = [&](uint32_t node) {
      if (number[node] == kUnseen) {
        number[node] = nodes++;
      }
      return number[node];
    };
    for (uint32_t i = 0; i < all.size(); ++i) {
      spend(2);
      if (wanted(i)) {
        const uint32_t from = renumber(all[i].from);
        edges.push_back({from, renumber(all[i].to), all[i].undirected});
        original.push_back(i);
      }
    }
  }

  template <typename Wanted>
  void keep(const Wanted& wanted) {
    LiveGraph kept(nodes, edges, wanted);
    for (uint32_t& edge : kept.original) {
      edge = original[edge];
    }
    *this = std::move(kept);
  }
};

}  // namespace

MixedComponents split_into_components(uint32_t nodes, const std::vector<MixedEdge>& edges) {
  MixedComponents result;
  result.edge_on_cycle.assign(edges.size(), false);
  LiveGraph live(nodes, edges, [&](uint32_t i) { return edges[i].from != edges[i].to; });
  // What orientations can influence.
  const std::vector<uint32_t> outer = components(live.nodes, Arcs(live.nodes, live.edges, false));
  std::vector<uint32_t>& component_of = result.component_of_node;
  component_of.assign(nodes,
                      MixedComponents::kNone);  // at first the component of a node with edges
  for (uint32_t i = 0; i < live.edges.size(); ++i) {
    spend(2);
    component_of[edges[live.original[i]].from] = outer[live.edges[i].from];
    component_of[edges[live.original[i]].to] = outer[live.edges[i].to];
  }
  std::vector<uint32_t> number(live.nodes, MixedComponents::kNone);
  live.keep([&](uint32_t i) { return outer[live.edges[i].from] == outer[live.edges[i].to]; });
  while (std::any_of(live.edges.begin(), live.edges.end(),
                     [](const MixedEdge& edge) { return edge.undirected; })) {
    const auto bridges =
        undirected_bridges(live.nodes, Arcs(live.nodes, live.edges, true), live.edges);
    if (bridges.empty()) {
      break;
    }
    std::vector<bool> is_bridge(live.edges.size(), false);
    for (const uint32_t edge : bridges) {
      is_bridge[edge] = true;
    }
    live.keep([&](uint32_t i) { return !is_bridge[i]; });
    const auto component = components(live.nodes, Arcs(live.nodes, live.edges, false));
    live.keep(
        [&](uint32_t i) { return component[live.edges[i].from] == component[live.edges[i].to]; });
  }
  // A component is one of the first round in which a cycle is left: orientations inside it
  // exclude each other, also along the edges that lie on no cycle themselves.
  for (const uint32_t i : live.original) {
    spend(2);
    result.edge_on_cycle[i] = true;
    uint32_t& component = number[component_of[edges[i].from]];
    if (component == MixedComponents::kNone) {
      component = result.count++;
    }
  }
  for (uint32_t& of_node : component_of) {
    of_node = of_node == MixedComponents::kNone ? of_node : number[of_node];
  }
  return result;
}

std::vector<uint64_t> reached_from(uint32_t nodes, const std::vector<MixedEdge>& edges,
                                   const std::vector<uint32_t>& roots) {
  const Arcs arcs(nodes, edges, false);
  const std::vector<uint32_t> component = components(nodes, arcs);
  const size_t words = (roots.size() + 63) / 64;
  if (words == 0) {
    return {};
  }
  std::vector<uint64_t> of_component(nodes * words, 0);
  for (size_t i = 0; i < roots.size(); ++i) {
    of_component[component[roots[i]] * words + i / 64] |= uint64_t{1} << (i % 64);
  }
  // Components with edges to others have larger numbers than those: the largest first.
  std::vector<uint32_t> begin(size_t{nodes} + 1, 0);
  for (const uint32_t of : component) {
    ++begin[nodes - of];
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<uint32_t> order(nodes);
  for (uint32_t node = 0; node < nodes; ++node) {
    order[begin[nodes - 1 - component[node]]++] = node;
  }
  for (const uint32_t node : order) {
    spend(1 + words * (arcs.end(node) - arcs.begin(node)));
    const uint64_t* const mine = &of_component[component[node] * words];
    for (uint32_t at = arcs.begin(node); at < arcs.end(node); ++at) {
      uint64_t* const theirs = &of_component[component[arcs[at].to] * words];
      for (size_t word = 0; word < words; ++word) {
        theirs[word] |= mine[word];
      }
    }
  }
  std::vector<uint64_t> sets(nodes * words);
  for (uint32_t node = 0; node < nodes; ++node) {
    std::copy_n(&of_component[component[node] * words], words, &sets[node * words]);
  }
  return sets;
}

}  // namespace tsomon
