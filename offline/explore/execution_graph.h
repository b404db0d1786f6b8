// Execution graphs: the operations of an execution, what each read, and the order of the writes.
//
// Purpose     Two executions are alike when their loads read from the same writes and the writes to
//             each cell are in the same order. A graph is such a class: (program order, reads-from,
//             coherence). The exploration makes graphs; a schedule that runs one is made from it.
// Cells       Accesses of different sizes that share bytes have one cell, the smallest range of at
//             most 16 bytes that holds them. A store to a part of it is taken for an operation that
//             keeps the other bytes: it comes right behind the write whose bytes these are, its
//             source. So no write changes what is behind another one that was there. What a class
//             is, and its properties, are by bytes: that is how the machine reads and writes.
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
  uint8_t offset = 0;  // of its first byte in the cell
  bool part = false;   // the cell has other bytes
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

// Comes right behind its source, if it writes.
inline bool is_behind_source(const GraphEvent& event) {
  return is_locked(event.op) || (event.part && event.op == Op::kStore);
}
inline bool has_source(const GraphEvent& event) {
  return reads(event.op) || is_behind_source(event);
}
// Of one cell.
inline bool has_byte(const GraphEvent& event, uint32_t byte) {
  return byte >= event.offset && byte < uint32_t{event.offset} + event.size;
}
inline bool covers(const GraphEvent& event, const GraphEvent& other) {
  return event.offset <= other.offset &&
         uint32_t{event.offset} + event.size >= uint32_t{other.offset} + other.size;
}
inline bool share_bytes(const GraphEvent& a, const GraphEvent& b) {
  return has_cell(a.op) && has_cell(b.op) && a.cell == b.cell &&
         a.offset < uint32_t{b.offset} + b.size && b.offset < uint32_t{a.offset} + a.size;
}

// A load's source has bytes of it.
inline bool may_be_source(const GraphEvent& write, const GraphEvent& event) {
  return event.op != Op::kLoad || share_bytes(write, event);
}

struct GraphCell {
  uint64_t address = 0;
  uint8_t size = 0;
  bool object = false;
  bool parts = false;  // some accesses are of parts of it
  Value initial = 0;
  uint16_t known = 0;          // bytes of `initial`, if there are parts
  std::vector<int32_t> order;  // of its writes: coherence
};

struct Graph {
  std::vector<GraphEvent> events;
  std::vector<GraphCell> cells;

  // What the cell holds after `write`.
  Value value_after(int32_t write, uint32_t cell) const;
  // What the event reads if `source` is the newest write in memory. Stores of its own thread that
  // come later are in the buffer then.
  Value value_read(const GraphEvent& event, int32_t source) const;
  // The write that the event, which reads, has this byte of its cell from.
  int32_t source_of_byte(const GraphEvent& event, uint32_t byte) const;
  int32_t newest(uint32_t cell) const {
    return cells[cell].order.empty() ? kInitial : cells[cell].order.back();
  }
  // Of those that may be the event's source.
  int32_t newest_for(const GraphEvent& event) const;
};

// The effect of a locked event on the value that `write` left.
Effect effect_of(const Graph& graph, const GraphEvent& event, int32_t write);

// A schedule that runs the class of the graph, events that wait left out; false: the model has none.
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
// A hash of what its events read: classes whose orders are not told apart (GraphBuilder::mixed) may
// differ in it.
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
  // Accesses of different sizes to the same bytes, of which none is part of a copy, in more bytes
  // than a cell may have: they have several, and their orders are not told apart.
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
  // Ranges that accesses of different sizes turned out to share, by address. What was explored
  // before is void if one is new to the builder that explores.
  using Ranges = std::map<uint64_t, uint8_t>;
  const Ranges& ranges() const { return ranges_; }
  // Nothing was seen so far. Each is one cell.
  void set_ranges(const Ranges& ranges) { ranges_ = ranges; }
  // The graph of another builder with the numbers of this one.
  Graph adopt(const Graph& graph);
  // As if this builder had seen the other's cells.
  void add_cells(const GraphBuilder& other);

 private:
  struct Access {
    bool divisible = true;
    uint64_t pc = 0;     // of one
    uint64_t begin = 0;  // of its cell
    uint8_t size = 0;
    uint32_t cell = 0;
  };
  using Key = std::tuple<uint64_t, uint8_t, bool>;  // address, size, object
  GraphEvent event_of(Graph* graph, const Step& step, uint32_t index);
  uint32_t cell_of(Graph* graph, const Step& step);
  uint32_t number_of(const Key& cell);
  Key cell_with(const Key& access) const;
  const Access& note_access(const Key& key, bool divisible, uint64_t pc);
  void look_for_others(const Key& key, const Access& access);
  bool join(uint64_t begin, uint64_t end);
  void put_parts(const Key& key);

  std::map<Key, Access> accesses_;
  std::map<Key, uint32_t> numbers_;  // of cells
  Ranges ranges_;
  Mixed mixed_;
  std::map<uint64_t, uint8_t> parts_;
  // Of extend(), by thread.
  std::array<std::vector<int32_t>, kMaxThreads + 1> events_of_;
};

}  // namespace tsomon::explore
