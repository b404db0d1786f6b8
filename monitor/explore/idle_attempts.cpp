#include "monitor/explore/idle_attempts.h"

#include <algorithm>
#include <map>

#include "tso/model/idle_iterations.h"

namespace tsomon::explore {
namespace {

// Of one thread after the other, in program order.
std::vector<uint32_t> in_program_order(const Graph& graph) {
  std::vector<uint32_t> order(graph.events.size());
  for (uint32_t e = 0; e < order.size(); ++e) {
    order[e] = e;
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const GraphEvent& first = graph.events[a];
    const GraphEvent& second = graph.events[b];
    return std::pair(first.thread, first.index) < std::pair(second.thread, second.index);
  });
  return order;
}

class IdleAttempts {
 public:
  IdleAttempts(const Graph& graph, const std::vector<uint32_t>& units,
               const std::function<std::string(uint64_t)>& place)
      : graph_(graph), units_(units), place_(place) {
    for (const uint32_t unit : units) {
      ++sizes_[unit];
    }
  }

  std::vector<uint32_t> find() {
    std::vector<uint32_t> idle;
    IdleIterations iterations([&](uint64_t number, bool is_idle) {
      if (is_idle) {
        idle.push_back(static_cast<uint32_t>(number));
      }
    });
    iterations.compare_places(
        {}, [&](uint32_t a, uint32_t b) { return same_line(*text_of_.at(a), *text_of_.at(b)); });
    const uint32_t* before = nullptr;
    const std::vector<uint32_t> order = in_program_order(graph_);
    for (const uint32_t& e : order) {
      if (before != nullptr && is_boundary(*before, e)) {
        add(iterations, EventKind::kUnitBegin, graph_.events[e], 0);
      }
      add(iterations, e);
      before = &e;
    }
    iterations.finish();
    return idle;
  }

 private:
  bool is_boundary(uint32_t before, uint32_t e) {
    return units_[before] != units_[e] && (sizes_[units_[before]] > 1 || sizes_[units_[e]] > 1);
  }

  uint32_t location(uint64_t pc) {
    const auto [known, is_new] = locations_.try_emplace(pc, 0);
    if (is_new) {
      const std::string text = place_(pc);
      const auto next = static_cast<uint32_t>(texts_.size());
      const auto [found, is_new_text] =
          texts_.try_emplace(text.empty() ? std::to_string(pc) : text, next);
      known->second = found->second;
      if (is_new_text) {
        text_of_.push_back(&found->first);
      }
    }
    return known->second;
  }

  void add(IdleIterations& iterations, uint32_t e) {
    const GraphEvent& event = graph_.events[e];
    const bool is_access = has_cell(event.op) && !graph_.cells[event.cell].object && !event.waits;
    if (is_access && event.op == Op::kLoad) {
      add(iterations, EventKind::kRead, event, e);
    } else if (is_access && event.op == Op::kCompareExchange && !event.writes) {
      add(iterations, EventKind::kFence, event, e);
      add(iterations, EventKind::kRead, event, e);
    } else if (is_access && event.op == Op::kStore) {
      add(iterations, EventKind::kWrite, event, e);
    } else if (is_access && is_locked(event.op)) {
      add(iterations, EventKind::kReadModifyWrite, event, e);
    } else {
      add(iterations, event.op == Op::kFence ? EventKind::kFence : EventKind::kUnitBegin, event, e);
    }
  }

  void add(IdleIterations& iterations, EventKind kind, const GraphEvent& from, uint32_t number) {
    Event event;
    event.set_kind(kind);
    event.thread = from.thread;
    event.location = location(from.pc);
    std::optional<uint64_t> read;
    std::optional<uint64_t> written;
    if (kind != EventKind::kFence && kind != EventKind::kUnitBegin) {
      event.address = graph_.cells[from.cell].address + from.offset;
      event.size = from.size;
      event.set_atomic();
      if (kind != EventKind::kWrite) {
        read = digest(from.read, from.size);
      }
      if (kind != EventKind::kRead) {
        written = digest(from.written, from.size);
      }
    }
    block_.clear();
    block_.add(event, 0, 0, read, written);
    iterations.add(block_, block_.events.front(), number);
  }

  // Of more than 8 bytes: the same for the same.
  uint64_t digest(Value value, uint32_t size) {
    return size <= 8 ? static_cast<uint64_t>(value)
                     : wide_values_.try_emplace(value, wide_values_.size()).first->second;
  }

  const Graph& graph_;
  const std::vector<uint32_t>& units_;
  const std::function<std::string(uint64_t)>& place_;
  std::map<uint32_t, uint32_t> sizes_;
  std::map<uint64_t, uint32_t> locations_;
  std::map<Value, uint64_t> wide_values_;
  std::map<std::string, uint32_t> texts_;
  std::vector<const std::string*> text_of_;  // by number
  EventBlock block_;
};

// What read from it reads the same value from the write before.
void take_out_write(Graph* graph, uint32_t e) {
  std::vector<int32_t>& order = graph->cells[graph->events[e].cell].order;
  const auto at = std::find(order.begin(), order.end(), static_cast<int32_t>(e));
  if (at == order.end()) {
    return;
  }
  const int32_t before = at == order.begin() ? kInitial : *std::prev(at);
  for (GraphEvent& reader : graph->events) {
    if (reader.source == static_cast<int32_t>(e)) {
      reader.source = before;
    }
  }
  order.erase(at);
}

}  // namespace

Graph without_idle_attempts(const Graph& graph, const std::vector<uint32_t>& units,
                            const std::function<std::string(uint64_t)>& place) {
  Graph result = graph;
  for (const uint32_t e : IdleAttempts(graph, units, place).find()) {
    GraphEvent& event = result.events[e];
    if (event.op != Op::kLoad) {
      take_out_write(&result, e);
    }
    event.op = event.op == Op::kLoad ? Op::kCall : Op::kFence;
    event.writes = false;
    event.source = kReadsNone;
  }
  return result;
}

}  // namespace tsomon::explore
