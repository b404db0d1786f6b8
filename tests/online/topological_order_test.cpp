// TopologicalOrder against a twin that recomputes everything: a bit matrix of the edges and its
// closure, over at most 16 nodes.
#include "online/order/topological_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "tests/rounds.h"

using namespace tsomon;

namespace {

using NodeId = TopologicalOrder::NodeId;

const int kGraphs = rounds(1'000, 20'000);
constexpr int kOperations = 80;  // on each graph
constexpr uint64_t kSeed = 20120301;

// How the nodes of an insertion are chosen.
enum class Shape : uint8_t {
  kRandom,    // any two
  kNewToOld,  // from the newer of two: against the order
  kOldToNew,  // as conflicts of a trace come
  kHeads,     // a new node in front of a node without predecessors
  kAgainst,   // from the last in the order to the first
  kShapes,
};

// Slot i of the twin is a node of the order; edges and closure are bit sets of slots.
class Twin {
 public:
  static constexpr unsigned kSlots = 16;

  std::array<NodeId, kSlots> node{};  // kNone: the slot is empty
  std::array<uint32_t, kSlots> edges{};

  unsigned slot_of(NodeId id) const {
    return static_cast<unsigned>(std::find(node.begin(), node.end(), id) - node.begin());
  }
  std::vector<unsigned> slots() const {
    std::vector<unsigned> all;
    for (unsigned i = 0; i < kSlots; ++i) {
      if (node[i] != TopologicalOrder::kNone) {
        all.push_back(i);
      }
    }
    return all;
  }
  // Slots reached from each slot by one edge or more.
  std::array<uint32_t, kSlots> closure() const {
    std::array<uint32_t, kSlots> reach = edges;
    for (unsigned k = 0; k < kSlots; ++k) {
      for (unsigned i = 0; i < kSlots; ++i) {
        if ((reach[i] >> k & 1) != 0) {
          reach[i] |= reach[k];
        }
      }
    }
    return reach;
  }
  void remove(unsigned slot) {
    node[slot] = TopologicalOrder::kNone;
    edges[slot] = 0;
    for (uint32_t& row : edges) {
      row &= ~(1U << slot);
    }
  }
  // The edges of `other` become edges of `kept`; self-loops are dropped.
  void merge(unsigned kept, unsigned other) {
    edges[kept] |= edges[other];
    for (uint32_t& row : edges) {
      if ((row >> other & 1) != 0) {
        row |= 1U << kept;
      }
    }
    remove(other);
    edges[kept] &= ~(1U << kept);
  }
  size_t count_edges() const {
    size_t count = 0;
    for (const uint32_t row : edges) {
      count += static_cast<size_t>(std::popcount(row));
    }
    return count;
  }
};

uint32_t slots_of(const Twin& twin, std::span<const NodeId> nodes) {
  uint32_t slots = 0;
  for (const NodeId id : nodes) {
    slots |= 1U << twin.slot_of(id);
  }
  return slots;
}

class Comparison {
 public:
  explicit Comparison(uint64_t seed) : random_(seed) {}

  void step(Shape shape) {
    const unsigned dice = random_() % 100;
    const auto live = twin_.slots();
    if (live.size() < 2 || (dice < 12 && live.size() < Twin::kSlots)) {
      add();
    } else if (dice < 18) {
      remove(live[random_() % live.size()]);
    } else if (dice < 22) {
      merge(live[random_() % live.size()], live[random_() % live.size()]);
    } else {
      const auto [from, to] = choose(shape, live);
      insert(from, to, random_() % 2 == 0);
    }
  }

  void check() {
    REQUIRE(order_.check_invariants() == "");
    const auto live = twin_.slots();
    REQUIRE(order_.size() == live.size());
    REQUIRE(order_.edges() == twin_.count_edges());
    for (const unsigned i : live) {
      const NodeId id = twin_.node[i];
      REQUIRE(order_.contains(id));
      const auto successors = order_.successors(id);
      const auto predecessors = order_.predecessors(id);
      REQUIRE(successors.size() == static_cast<size_t>(std::popcount(twin_.edges[i])));
      REQUIRE(slots_of(twin_, successors) == twin_.edges[i]);
      uint32_t entering = 0;
      for (const unsigned j : live) {
        entering |= (twin_.edges[j] >> i & 1) << j;
        const bool edge = (twin_.edges[i] >> j & 1) != 0;
        REQUIRE(order_.has_edge(id, twin_.node[j]) == edge);
        REQUIRE((!edge || order_.before(id, twin_.node[j])));
      }
      REQUIRE(predecessors.size() == static_cast<size_t>(std::popcount(entering)));
      REQUIRE(slots_of(twin_, predecessors) == entering);
    }
  }

