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

}  // namespace

Effect effect_of(const Graph& graph, const GraphEvent& event, int32_t write) {
  const Value old = graph.value_of(write, event.cell);
  return event.exact ? apply_exactly(event.op, old, event.a, event.b, event.size, event.thread)
                     : apply(event.op, old, event.a, event.b, event.size, event.thread);
}

bool linearize(const Graph& graph, Model model, std::vector<Choice>* schedule,
               const std::vector<uint32_t>& executed) {
  StepGraph steps;
  if (!steps.build(graph, model)) {
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
  steps.build(graph, model);
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
    if (reads(event.op)) {
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
    put(&name, cell->address, 8);
    for (const int32_t write : cell->order) {
      put_write(write);
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
