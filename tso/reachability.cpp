#include "tso/reachability.h"

#include <algorithm>

namespace tsomon {
namespace {

constexpr uint32_t kNoChain = 0xFFFFFFFFU;

}  // namespace

Adjacency::Adjacency(size_t nodes, const std::vector<Edge>& edges)
    : first_(nodes + 1, 0), to_(edges.size()) {
  for (const Edge& edge : edges) {
    ++first_[edge.from + 1];
  }
  for (size_t i = 0; i < nodes; ++i) {
    first_[i + 1] += first_[i];
  }
  std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
  for (const Edge& edge : edges) {
    to_[next[edge.from]++] = edge.to;
  }
}

std::optional<Reachability> Reachability::build(const Relation& relation,
                                                const std::vector<Edge>& directed) {
  const auto& events = relation.trace().events;
  const auto n = static_cast<uint32_t>(events.size());
  Reachability result;
  result.edges_ = Adjacency(n, directed);
  result.chain_of_.assign(n, kNoChain);
  result.index_.assign(n, 0);

  ThreadId threads = 0;
  for (const Event& event : events) {
    threads = std::max(threads, event.thread + 1);
  }
  result.chains_ = threads * 2;
  std::vector<uint32_t> lengths(result.chains_, 0);
  const bool sc = relation.options().model == MemoryModel::kSc;
  for (uint32_t e = 0; e < n; ++e) {
    if (!is(events[e], kinds::kNodes) || relation.source(e) != Relation::kNever) {
      continue;
    }
    const bool store = sc || relation.drains(e) || relation.is_store(e);
    const uint32_t chain = events[e].thread * 2 + (store ? 0 : 1);
    result.chain_of_[e] = chain;
    result.index_[e] = ++lengths[chain];
  }

  std::vector<uint32_t> missing(n, 0);
  for (const Edge& edge : directed) {
    ++missing[edge.to];
  }
  std::vector<uint32_t> ready;
  for (uint32_t e = 0; e < n; ++e) {
    if (missing[e] == 0) {
      ready.push_back(e);
    }
  }
  const size_t width = result.chains_;
  result.clocks_.assign(static_cast<size_t>(n) * width, 0);
  uint32_t done = 0;
  while (!ready.empty()) {
    const uint32_t e = ready.back();
    ready.pop_back();
    ++done;
    uint32_t* mine = result.clocks_.data() + e * width;
    if (result.chain_of_[e] != kNoChain) {
      uint32_t& own = mine[result.chain_of_[e]];
      own = std::max(own, result.index_[e]);
    }
    for (const uint32_t next : result.edges_.successors(e)) {
      uint32_t* theirs = result.clocks_.data() + next * width;
      for (size_t chain = 0; chain < width; ++chain) {
        theirs[chain] = std::max(theirs[chain], mine[chain]);
      }
      if (--missing[next] == 0) {
        ready.push_back(next);
      }
    }
  }
  if (done != n) {
    return std::nullopt;
  }
  return result;
}

bool Reachability::reaches(uint32_t from, uint32_t to) const {
  if (from == to) {
    return false;
  }
  if (chain_of_[from] != kNoChain) {
    return clocks_[to * static_cast<size_t>(chains_) + chain_of_[from]] >= index_[from];
  }
  // A forwarded load is on no chain: its successors answer. Forwarded loads among them form a run
  // of loads of one location, so the walk is a line.
  std::vector<uint32_t> open{from};
  std::vector<uint32_t> seen{from};
  while (!open.empty()) {
    const uint32_t e = open.back();
    open.pop_back();
    for (const uint32_t next : edges_.successors(e)) {
      if (next == to) {
        return true;
      }
      if (chain_of_[next] != kNoChain) {
        if (reaches(next, to)) {
          return true;
        }
      } else if (std::find(seen.begin(), seen.end(), next) == seen.end()) {
        seen.push_back(next);
        open.push_back(next);
      }
    }
  }
  return false;
}

}  // namespace tsomon
