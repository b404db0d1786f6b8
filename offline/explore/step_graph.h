// The order of the steps of an execution graph: what linearize() puts together.
//
// Purpose     One after the other of many graphs, in the same memory: build() forgets the one before.
// Complexity  build() and sort(): O(n + c) for n events and c cells.
// Thread-safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "offline/explore/execution_graph.h"

namespace tsomon::explore {

// Numbers of events, by thread and place in it. A thread's events are its first ones, so each place
// is known; what has others is sorted. `begins`: room for it to work in.
void in_program_order(const Graph& graph, std::vector<uint32_t>* events,
                      std::vector<uint32_t>* begins);

// Nodes are steps: 2e executes event e, 2e + 1 commits it where that is another step.
class StepGraph {
 public:
  // Of writes to cells of which some accesses are parts: as in the graph, or of those alone that
  // share bytes, as the machine has it. Others' are the same.
  enum class Orders : uint8_t { kCells, kBytes };
  // False: some load reads an older write than one of its own thread, or what comes right behind its
  // source does not. `graph` has to be there as long as the other functions are called.
  bool build(const Graph& graph, Model model, Orders orders);
  void put_in_order(const std::vector<uint32_t>& events);
  // The steps that come after the execution of the event.
  std::vector<bool> after(size_t event) const;
  // False: there is a cycle. `schedule` may be nullptr. Once for each build().
  bool sort(std::vector<Choice>* schedule);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // A step, and the list of the edges that leave it, in the order in which they were added.
  struct Node {
    uint32_t degree = 0;
    uint32_t first = kNone;
    uint32_t last = kNone;
  };
  struct Edge {
    uint32_t to;
    uint32_t next;
  };
  // Of a cell: a thread's own newest write, if it was that thread that was looked at last.
  struct Newest {
    uint32_t thread;
    int32_t write;
  };

  bool commits_later(size_t e) const { return tso_ && graph_->events[e].op == Op::kStore; }
  uint32_t execution(size_t e) const { return static_cast<uint32_t>(2 * e); }
  uint32_t commit(size_t e) const {
    return static_cast<uint32_t>(commits_later(e) ? 2 * e + 1 : 2 * e);
  }
  void add(uint32_t before, uint32_t after);
  template <typename Visit>
  void for_each_after(uint32_t node, const Visit& visit) const {
    for (uint32_t edge = nodes_[node].first; edge != kNone; edge = edges_[edge].next) {
      visit(edges_[edge].to);
    }
  }
  template <typename Visit>
  void for_each_thread(const Visit& visit);
  void order_threads();
  void order_thread(size_t begin, size_t end);
  bool by_bytes(const GraphCell& cell) const { return cell.parts && orders_ == Orders::kBytes; }
  void check_own(const GraphEvent& load);
  void check_own_parts(size_t begin, size_t at);
  bool is_newest_alike(const GraphEvent& load) const;
  void order_cells();
  void order_bytes(const GraphCell& cell);
  void order_read_bytes(uint32_t e);
  bool atomic() const;

  const Graph* graph_ = nullptr;
  bool tso_ = false;
  Orders orders_ = Orders::kCells;
  bool coherent_ = true;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::vector<uint32_t> place_;   // of each write in the order of its cell
  std::vector<Newest> newest_;    // by cell
  std::vector<uint32_t> events_;  // in program order
  std::vector<uint32_t> begins_;  // of in_program_order()
  std::vector<uint32_t> ready_;
  std::array<uint32_t, kMaxThreads + 1> creation_{};  // the event, by thread
  std::array<uint32_t, kMaxThreads + 1> end_{};
};

}  // namespace tsomon::explore
