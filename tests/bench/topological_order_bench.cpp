// TopologicalOrder beside abseil's GraphCycles and beside the floor: comparing two labels and
// appending to two inline lists, which is what an edge costs at least.
//
//   topological_order_bench [ROUNDS [WORKLOAD]]
//
// Every workload is a fixed sequence of operations, made from a fixed seed before anything is
// timed. A round runs all contenders, one after the other, each from an empty graph; the figures
// are the best of the rounds. All know nodes by slots, numbers of the sequence, and look their own
// ids up in a table. Contenders with cycle detection must accept the same edges.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <absl/synchronization/internal/graphcycles.h>
#include <fmt/format.h>

#include "online/order/topological_order.h"

namespace {

using tsomon::EdgeInsertion;
using tsomon::TopologicalOrder;

enum class Action : uint32_t { kAdd, kRemove, kEdge };

// Nodes are slots: numbers that are used again after their node was removed.
struct Operation {
  Action action;
  uint32_t from;
  uint32_t to;
};

struct Workload {
  std::string name;
  uint32_t slots = 0;
  std::vector<Operation> operations;
  size_t edges = 0;

  void add(uint32_t slot) { operations.push_back({Action::kAdd, slot, 0}); }
  void remove(uint32_t slot) { operations.push_back({Action::kRemove, slot, 0}); }
  void edge(uint32_t from, uint32_t to) {
    operations.push_back({Action::kEdge, from, to});
    ++edges;
  }
};

class Ours {
 public:
  explicit Ours(uint32_t slots) : nodes_(slots) {}
  void add(uint32_t slot) { nodes_[slot] = order_.add_node(); }
  void remove(uint32_t slot) { order_.remove_node(nodes_[slot]); }
  bool edge(uint32_t from, uint32_t to) {
    return order_.insert_edge(nodes_[from], nodes_[to]) != EdgeInsertion::kCycle;
  }

 private:
  TopologicalOrder order_;
  std::vector<TopologicalOrder::NodeId> nodes_;
};

class Abseil {
 public:
  explicit Abseil(uint32_t slots) : nodes_(slots), objects_(slots) {}
  void add(uint32_t slot) { nodes_[slot] = order_.GetId(&objects_[slot]); }
  void remove(uint32_t slot) { order_.RemoveNode(&objects_[slot]); }
  bool edge(uint32_t from, uint32_t to) { return order_.InsertEdge(nodes_[from], nodes_[to]); }

 private:
  absl::synchronization_internal::GraphCycles order_;
  std::vector<absl::synchronization_internal::GraphId> nodes_;
  std::vector<uint64_t> objects_;  // graphs know nodes by the address of an object
};

class Floor {
 public:
  explicit Floor(uint32_t slots) : nodes_(slots), labels_(slots), out_(slots), in_(slots) {}
  void add(uint32_t slot) {
    nodes_[slot] = slot;
    labels_[slot] = ++last_label_;
    out_[slot].size = 0;
    in_[slot].size = 0;
  }
  void remove(uint32_t slot) { labels_[nodes_[slot]] = 0; }
  bool edge(uint32_t from, uint32_t to) {
    from = nodes_[from];
    to = nodes_[to];
    if (labels_[from] >= labels_[to]) {
      return false;
    }
    out_[from].append(to);
    in_[to].append(from);
    return true;
  }

