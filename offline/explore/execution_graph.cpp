#include "offline/explore/execution_graph.h"

#include <algorithm>
#include <utility>

#include "offline/explore/step_graph.h"
#include "tso/support/text_hash.h"

namespace tsomon::explore {
namespace {

std::vector<uint32_t> in_program_order(const Graph& graph) {
  std::vector<uint32_t> events;
  std::vector<uint32_t> begins;
  in_program_order(graph, &events, &begins);
  return events;
}

void put(std::string* name, uint64_t number, int bytes) {
  for (int byte = 0; byte < bytes; ++byte) {
    name->push_back(static_cast<char>(number >> (8 * byte)));
  }
}

Value bytes_from(uint32_t begin, uint32_t size) {
  return low_bytes(~Value{0}, size) << (8 * begin);
}

// Its bytes of the cell, where they are in it.
Value mask_of(const GraphEvent& event) { return bytes_from(event.offset, event.size); }
Value in_cell(const GraphEvent& event) { return event.written << (8 * event.offset); }

// In the buffer of the load's thread while `source` is the newest write in memory, if it comes later.
bool is_before_load(const GraphEvent& store, const GraphEvent& load) {
  return store.op == Op::kStore && load.op == Op::kLoad && store.thread == load.thread &&
         store.index < load.index;
}

}  // namespace

Value Graph::value_after(int32_t write, uint32_t cell) const {
  if (!cells[cell].parts) {
    return write == kInitial ? cells[cell].initial : events[static_cast<size_t>(write)].written;
  }
  Value value = 0;
  Value missing = bytes_from(0, cells[cell].size);
  while (missing != 0 && write >= 0) {
    const GraphEvent& event = events[static_cast<size_t>(write)];
    const Value mask = mask_of(event) & missing;
    value |= in_cell(event) & mask;
    missing &= ~mask;
    write = event.source;  // read only while bytes are missing: the event writes a part
  }
  return value | (cells[cell].initial & missing);
}

Value Graph::value_read(const GraphEvent& event, int32_t source) const {
  Value value = value_after(source, event.cell);
  if (!cells[event.cell].parts) {
    return value;
  }
  const auto& order = cells[event.cell].order;
  auto later = source == kInitial ? order.begin() : std::find(order.begin(), order.end(), source);
  for (; later != order.end(); ++later) {
    const GraphEvent& store = events[static_cast<size_t>(*later)];
    if (*later != source && is_before_load(store, event)) {
      value = (value & ~mask_of(store)) | (in_cell(store) & mask_of(store));
    }
  }
  return low_bytes(value >> (8 * event.offset), event.size);
}

int32_t Graph::newest_for(const GraphEvent& event) const {
  const auto& order = cells[event.cell].order;
  const auto found = std::find_if(order.rbegin(), order.rend(), [&](int32_t write) {
    return may_be_source(events[static_cast<size_t>(write)], event);
  });
  return found == order.rend() ? kInitial : *found;
}

int32_t Graph::source_of_byte(const GraphEvent& event, uint32_t byte) const {
  const auto& order = cells[event.cell].order;
  int32_t found = kInitial;
  bool seen = event.source != kInitial;
  for (const int32_t write : order) {
    const GraphEvent& other = events[static_cast<size_t>(write)];
    if ((seen || is_before_load(other, event)) && has_byte(other, byte)) {
      found = write;
    }
    seen = seen && write != event.source;
  }
  return found;
}

Effect effect_of(const Graph& graph, const GraphEvent& event, int32_t write) {
  const Value old = graph.value_read(event, write);
  return event.exact ? apply_exactly(event.op, old, event.a, event.b, event.size, event.thread)
                     : apply(event.op, old, event.a, event.b, event.size, event.thread);
}

bool linearize(const Graph& graph, Model model, std::vector<Choice>* schedule,
               const std::vector<uint32_t>& executed) {
  StepGraph steps;
  if (!steps.build(graph, model, StepGraph::Orders::kBytes)) {
    return false;
  }
  steps.put_in_order(executed);
  return steps.sort(schedule);
}

std::optional<uint32_t> event_before(const Graph& graph, const Mark& mark) {
  std::optional<uint32_t> last;
  for (uint32_t e = 0; e < graph.events.size(); ++e) {
    const GraphEvent& event = graph.events[e];
    if (event.thread == mark.thread && !event.waits && event.operation < mark.operation &&
        (!last || graph.events[*last].operation < event.operation)) {
      last = e;
    }
  }
  return last;
}

std::vector<std::vector<bool>> executed_before(const Graph& graph, Model model,
                                               const std::vector<uint32_t>& events) {
  StepGraph steps;
  steps.build(graph, model, StepGraph::Orders::kBytes);
  std::vector<std::vector<bool>> before;
  for (const uint32_t event : events) {
    const std::vector<bool> after = steps.after(event);
    std::vector<bool>& row = before.emplace_back(events.size());
    for (size_t other = 0; other < events.size(); ++other) {
      row[other] = after[2 * size_t{events[other]}];
    }
  }
  return before;
}

std::string class_name(const Graph& graph) {
  std::string name;
  name.reserve(16 * graph.events.size());
  const auto put_write = [&](int32_t write) {
    put(&name, write < 0 ? 0xFFFF : graph.events[write].thread, 2);
    put(&name, write < 0 ? 0 : graph.events[write].index, 4);
  };
  for (const uint32_t e : in_program_order(graph)) {
    const GraphEvent& event = graph.events[e];
    put(&name, event.thread, 2);
    put(&name, static_cast<uint64_t>(event.op) << 1 | (event.waits ? 1 : 0), 2);
    if (reads(event.op) && graph.cells[event.cell].parts) {
      for (uint32_t byte = event.offset; byte < uint32_t{event.offset} + event.size; ++byte) {
        put_write(graph.source_of_byte(event, byte));
      }
    } else if (reads(event.op)) {
      put_write(event.source);
    } else if (event.op == Op::kAnswer) {
      put(&name, static_cast<uint64_t>(event.b), 1);
    }
  }
  // Cells by address: their numbers depend on the order in which they were seen.
  std::vector<const GraphCell*> cells;
  for (const GraphCell& cell : graph.cells) {
    if (!cell.order.empty()) {
      cells.push_back(&cell);
    }
  }
  std::sort(cells.begin(), cells.end(), [](const GraphCell* a, const GraphCell* b) {
    return std::tie(a->address, a->size, a->object) < std::tie(b->address, b->size, b->object);
  });
  for (const GraphCell* const cell : cells) {
    for (uint32_t byte = 0; byte < (cell->parts ? cell->size : 1U); ++byte) {
      put(&name, cell->address + byte, 8);
      for (const int32_t write : cell->order) {
        if (!cell->parts || has_byte(graph.events[static_cast<size_t>(write)], byte)) {
          put_write(write);
        }
      }
    }
  }
  return name;
}

uint64_t class_hash(const Graph& graph) { return text_hash(class_name(graph)); }

uint64_t values_hash(const Graph& graph) {
  uint64_t hash = 0;
  for (const uint32_t e : in_program_order(graph)) {
    const Value read = graph.events[e].read;
    hash = (hash ^ static_cast<uint64_t>(read) ^ static_cast<uint64_t>(read >> 64)) *
           0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace tsomon::explore
