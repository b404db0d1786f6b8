#include "tso/check/class_graph.h"

#include <algorithm>
#include <utility>

#include "tso/support/work.h"

namespace tsomon {
namespace {

// Calls function(from, to, undirected) for all edges between events; `successive`: also from each
// event of a thread to its next one.
template <typename Function>
void for_each_edge(const Trace& trace, const RefinedGraph& graph, bool successive,
                   const std::vector<uint32_t>& class_of, const Function& function) {
  for (const Edge& edge : graph.undirected) {
    spend(4);
    function(edge.from, edge.to, true);
  }
  const auto n = static_cast<uint32_t>(trace.events.size());
  for (uint32_t e = 0; e < n; ++e) {
    spend(4 + graph.order.edges().successors(e).size());
    for (const uint32_t next : graph.order.edges().successors(e)) {
      function(e, next, false);
    }
  }
  if (!successive) {
    return;
  }
  std::vector<uint32_t> last;  // by thread
  for (uint32_t e = 0; e < n; ++e) {
    if (class_of[e] == ClassGraph::kNone) {
      continue;
    }
    last.resize(std::max<size_t>(last.size(), trace.events[e].thread + 1), ClassGraph::kNone);
    uint32_t& before = last[trace.events[e].thread];
    if (before != ClassGraph::kNone) {
      function(before, e, false);
    }
    before = e;
  }
}

}  // namespace

ClassGraph::ClassGraph(const Trace& trace, const UnitTable& units, const RefinedGraph& graph,
                       Property property)
    : class_of_(trace.events.size(), kNone) {
  const bool by_event = property == Property::kRobustness;
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    if (is(trace.events[e], kinds::kNodes)) {
      class_of_[e] = by_event ? e : units.of_event(e);
    }
  }
  classes_ = by_event ? static_cast<uint32_t>(trace.events.size()) : units.size();

  // By class: the furthest one that a cycle through it or an earlier one may reach.
  std::vector<uint32_t> reach(classes_, 0);
  const auto each = [&](const auto& function) {
    for_each_edge(trace, graph, by_event, class_of_, function);
  };
  each([&](uint32_t from, uint32_t to, bool undirected) {
    const auto [least, greatest] = std::minmax(class_of_[from], class_of_[to]);
    if (undirected || class_of_[from] > class_of_[to]) {
      reach[least] = std::max(reach[least], greatest);
    }
  });
  // Slices that share more than nothing are one: the class where the own slice begins.
  std::vector<uint32_t>& slice = reach;
  uint32_t end = 0;
  uint32_t begin = kNone;
  for (uint32_t node = 0; node < classes_; ++node) {
    const uint32_t furthest = std::max(reach[node], node);
    if (begin == kNone || node > end) {
      begin = node;
      end = furthest;
    }
    end = std::max(end, furthest);
    slice[node] = begin;
  }
  each([&](uint32_t from, uint32_t to, bool undirected) {
    if (class_of_[from] != class_of_[to] && slice[class_of_[from]] == slice[class_of_[to]]) {
      events_behind_.push_back({from, to});
      edges_.push_back({class_of_[from], class_of_[to], undirected});
    }
  });
}

}  // namespace tsomon
