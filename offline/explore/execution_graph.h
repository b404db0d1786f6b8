// Execution graphs: the operations of an execution, what each read, and the order of the writes.
//
// Purpose     Two executions are alike when their loads read from the same writes and the writes to
//             each cell are in the same order. A graph is such a class: (program order, reads-from,
//             coherence). The exploration makes graphs; a schedule that runs one is made from it.
// Order       Events stand in the order in which they were added, which is no order of time. What
//             an event depends on (program order, the write that it reads, the start of its thread,
//             the end of a thread that it joins) need not stand before it.
// Consistency A graph is one of the model's if its steps, execution and commit of every event, can
//             be put in an order that the machine allows: program order; commits first in first
//             out; a locked operation after all commits of its thread; a load from another thread's
//             store after its commit; a load before the commit of what overwrites its source;
//             commits in coherence order. These are all constraints of a store-buffer machine
//             (Owens, Sarkar, Sewell 2009), so an order of the steps is a schedule of it. Beside
//             that, a load reads no older write than the newest of its own thread.
// Complexity  linearize: O(n log n) for n events.
// Thread-safety: plain data.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "offline/explore/program.h"

namespace tsomon::explore {

inline constexpr int32_t kInitial = -1;  // the value before the first write
inline constexpr int32_t kReadsNone = -2;

struct GraphEvent {
  uint16_t thread = 0;
  uint32_t index = 0;      // in its thread
  uint32_t operation = 0;  // the same, with those that were left out
  Op op = Op::kFence;
  uint8_t size = 0;
  bool exact = false;
  bool waits = false;   // blocked: it reads a value with which it cannot go on
  bool writes = false;  // to its cell
  uint32_t cell = 0;
  int32_t source = kReadsNone;
  Value a = 0;
  Value b = 0;
  Value read = 0;
  Value written = 0;
  uint64_t pc = 0;
};

struct GraphCell {
  uint64_t address = 0;
  uint8_t size = 0;
  bool object = false;
  Value initial = 0;
  std::vector<int32_t> order;  // of its writes: coherence
};

struct Graph {
  std::vector<GraphEvent> events;
  std::vector<GraphCell> cells;

  Value value_of(int32_t write, uint32_t cell) const {
    return write == kInitial ? cells[cell].initial : events[static_cast<size_t>(write)].written;
  }
  int32_t newest(uint32_t cell) const {
    return cells[cell].order.empty() ? kInitial : cells[cell].order.back();
  }
};

// The effect of a locked event on the value that `write` left.
Effect effect_of(const Graph& graph, const GraphEvent& event, int32_t write);

// A schedule that runs the graph, events that wait left out; false: the model has none.
// `schedule` may be nullptr. `executed`: events that are executed in this order, besides.
bool linearize(const Graph& graph, Model model, std::vector<Choice>* schedule,
               const std::vector<uint32_t>& executed = {});
// The last event of the mark's thread before it; nothing: it had none.
std::optional<uint32_t> event_before(const Graph& graph, const Mark& mark);
// Whether the i-th of `events` is executed before the j-th in every order of the steps.
std::vector<std::vector<bool>> executed_before(const Graph& graph, Model model,
                                               const std::vector<uint32_t>& events);
// Names the class: equal names, equal classes (of one program).
std::string class_name(const Graph& graph);
uint64_t class_hash(const Graph& graph);
// A hash of what its events read: classes whose orders are not told apart may differ in it.
uint64_t values_hash(const Graph& graph);

// Makes graphs of runs. Cells and their numbers are those of one builder.
class GraphBuilder {
 public:
  // What an execution was, from its steps in their order. Iterations of loops that wait without
  // effect are left out if `drop_iterations`.
  Graph of_run(const Run& run, Model model, bool drop_iterations);
  // Continues `graph`, which the first `replayed` steps of the run ran, by the rest of it, which
  // was scheduled by Policy::kFirst. Values are those of the run. False: the run did something
  // else. That it crashed before the end is not something else.
  bool extend(Graph* graph, const Run& run, size_t replayed);
  // Accesses of different sizes to the same bytes, of which none is part of a copy.
  struct Mixed {
    uint64_t address = 0;  // 0: there are none
    uint8_t size = 0;
    uint64_t pc = 0;
    uint8_t other_size = 0;
    uint64_t other_pc = 0;
  };
  const Mixed& mixed() const { return mixed_; }
  // Words of memory that copies should go through in parts, and where these begin (a bit for each
  // byte): others access these parts by themselves. What was explored before is void then.
  std::map<uint64_t, uint8_t> take_parts() { return std::exchange(parts_, {}); }
  // The graph of another builder with the numbers of this one.
  Graph adopt(const Graph& graph);
  // As if this builder had seen the other's cells.
  void add_cells(const GraphBuilder& other);

 private:
  uint32_t cell_of(Graph* graph, const Step& step);
  struct Cell {
    uint32_t number = 0;
    bool divisible = true;
    uint64_t pc = 0;  // of an access
  };
  using Key = std::tuple<uint64_t, uint8_t, bool>;  // address, size, object
  uint32_t number_of(const Key& key, bool divisible, uint64_t pc);
  void look_for_others(const Key& key, const Cell& cell);
  void put_parts(const Key& key);

  std::map<Key, Cell> cells_;
  Mixed mixed_;
  std::map<uint64_t, uint8_t> parts_;
  // Of extend(), by thread.
  std::array<std::vector<int32_t>, kMaxThreads + 1> events_of_;
};

}  // namespace tsomon::explore