 private:
  struct alignas(64) List {
    uint32_t size = 0;
    std::array<uint32_t, 8> items;  // forgets the first when there are more
    void append(uint32_t item) { items[size++ % items.size()] = item; }
  };
  std::vector<uint32_t> nodes_;
  std::vector<uint64_t> labels_;
  std::vector<List> out_;
  std::vector<List> in_;
  uint64_t last_label_ = 0;
};

struct Run {
  double seconds = std::numeric_limits<double>::infinity();
  size_t accepted = 0;
};

template <typename Contender>
void run(const Workload& workload, Run& best) {
  const auto start = std::chrono::steady_clock::now();
  size_t accepted = 0;
  {
    Contender contender(workload.slots);
    for (const Operation& operation : workload.operations) {
      switch (operation.action) {
        case Action::kAdd:
          contender.add(operation.from);
          break;
        case Action::kRemove:
          contender.remove(operation.from);
          break;
        case Action::kEdge:
          accepted += contender.edge(operation.from, operation.to) ? 1 : 0;
          break;
      }
    }
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  best.seconds = std::min(best.seconds, taken.count());
  best.accepted = accepted;
}

// Units that live for as long as `live` others start; `backwards` percent of the edges lead from
// newer to older.
Workload sliding_window(uint32_t live, unsigned backwards) {
  constexpr uint32_t kUnits = 200'000;
  constexpr unsigned kEdges = 4;
  std::mt19937_64 random(live + backwards);
  Workload workload{
      fmt::format("window of {}, {}% from newer to older", live, backwards), live, {}};
  for (uint32_t unit = 0; unit < kUnits; ++unit) {
    const uint32_t slot = unit % live;
    if (unit >= live) {
      workload.remove(slot);
    }
    workload.add(slot);
    for (unsigned i = 0; i < kEdges && unit > 0; ++i) {
      const auto age = static_cast<uint32_t>(1 + random() % std::min(unit, live - 1));
      const uint32_t older = (unit - age) % live;
      if (random() % 100 < backwards) {
        workload.edge(slot, older);
      } else {
        workload.edge(older, slot);
      }
    }
  }
  return workload;
}

Workload dense() {
  constexpr uint32_t kNodes = 2'000;
  constexpr size_t kEdges = 200'000;
  std::mt19937_64 random(2000);
  std::vector<uint32_t> place(kNodes);
  std::iota(place.begin(), place.end(), 0U);
  std::shuffle(place.begin(), place.end(), random);
  Workload workload{"dense random graph", kNodes, {}};
  for (uint32_t node = 0; node < kNodes; ++node) {
    workload.add(node);
  }
  std::unordered_set<uint64_t> seen;
  while (workload.edges < kEdges) {
    auto from = static_cast<uint32_t>(random() % kNodes);
    auto to = static_cast<uint32_t>(random() % kNodes);
    if (place[from] > place[to]) {
      std::swap(from, to);
    }
    if (from != to && seen.insert(uint64_t{from} << 32 | to).second) {
      workload.edge(from, to);
    }
  }
  return workload;
}

Workload head_grown_chain() {
  constexpr uint32_t kNodes = 10'000;
  Workload workload{"chain grown at its head", kNodes, {}};
  workload.add(0);
  for (uint32_t node = 1; node < kNodes; ++node) {
    workload.add(node);
    workload.edge(node, node - 1);
  }
  return workload;
}

Workload zipped_chains() {
  constexpr uint32_t kLength = 5'000;
  Workload workload{"two chains zipped", 2 * kLength, {}};
  for (uint32_t node = 0; node < 2 * kLength; ++node) {
    workload.add(node);
    if (node % kLength != 0) {
      workload.edge(node - 1, node);
    }
  }
  for (uint32_t i = 0; i < kLength; ++i) {
    workload.edge(i, kLength + i);
    if (i + 1 < kLength) {
      workload.edge(kLength + i, i + 1);
    }
  }
  return workload;
}

int bench(int argc, char** argv) {
  const size_t rounds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 9;
  const std::string only = argc > 2 ? argv[2] : "";
  if (rounds == 0) {
    std::fprintf(stderr, "usage: topological_order_bench [ROUNDS [WORKLOAD]]\n");
    return 2;
  }
  fmt::print("best of {} rounds; ns per edge\n{:<42} {:>10} {:>10} {:>10} {:>14} {:>12}\n", rounds,
             "", "ours", "abseil", "floor", "abseil / ours", "ours / floor");
  for (const Workload& workload :
       {sliding_window(256, 0), sliding_window(256, 20), sliding_window(4096, 5), dense(),
        head_grown_chain(), zipped_chains()}) {
    if (workload.name.find(only) == std::string::npos) {
      continue;
    }
    Run ours;
    Run abseil;
    Run floor;
    for (size_t round = 0; round < rounds; ++round) {
      run<Ours>(workload, ours);
      run<Abseil>(workload, abseil);
      run<Floor>(workload, floor);
    }
    if (ours.accepted != abseil.accepted) {
      fmt::print(stderr, "{}: {} edges accepted, abseil accepts {}\n", workload.name, ours.accepted,
                 abseil.accepted);
      return 1;
    }
    const auto each = [&](const Run& best) {
      return best.seconds * 1e9 / static_cast<double>(workload.edges);
    };
    fmt::print(
        "{:<42} {:>10.1f} {:>10.1f} {:>10.2f} {:>14.1f} {:>12.1f}   {} of {} edges accepted\n",
        workload.name, each(ours), each(abseil), each(floor), abseil.seconds / ours.seconds,
        ours.seconds / floor.seconds, ours.accepted, workload.edges);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return bench(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "topological_order_bench: %s\n", error.what());
    return 1;
  }
}
