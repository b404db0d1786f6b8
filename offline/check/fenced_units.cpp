#include "offline/check/fenced_units.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tso/support/work.h"

namespace tsomon {

FencedUnits::FencedUnits(const UnitTable& units, const std::vector<UnitId>& members)
    : thread_(members.size()), position_(members.size()) {
  std::map<ThreadId, uint32_t> threads;
  for (uint32_t unit = 0; unit < members.size(); ++unit) {
    const auto [at, is_new] =
        threads.try_emplace(units[members[unit]].thread, static_cast<uint32_t>(threads.size()));
    if (is_new) {
      lines_.emplace_back();
    }
    thread_[unit] = at->second;
    lines_[at->second].push_back(unit);
  }
  for (auto& line : lines_) {
    std::sort(line.begin(), line.end(), [&](uint32_t a, uint32_t b) {
      return units[members[a]].first_event < units[members[b]].first_event;
    });
    for (uint32_t at = 0; at < line.size(); ++at) {
      position_[line[at]] = at;
    }
  }
}

bool FencedUnits::order(const std::vector<Edge>& edges) {
  edges_ = edges;
  spend(8 * edges.size() + uint64_t{4} * size() * threads());
  for (const auto& line : lines_) {
    for (size_t at = 1; at < line.size(); ++at) {
      edges_.push_back({line[at - 1], line[at]});
    }
  }
  std::vector<uint32_t> before_first(size(), 0);
  for (Edge& edge : edges_) {
    ++before_first[edge.from];
    std::swap(edge.from, edge.to);
  }
  const Adjacency predecessors(size(), edges_);
  for (Edge& edge : edges_) {
    std::swap(edge.from, edge.to);
  }
  first_after_.assign(static_cast<size_t>(size()) * threads(), kNone);
  std::vector<uint32_t> ready;
  for (uint32_t unit = 0; unit < size(); ++unit) {
    if (before_first[unit] == 0) {
      ready.push_back(unit);
    }
  }
  for (size_t at = 0; at < ready.size(); ++at) {
    const uint32_t unit = ready[at];
    uint32_t* mine = &first_after_[static_cast<size_t>(unit) * threads()];
    mine[thread_[unit]] = position_[unit];
    for (const uint32_t before : predecessors.successors(unit)) {
      uint32_t* theirs = &first_after_[static_cast<size_t>(before) * threads()];
      for (uint32_t t = 0; t < threads(); ++t) {
        theirs[t] = std::min(theirs[t], mine[t]);
      }
      if (--before_first[before] == 0) {
        ready.push_back(before);
      }
    }
  }
  if (ready.size() != size()) {
    return false;
  }
  const Adjacency successors(size(), edges_);
  last_before_.assign(static_cast<size_t>(size()) * threads(), 0);
  for (size_t at = ready.size(); at-- > 0;) {
    uint32_t* mine = &last_before_[static_cast<size_t>(ready[at]) * threads()];
    mine[thread_[ready[at]]] = position_[ready[at]] + 1;
    for (const uint32_t after : successors.successors(ready[at])) {
      uint32_t* theirs = &last_before_[static_cast<size_t>(after) * threads()];
      for (uint32_t t = 0; t < threads(); ++t) {
        theirs[t] = std::max(theirs[t], mine[t]);
      }
    }
  }
  return true;
}

std::vector<uint32_t> FencedUnits::places(const std::vector<uint32_t>& key) const {
  const std::vector<uint32_t> order = smallest_first(Adjacency(size(), edges_), key);
  std::vector<uint32_t> place(size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
  }
  return place;
}

}  // namespace tsomon