  uint64_t cycles() const { return cycles_; }
  uint64_t merged() const { return merged_; }
  uint64_t contracted() const { return contracted_; }

 private:
  unsigned add() {
    const unsigned slot = twin_.slot_of(TopologicalOrder::kNone);
    const NodeId last = order_.size() == 0 ? TopologicalOrder::kNone : last_node();
    const NodeId id = order_.add_node();
    REQUIRE(id != TopologicalOrder::kNone);
    REQUIRE(twin_.slot_of(id) == Twin::kSlots);
    REQUIRE((last == TopologicalOrder::kNone || order_.before(last, id)));
    twin_.node[slot] = id;
    age_[slot] = ++clock_;
    return slot;
  }
  NodeId last_node() const {
    NodeId last = order_.first();
    for (NodeId id = last; id != TopologicalOrder::kNone; id = order_.next(id)) {
      last = id;
    }
    return last;
  }
  void remove(unsigned slot) {
    order_.remove_node(twin_.node[slot]);
    twin_.remove(slot);
  }
  void insert(unsigned from, unsigned to, bool contract) {
    const NodeId tail = twin_.node[from];
    const NodeId head = twin_.node[to];
    const auto reach = twin_.closure();
    const EdgeInsertion result = order_.insert_edge(tail, head);
    if ((twin_.edges[from] >> to & 1) != 0) {
      REQUIRE(result == EdgeInsertion::kDuplicate);
    } else if (from != to && (reach[to] >> from & 1) == 0) {
      REQUIRE(result == EdgeInsertion::kInserted);
      twin_.edges[from] |= 1U << to;
    } else {
      REQUIRE(result == EdgeInsertion::kCycle);
      ++cycles_;
      check_path(order_.cycle(), to, from);
      if (contract) {
        REQUIRE(order_.check_invariants() == "");
        // What lies between the two ends, which are among it.
        uint32_t component = 1U << from | 1U << to;
        for (const unsigned i : twin_.slots()) {
          component |= ((reach[to] >> i) & (reach[i] >> from) & 1) << i;
        }
        const NodeId kept = order_.contract(order_.cycle());
        const auto gone = order_.absorbed();
        REQUIRE((slots_of(twin_, gone) | 1U << twin_.slot_of(kept)) == component);
        REQUIRE(gone.size() + 1 == static_cast<size_t>(std::popcount(component)));
        const std::vector<NodeId> others(gone.begin(), gone.end());
        for (const NodeId id : others) {
          REQUIRE(!order_.contains(id));
          twin_.merge(twin_.slot_of(kept), twin_.slot_of(id));
        }
        contracted_ += others.size();
        check();
      }
    }
  }
  // An edge from each node to the next, no node twice.
  void check_path(std::span<const NodeId> path, unsigned first, unsigned last) {
    REQUIRE(!path.empty());
    REQUIRE(path.front() == twin_.node[first]);
    REQUIRE(path.back() == twin_.node[last]);
    REQUIRE(static_cast<size_t>(std::popcount(slots_of(twin_, path))) == path.size());
    for (size_t i = 0; i + 1 < path.size(); ++i) {
      REQUIRE((twin_.edges[twin_.slot_of(path[i])] >> twin_.slot_of(path[i + 1]) & 1) != 0);
    }
  }
  void merge(unsigned kept, unsigned other) {
    if (kept == other) {
      return;
    }
    const auto reach = twin_.closure();
    uint32_t between = 0;
    bool kept_first = false;
    for (const unsigned i : twin_.slots()) {
      const uint32_t forwards = (reach[kept] >> i) & (reach[i] >> other) & 1;
      between |= forwards | ((reach[other] >> i) & (reach[i] >> kept) & 1);
      kept_first |= forwards != 0;
    }
    const bool done = order_.merge(twin_.node[kept], twin_.node[other]);
    REQUIRE(done == (between == 0));
    if (done) {
      REQUIRE(!order_.contains(twin_.node[other]));
      twin_.merge(kept, other);
      ++merged_;
    } else {
      check_path(order_.cycle(), kept_first ? kept : other, kept_first ? other : kept);
      REQUIRE(order_.cycle().size() > 2);
    }
    check();
  }
  std::pair<unsigned, unsigned> choose(Shape shape, const std::vector<unsigned>& live) {
    unsigned from = live[random_() % live.size()];
    unsigned to = live[random_() % live.size()];
    switch (shape) {
      case Shape::kNewToOld:
      case Shape::kOldToNew:
        if ((age_[from] < age_[to]) == (shape == Shape::kNewToOld)) {
          std::swap(from, to);
        }
        break;
      case Shape::kHeads:
        if (live.size() < Twin::kSlots) {
          for (const unsigned i : live) {
            to = order_.predecessors(twin_.node[i]).empty() ? i : to;
          }
          from = add();
        }
        break;
      case Shape::kAgainst:
        if (random_() % 2 == 0) {
          to = twin_.slot_of(order_.first());
        }
        if (random_() % 2 == 0) {
          from = twin_.slot_of(last_node());
        }
        break;
      default:
        break;
    }
    return {from, to};
  }

