#include "offline/explore/class_properties.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "offline/explore/dependencies.h"
#include "tso/support/work.h"

namespace tsomon::explore {
namespace {

std::map<uint16_t, std::vector<uint32_t>> by_thread(const Graph& graph) {
  std::map<uint16_t, std::vector<uint32_t>> threads;
  for (uint32_t e = 0; e < graph.events.size(); ++e) {
    if (graph.events[e].op != Op::kCall) {
      threads[graph.events[e].thread].push_back(e);
    }
  }
  for (auto& [thread, events] : threads) {
    std::sort(events.begin(), events.end(), [&](uint32_t a, uint32_t b) {
      return graph.events[a].index < graph.events[b].index;
    });
  }
  return threads;
}

// The i-th event of a thread reads nothing but what was in its store buffer.
bool is_forwarded(const Graph& graph, const std::vector<uint32_t>& events, size_t i) {
  const GraphEvent& load = graph.events[events[i]];
  if (load.op != Op::kLoad) {
    return false;
  }
  const auto in_buffer = [&](int32_t source) {
    return source >= 0 && graph.events[source].thread == load.thread &&
           graph.events[source].op == Op::kStore &&
           std::none_of(events.begin(), events.begin() + static_cast<ptrdiff_t>(i),
                        [&](uint32_t between) {
                          return graph.events[between].index > graph.events[source].index &&
                                 drains(graph.events[between].op);
                        });
  };
  if (!graph.cells[load.cell].parts) {
    return in_buffer(load.source);
  }
  for (uint32_t byte = load.offset; byte < uint32_t{load.offset} + load.size; ++byte) {
    if (!in_buffer(graph.source_of_byte(load, byte))) {
      return false;
    }
  }
  return true;
}

// Program order that the memory model keeps, between all pairs of one thread.
template <typename Add>
void add_program_order(const Graph& graph, Model model, const std::vector<uint32_t>& events,
                       const Add& add) {
  for (size_t i = 0; i < events.size(); ++i) {
    const GraphEvent& e = graph.events[events[i]];
    const bool forwarded = is_forwarded(graph, events, i);
    spend(events.size());
    for (size_t j = i + 1; j < events.size(); ++j) {
      const GraphEvent& f = graph.events[events[j]];
      const bool other_load = f.op == Op::kLoad && !share_bytes(e, f);
      const bool relaxed = model == Model::kTso && other_load && (e.op == Op::kStore || forwarded);
      if (!relaxed) {
        add(events[i], events[j], false);
      }
    }
  }
}

// Of a load that has each byte from a write of its own.
template <typename Add>
void add_conflicts_of_bytes(const Graph& graph, uint32_t e, const Add& add) {
  const GraphEvent& load = graph.events[e];
  for (uint32_t byte = load.offset; byte < uint32_t{load.offset} + load.size; ++byte) {
    const int32_t source = graph.source_of_byte(load, byte);
    bool seen = source >= 0;
    for (const int32_t other : graph.cells[load.cell].order) {
      const auto write = static_cast<uint32_t>(other);
      if (write != e && has_byte(graph.events[write], byte)) {
        seen ? add(write, e, true) : add(e, write, true);
      }
      seen = seen && other != source;
    }
  }
}

template <typename Add>
void add_conflicts(const Graph& graph, const Add& add) {
  std::vector<std::map<int32_t, size_t>> places(graph.cells.size());
  for (size_t c = 0; c < graph.cells.size(); ++c) {
    const auto& order = graph.cells[c].order;
    for (size_t i = 0; i < order.size(); ++i) {
      places[c][order[i]] = i;
      for (size_t j = 0; j < i; ++j) {
        if (share_bytes(graph.events[order[j]], graph.events[order[i]])) {
          add(static_cast<uint32_t>(order[j]), static_cast<uint32_t>(order[i]), true);
        }
      }
    }
  }
  for (uint32_t e = 0; e < graph.events.size(); ++e) {
    const GraphEvent& load = graph.events[e];
    if (!reads(load.op) || load.waits) {
      continue;
    }
    const auto& order = graph.cells[load.cell].order;
    if (graph.cells[load.cell].parts) {
      spend(order.size() * load.size);
      add_conflicts_of_bytes(graph, e, add);
      continue;
    }
    const size_t seen = load.source < 0 ? 0 : places[load.cell][load.source] + 1;
    spend(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      const auto write = static_cast<uint32_t>(order[i]);
      if (write == e) {
        continue;
      }
      i < seen ? add(write, e, true) : add(e, write, true);
    }
  }
}

}  // namespace

bool is_robust(const Graph& graph) { return linearize(graph, Model::kSc, nullptr); }

std::vector<uint32_t> units_of(const Graph& graph, const std::vector<Mark>& marks) {
  std::vector<uint32_t> units(graph.events.size());
  uint32_t next = 0;
  for (const auto& [thread, events] : by_thread(graph)) {
    // Where units begin and end, before which operation.
    std::map<uint32_t, std::vector<MarkKind>> boundaries;
    for (const Mark& mark : marks) {
      if (mark.thread == thread && is_unit_mark(mark.kind)) {
        boundaries[mark.operation].push_back(mark.kind);
      }
    }
    auto boundary = boundaries.begin();
    uint32_t depth = 0;
    uint32_t current = 0;
    for (const uint32_t e : events) {
      for (; boundary != boundaries.end() && boundary->first <= graph.events[e].operation;
           ++boundary) {
        for (const MarkKind kind : boundary->second) {
          if (kind == MarkKind::kUnitBegin) {
            current = depth++ == 0 ? next++ : current;
          } else if (depth > 0) {
            --depth;
          }
        }
      }
      units[e] = depth > 0 ? current : next++;
    }
  }
  return units;
}

std::optional<std::vector<UnitEdge>> unit_cycle(const Graph& graph, Model model,
                                                const std::vector<uint32_t>& units) {
  std::map<uint32_t, std::map<uint32_t, UnitEdge>> edges;
  const auto add = [&](uint32_t from, uint32_t to, bool conflict) {
    if (units[from] == units[to]) {
      return;
    }
    UnitEdge& edge =
        edges[units[from]].try_emplace(units[to], UnitEdge{from, to, conflict}).first->second;
    if (conflict && !edge.conflict) {
      edge = {from, to, true};
    }
  };
  for (const auto& [thread, events] : by_thread(graph)) {
    add_program_order(graph, model, events, add);
  }
  add_conflicts(graph, add);
  std::optional<std::vector<UnitEdge>> best;
  for (const auto& [start, ignored] : edges) {
    // Breadth first from each unit back to it.
    std::map<uint32_t, UnitEdge> reached;
    std::vector<uint32_t> queue = {start};
    for (size_t at = 0; at < queue.size() && !reached.contains(start); ++at) {
      const auto out = edges.find(queue[at]);
      if (out == edges.end()) {
        continue;
      }
      spend(out->second.size());
      for (const auto& [unit, edge] : out->second) {
        if (reached.try_emplace(unit, edge).second) {
          queue.push_back(unit);
        }
      }
    }
    if (!reached.contains(start)) {
      continue;
    }
    std::vector<UnitEdge> cycle;
    uint32_t unit = start;
    do {
      cycle.push_back(reached.at(unit));
      unit = units[reached.at(unit).from];
    } while (unit != start);
    if (!best || cycle.size() < best->size()) {
      std::reverse(cycle.begin(), cycle.end());
      best = std::move(cycle);
    }
  }
  return best;
}

std::optional<EarlyFree> early_free(const Graph& graph, Model model,
                                    const std::vector<Mark>& marks) {
  // A store to a part of a cell may be executed before the write that it keeps bytes of.
  const bool parts = std::any_of(graph.cells.begin(), graph.cells.end(),
                                 [](const GraphCell& cell) { return cell.parts; });
  Dependencies dependencies;
  bool looked = false;
  std::vector<uint32_t> events;
  for (const Mark& mark : marks) {
    if (mark.kind != MarkKind::kFree) {
      continue;
    }
    const std::optional<uint32_t> freed = event_before(graph, mark);
    if (freed && !looked) {
      dependencies.analyse(graph);
      looked = true;
    }
    if (freed) {
      dependencies.find(*freed, graph.events[*freed].source);
    }
    events.clear();
    for (uint32_t e = 0; freed && e < graph.events.size(); ++e) {
      const GraphEvent& event = graph.events[e];
      if (!has_cell(event.op) || event.waits || event.thread == mark.thread) {
        continue;
      }
      const uint64_t address = graph.cells[event.cell].address + event.offset;
      if (address >= mark.address && address < mark.address + mark.size &&
          (parts || !dependencies.has(static_cast<int32_t>(e)))) {
        events.push_back(e);
      }
    }
    // Mostly all come before it in every execution; else which do has to be looked for.
    if (events.empty()) {
      continue;
    }
    events.push_back(*freed);
    const auto before = executed_before(graph, model, events);
    for (size_t i = 0; i + 1 < events.size(); ++i) {
      if (!before[i].back()) {
        EarlyFree found{events[i], {}};
        linearize(graph, model, &found.schedule, {*freed, events[i]});
        return found;
      }
    }
  }
  return std::nullopt;
}

}  // namespace tsomon::explore
