#include "online/order/topological_order.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "tso/support/result.h"
#include "tso/support/work.h"

namespace tsomon {

namespace {

// What one side of a search has reached and not looked into yet; pop() gives the node whose label
// compares as the last.
template <typename Compare>
class Frontier {
 public:
  using Placed = OrderList::Placed;

  explicit Frontier(std::vector<Placed>& heap) : heap_(heap) { heap_.clear(); }
  bool empty() const { return heap_.empty(); }
  const Placed& top() const { return heap_.front(); }
  void push(Placed placed) {
    heap_.push_back(placed);
    std::push_heap(heap_.begin(), heap_.end(), Later{});
  }
  Placed pop() {
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    const Placed placed = heap_.back();
    heap_.pop_back();
    return placed;
  }

 private:
  struct Later {
    bool operator()(const Placed& a, const Placed& b) const { return Compare{}(a.label, b.label); }
  };

  std::vector<Placed>& heap_;
};

}  // namespace

// Room for ids below `bound`.
void TopologicalOrder::grow(NodeId bound) {
  order_.grow(bound);
  out_.grow(bound);
  in_.grow(bound);
  visits_.resize(bound);
  looked_into_.resize(size_t{bound} * 2);
  free_.reserve(bound);
}

TopologicalOrder::NodeId TopologicalOrder::add_node() {
  NodeId node = id_bound_;
  if (!free_.empty()) {
    node = free_.back();
    free_.pop_back();
  } else {
    if (node == visits_.size()) {
      TSOMON_CHECK(node < kMaxNodes, "more than 2^31 nodes at a time");
      grow(node * 2);
    }
    ++id_bound_;
  }
  order_.push_back(node);
  ++nodes_;
  return node;
}

void TopologicalOrder::remove_node(NodeId node) {
  const auto to = out_.items(node);
  for (const NodeId other : to) {
    in_.erase(other, node);
  }
  const auto from = in_.items(node);
  for (const NodeId other : from) {
    out_.erase(other, node);
  }
  edges_ -= to.size() + from.size();
  release(node);
}

// Takes a node without edges at other nodes out of everything.
void TopologicalOrder::release(NodeId node) {
  out_.clear(node);
  in_.clear(node);
  order_.erase(node);
  free_.push_back(node);
  --nodes_;
}

void TopologicalOrder::next_epoch() {
  epoch_ += 2;
  if (epoch_ == 0) {  // old marks would look like new ones
    for (Visit& visit : visits_) {
      visit.mark = 0;
    }
    epoch_ = 2;
  }
}

// Makes `to`, which is not after `from`, come after it. False, and cycle_, if there is a path from
// `to` to `from`.
//
// `ahead` and `back` are the next nodes to look into: of all that `to` reaches the first in the
// order, and of all that reaches `from` the last. After `back` the backward side has nothing left
// to find, so the forward side need not remember what it reaches there, and the other way round.
//
// Once the two have passed each other, or one side is through, all that was looked into moves to
// where they passed: first what leads to `from`, then what `to` leads to, each in its old order.
// Until then `ahead` was before `back`, so the place is after all of the forward side and before
// all of the backward side; what either reaches and was not looked into is on the far side of the
// place.
bool TopologicalOrder::reorder(NodeId from, NodeId to) {
  if (from == to) {
    cycle_.assign(1, to);
    return false;
  }
  next_epoch();
  const uint32_t forward_mark = epoch_;
  const uint32_t backward_mark = epoch_ + 1;
  Visit* const visits = visits_.data();
  visits[to] = {forward_mark, kNone};
  visits[from] = {backward_mark, kNone};
  Frontier<std::greater<>> forward(forward_);
  Frontier<std::less<>> backward(backward_);
  OrderList::Placed ahead = order_.placed(to);
  OrderList::Placed back = order_.placed(from);
  // Looked into: backwards from the middle the backward side, forwards from it the forward side;
  // both come to lie as in the order.
  NodeId* const middle = looked_into_.data() + looked_into_.size() / 2;
  NodeId* begin = middle;
  NodeId* end = middle;
  size_t forward_work = out_.size(to);  // edges looked at when the next node is through
  size_t backward_work = in_.size(from);
  for (;;) {
    if (forward_work <= backward_work) {
      *end++ = ahead.id;
      spend(1 + out_.size(ahead.id));
      for (const NodeId next : out_.items(ahead.id)) {
        const OrderList::Placed placed = order_.placed(next);
        Visit& visit = visits[next];
        if (visit.mark == backward_mark) {
          record_path(ahead.id, next);
          return false;
        }
        const bool within = placed.label < back.label;
        if (within & (visit.mark != forward_mark)) {
          visit = {forward_mark, ahead.id};
          forward.push(placed);
        }
      }
      if (forward.empty() || forward.top().label > back.label) {
        order_.move_after(back.id, {begin, end});
        return true;
      }
      ahead = forward.pop();
      forward_work += out_.size(ahead.id);
    } else {
      *--begin = back.id;
      spend(1 + in_.size(back.id));
      for (const NodeId next : in_.items(back.id)) {
        const OrderList::Placed placed = order_.placed(next);
        Visit& visit = visits[next];
        if (visit.mark == forward_mark) {
          record_path(next, back.id);
          return false;
        }
        const bool within = placed.label > ahead.label;
        if (within & (visit.mark != backward_mark)) {
          visit = {backward_mark, back.id};
          backward.push(placed);
        }
      }
      if (backward.empty() || backward.top().label < ahead.label) {
        order_.move_before(ahead.id, {begin, end});
        return true;
      }
      back = backward.pop();
      backward_work += in_.size(back.id);
    }
  }
}

// The two sides of the search have met at an edge.
void TopologicalOrder::record_path(NodeId forward_end, NodeId backward_end) {
  cycle_.clear();
  for (NodeId node = forward_end; node != kNone; node = visits_[node].parent) {
    cycle_.push_back(node);
  }
  std::reverse(cycle_.begin(), cycle_.end());
  for (NodeId node = backward_end; node != kNone; node = visits_[node].parent) {
    cycle_.push_back(node);
  }
}

// Gives the edges of `other` to `node` and removes `other`.
void TopologicalOrder::absorb(NodeId node, NodeId other) {
  // Appending may move all lists.
  for (uint32_t i = 0; i < out_.size(other); ++i) {
    const NodeId next = out_.items(other)[i];
    if (next == node || in_.contains(next, node)) {
      in_.erase(next, other);
      --edges_;
    } else {
      in_.replace(next, other, node);
      out_.append(node, next);
    }
  }
  for (uint32_t i = 0; i < in_.size(other); ++i) {
    const NodeId previous = in_.items(other)[i];
    if (previous == node || out_.contains(previous, node)) {
      out_.erase(previous, other);
      --edges_;
    } else {
      out_.replace(previous, other, node);
      in_.append(node, previous);
    }
  }
  release(other);
}

bool TopologicalOrder::merge(NodeId node, NodeId other) {
  TSOMON_CHECK(node != other, "a node cannot be merged with itself");
  const bool node_first = order_.before(node, other);
  const NodeId earlier = node_first ? node : other;
  const NodeId later = node_first ? other : node;
  // Whatever comes before one of the two must come before the one node that they become, and
  // whatever comes after one of them after it. When they can change places, there is such a place:
  // where the one that moved comes to lie, right beside the other.
  const bool adjacent = has_edge(earlier, later);
  if (adjacent) {
    out_.erase(earlier, later);
    in_.erase(later, earlier);
    --edges_;
  }
  if (!reorder(later, earlier)) {
    if (adjacent) {
      out_.append(earlier, later);
      in_.append(later, earlier);
      ++edges_;
    }
    return false;
  }
  absorb(node, other);
  return true;
}

TopologicalOrder::NodeId TopologicalOrder::contract(std::span<const NodeId> path) {
  TSOMON_CHECK(!path.empty(), "an empty path cannot be contracted");
  const NodeId to = path.front();
  const NodeId from = path.back();
  absorbed_.clear();
  if (to == from) {
    return to;
  }
  // Everything that `to` reaches up to `from`, and what of that reaches `from`.
  next_epoch();
  const uint32_t reached = epoch_;
  const uint32_t both = epoch_ + 1;
  const uint64_t highest = order_.label(from);
  NodeId* const reachable = looked_into_.data();
  NodeId* reachable_end = reachable;
  *reachable_end++ = to;
  visits_[to].mark = reached;
  for (const NodeId* at = reachable; at != reachable_end; ++at) {
    spend(1 + out_.size(*at));
    for (const NodeId next : out_.items(*at)) {
      if (order_.label(next) <= highest && visits_[next].mark != reached) {
        visits_[next].mark = reached;
        *reachable_end++ = next;
      }
    }
  }
  TSOMON_CHECK(visits_[from].mark == reached, "there is no path between the ends of a path");
  NodeId kept = from;
  const auto degree = [this](NodeId node) { return size_t{out_.size(node)} + in_.size(node); };
  absorbed_.push_back(from);
  visits_[from].mark = both;
  for (size_t at = 0; at < absorbed_.size(); ++at) {
    const NodeId node = absorbed_[at];
    spend(1 + in_.size(node));
    if (degree(node) > degree(kept)) {
      kept = node;
    }
    for (const NodeId previous : in_.items(node)) {
      if (visits_[previous].mark == reached) {
        visits_[previous].mark = both;
        absorbed_.push_back(previous);
      }
    }
  }
  // The one node comes to lie where `from` is, which is after all that leads to any of them; what
  // else `to` reaches goes after it.
  reachable_end = std::remove_if(reachable, reachable_end,
                                 [&](NodeId node) { return visits_[node].mark == both; });
  std::sort(reachable, reachable_end, [this](NodeId a, NodeId b) { return order_.before(a, b); });
  order_.move_after(from, {reachable, reachable_end});
  if (kept != from) {
    order_.move_after(from, {&kept, 1});
  }
  absorbed_.erase(std::find(absorbed_.begin(), absorbed_.end(), kept));
  for (const NodeId node : absorbed_) {
    absorb(kept, node);
  }
  return kept;
}

size_t TopologicalOrder::memory_bytes() const {
  return order_.memory_bytes() + out_.memory_bytes() + in_.memory_bytes() +
         visits_.capacity() * sizeof(visits_[0]) +
         (forward_.capacity() + backward_.capacity()) * sizeof(forward_[0]) +
         (free_.capacity() + looked_into_.capacity() + cycle_.capacity() + absorbed_.capacity()) *
             sizeof(NodeId);
}

std::string TopologicalOrder::check_invariants() const {
  if (std::string wrong = order_.check_invariants(); !wrong.empty()) {
    return wrong;
  }
  size_t nodes = 0;
  size_t leaving = 0;
  size_t entering = 0;
  for (NodeId node = first(); node != kNone; node = next(node)) {
    ++nodes;
    for (const NodeId other : successors(node)) {
      ++leaving;
      if (!contains(other)) {
        return fmt::format("an edge leads from {} to {}, which is no node", node, other);
      }
      if (!before(node, other)) {
        return fmt::format("{} has an edge to {} and is not before it", node, other);
      }
      if (!in_.contains(other, node)) {
        return fmt::format("{} has an edge to {}, which does not know of it", node, other);
      }
      const auto all = successors(node);
      if (std::count(all.begin(), all.end(), other) != 1) {
        return fmt::format("{} has more than one edge to {}", node, other);
      }
    }
    entering += predecessors(node).size();
  }
  if (leaving != edges_ || entering != edges_) {
    return fmt::format("{} edges leave nodes and {} enter nodes, {} are counted", leaving, entering,
                       edges_);
  }
  if (nodes != nodes_ || nodes + free_.size() + 1 != id_bound_) {
    return fmt::format("{} nodes and {} free ids, {} counted, {} given out", nodes, free_.size(),
                       nodes_, id_bound_ - 1);
  }
  for (const NodeId node : free_) {
    if (contains(node) || out_.size(node) != 0 || in_.size(node) != 0) {
      return fmt::format("{} is free and in use", node);
    }
  }
  return "";
}

}  // namespace tsomon