  std::mt19937_64 random_;
  TopologicalOrder order_;
  Twin twin_;
  std::array<uint64_t, Twin::kSlots> age_{};
  uint64_t clock_ = 0;
  uint64_t cycles_ = 0;
  uint64_t merged_ = 0;
  uint64_t contracted_ = 0;
};

}  // namespace

TEST_CASE("random operations on small graphs agree with recomputed reachability") {
  uint64_t cycles = 0;
  uint64_t merged = 0;
  uint64_t contracted = 0;
  for (int graph = 0; graph < kGraphs; ++graph) {
    const uint64_t seed = kSeed + static_cast<uint64_t>(graph);
    CAPTURE(seed);
    const auto shape = static_cast<Shape>(graph % static_cast<int>(Shape::kShapes));
    Comparison comparison(seed);
    for (int i = 0; i < kOperations; ++i) {
      CAPTURE(i);
      comparison.step(shape);
      if (i % 8 == 0) {
        comparison.check();
      }
    }
    comparison.check();
    cycles += comparison.cycles();
    merged += comparison.merged();
    contracted += comparison.contracted();
  }
  CHECK(cycles > kGraphs);
  CHECK(merged > kGraphs / 2);
  CHECK(contracted > kGraphs);
}

namespace {

// A path between two nodes, found by looking everywhere.
bool reaches(const TopologicalOrder& order, NodeId from, NodeId to) {
  std::vector<NodeId> stack{from};
  std::vector<bool> seen(order.id_bound());
  while (!stack.empty()) {
    const NodeId node = stack.back();
    stack.pop_back();
    if (node == to) {
      return true;
    }
    for (const NodeId next : order.successors(node)) {
      if (!seen[next]) {
        seen[next] = true;
        stack.push_back(next);
      }
    }
  }
  return false;
}

}  // namespace

TEST_CASE("candidates of many nodes: refused edges have a path, others have none") {
#if defined(TSOMON_SANITIZED) || !defined(NDEBUG)
  constexpr int kUnits = 1'500;
#else
  constexpr int kUnits = 15'000;
#endif
  for (const unsigned backwards : {5U, 30U, 90U}) {
    std::mt19937_64 random(kSeed + backwards);
    CAPTURE(backwards);
    TopologicalOrder order;
    std::vector<NodeId> live;
    uint64_t refused = 0;
    for (int unit = 0; unit < kUnits; ++unit) {
      CAPTURE(unit);
      if (live.size() > 300) {
        const size_t gone = random() % 4 == 0 ? random() % live.size() : 0;
        order.remove_node(live[gone]);
        live.erase(live.begin() + static_cast<ptrdiff_t>(gone));
      }
      const NodeId added = order.add_node();
      live.push_back(added);
      for (int i = 0; i < 5; ++i) {
        NodeId from = live[random() % live.size()];
        // Some nodes have very many edges.
        NodeId to = random() % 4 == 0 ? live[live.size() / 2] : added;
        if (random() % 100 < backwards) {
          std::swap(from, to);
        }
        const bool path = reaches(order, to, from);
        const bool there = order.has_edge(from, to);
        const EdgeInsertion result = order.insert_edge(from, to);
        REQUIRE((result == EdgeInsertion::kCycle) == path);
        REQUIRE((result == EdgeInsertion::kDuplicate) == there);
        if (path) {
          ++refused;
          const auto cycle = order.cycle();
          REQUIRE(cycle.front() == to);
          REQUIRE(cycle.back() == from);
          for (size_t k = 0; k + 1 < cycle.size(); ++k) {
            REQUIRE(order.has_edge(cycle[k], cycle[k + 1]));
          }
          if (random() % 4 == 0) {
            order.contract(cycle);
            for (const NodeId node : order.absorbed()) {
              live.erase(std::find(live.begin(), live.end(), node));
            }
            break;  // the nodes at hand may be gone
          }
        } else {
          REQUIRE(order.has_edge(from, to));
          REQUIRE(order.before(from, to));
        }
      }
      if (unit % 64 == 0) {
        REQUIRE(order.check_invariants() == "");
        REQUIRE(order.size() == live.size());
      }
    }
    CHECK(refused > 0);
  }
}

TEST_CASE("memory stays as it is while nodes come and go") {
  TopologicalOrder order;
  std::mt19937_64 random(kSeed);
  std::vector<NodeId> ring(256, TopologicalOrder::kNone);
  size_t after_warm_up = 0;
  const uint64_t units = 200'000;
  for (uint64_t unit = 0; unit < units; ++unit) {
    NodeId& slot = ring[unit % ring.size()];
    if (slot != TopologicalOrder::kNone) {
      order.remove_node(slot);
    }
    slot = order.add_node();
    for (int i = 0; i < 4 && unit > 0; ++i) {
      const uint64_t age = 1 + random() % std::min<uint64_t>(unit, ring.size() - 1);
      const NodeId other = ring[(unit - age) % ring.size()];
      if (random() % 8 == 0) {
        order.insert_edge(slot, other);
      } else {
        order.insert_edge(other, slot);
      }
    }
    if (unit == units / 2) {
      after_warm_up = order.memory_bytes();
    }
  }
  CHECK(order.memory_bytes() == after_warm_up);
  CHECK(order.id_bound() == ring.size() + 1);
}

TEST_CASE("a node has its place and its edges again after all kinds of ends") {
  TopologicalOrder order;
  const NodeId a = order.add_node();
  const NodeId b = order.add_node();
  const NodeId c = order.add_node();
  CHECK(order.insert_edge(a, a) == EdgeInsertion::kCycle);
  CHECK(order.cycle().size() == 1);
  CHECK(order.contract(order.cycle()) == a);
  CHECK(order.absorbed().empty());
  CHECK(order.insert_edge(c, b) == EdgeInsertion::kInserted);
  CHECK(order.insert_edge(b, a) == EdgeInsertion::kInserted);
  CHECK(order.insert_edge(c, b) == EdgeInsertion::kDuplicate);
  CHECK(order.before(c, b));
  CHECK(order.before(b, a));
  CHECK(order.first() == c);
  REQUIRE(order.insert_edge(a, c) == EdgeInsertion::kCycle);
  CHECK(std::vector<NodeId>(order.cycle().begin(), order.cycle().end()) ==
        std::vector<NodeId>{c, b, a});
  CHECK_FALSE(order.merge(c, a));
  CHECK(order.edges() == 2);
  CHECK(order.merge(b, a));
  CHECK(order.edges() == 1);
  CHECK(order.has_edge(c, b));
  CHECK_FALSE(order.contains(a));
  CHECK(order.check_invariants() == "");
  // The id comes back, the place does not.
  order.remove_node(c);
  const NodeId again = order.add_node();
  CHECK(order.predecessors(b).empty());
  CHECK(order.before(b, again));
  CHECK(order.next(again) == TopologicalOrder::kNone);
}
