// Graphs of runs.
#include <algorithm>
#include <array>
#include <deque>
#include <set>
#include <utility>

#include "offline/explore/execution_graph.h"

namespace tsomon::explore {
namespace {

GraphEvent event_of(const Step& step, uint32_t cell, uint32_t index) {
  GraphEvent event;
  event.thread = step.choice.thread;
  event.index = index;
  event.operation = index;
  event.op = step.op;
  event.size = step.size;
  event.exact = step.exact;
  event.waits = step.waits;
  event.cell = cell;
  event.a = step.a;
  event.b = step.b;
  event.read = step.read;
  event.written = step.written;
  event.pc = step.pc;
  return event;
}

}  // namespace

void GraphBuilder::put_parts(const Key& key) {
  for (const uint64_t at : {std::get<0>(key), std::get<0>(key) + std::get<1>(key)}) {
    if (at % 8 != 0) {
      parts_[at / 8] |= static_cast<uint8_t>(1U << (at % 8));
    }
  }
}

void GraphBuilder::look_for_others(const Key& key, const Cell& cell) {
  const auto [address, size, object] = key;
  constexpr uint64_t kLargest = 16;
  const uint64_t from = address - std::min(address, kLargest - 1);
  for (auto other = cells_.lower_bound(Key(from, 0, false));
       other != cells_.end() && std::get<0>(other->first) < address + size; ++other) {
    const auto [begin, length, is_object] = other->first;
    if (is_object || other->first == key || begin + length <= address) {
      continue;
    }
    if (!cell.divisible && !other->second.divisible) {
      if (mixed_.address == 0) {
        mixed_ = {std::max(address, begin), size, cell.pc, length, other->second.pc};
      }
      continue;
    }
    if (!cell.divisible || other->second.divisible) {
      put_parts(key);
    }
    if (!other->second.divisible || cell.divisible) {
      put_parts(other->first);
    }
  }
}

uint32_t GraphBuilder::number_of(const Key& key, bool divisible, uint64_t pc) {
  const auto [found, is_new] =
      cells_.try_emplace(key, Cell{static_cast<uint32_t>(cells_.size()), divisible, pc});
  Cell& cell = found->second;
  const bool is_news = is_new || (cell.divisible && !divisible);
  cell.divisible = cell.divisible && divisible;
  if (is_news && !std::get<2>(key)) {
    look_for_others(key, cell);
  }
  return cell.number;
}

uint32_t GraphBuilder::cell_of(Graph* graph, const Step& step) {
  const bool object = is_object(step.op);
  const uint32_t cell = number_of({step.address, step.size, object}, step.divisible, step.pc);
  if (graph->cells.size() <= cell) {
    graph->cells.resize(cell + 1);
  }
  GraphCell& entry = graph->cells[cell];
  if (entry.size == 0) {
    entry.address = step.address;
    entry.size = step.size;
    entry.object = object;
    entry.initial = step.initial;
  }
  return cell;
}

Graph GraphBuilder::adopt(const Graph& graph) {
  Graph adopted;
  adopted.events = graph.events;
  std::vector<uint32_t> numbers(graph.cells.size(), 0);
  for (size_t c = 0; c < graph.cells.size(); ++c) {
    const GraphCell& cell = graph.cells[c];
    if (cell.size == 0) {
      continue;  // of other graphs
    }
    numbers[c] = number_of({cell.address, cell.size, cell.object}, true, 0);
    if (adopted.cells.size() <= numbers[c]) {
      adopted.cells.resize(numbers[c] + 1);
    }
    adopted.cells[numbers[c]] = cell;
  }
  for (GraphEvent& event : adopted.events) {
    event.cell = has_cell(event.op) ? numbers[event.cell] : 0;
  }
  return adopted;
}

void GraphBuilder::add_cells(const GraphBuilder& other) {
  for (const auto& [key, cell] : other.cells_) {
    number_of(key, cell.divisible, cell.pc);
  }
}

Graph GraphBuilder::of_run(const Run& run, Model model, bool drop_iterations) {
  Graph graph;
  struct Thread {
    std::vector<int32_t> events;  // in program order
    std::deque<int32_t> buffer;   // stores that have not been committed
  };
  std::map<uint16_t, Thread> threads;
  const bool tso = model == Model::kTso;
  std::set<std::pair<uint16_t, uint32_t>> dropped;  // operations by thread and number
  if (drop_iterations) {
    for (const Mark& mark : run.marks) {
      for (uint32_t i = 0; mark.kind == MarkKind::kIteration && i < mark.value; ++i) {
        dropped.insert({mark.thread, mark.operation - 1 - i});
      }
    }
  }
  std::map<uint16_t, uint32_t> operations;
  for (const Step& step : run.steps) {
    Thread& thread = threads[step.choice.thread];
    if (step.choice.commit != 0) {
      if (thread.buffer.empty()) {
        continue;
      }
      const int32_t store = thread.buffer.front();
      thread.buffer.pop_front();
      graph.cells[graph.events[store].cell].order.push_back(store);
      continue;
    }
    const uint32_t operation = step.waits ? 0 : operations[step.choice.thread]++;
    if (!step.waits && dropped.contains({step.choice.thread, operation})) {
      continue;
    }
    const uint32_t cell = has_cell(step.op) ? cell_of(&graph, step) : 0;
    GraphEvent event = event_of(step, cell, static_cast<uint32_t>(thread.events.size()));
    event.operation = operation;
    const auto e = static_cast<int32_t>(graph.events.size());
    if (reads(step.op)) {
      event.source = graph.newest(cell);
      for (const int32_t store : thread.buffer) {
        event.source = graph.events[store].cell == cell ? store : event.source;
      }
    }
    if (is_locked(step.op) && !step.waits) {
      event.writes = effect_of(graph, event, event.source).writes;
    }
    if (step.op == Op::kStore) {
      event.writes = true;
      if (tso) {
        thread.buffer.push_back(e);
      }
    }
    graph.events.push_back(event);
    thread.events.push_back(e);
    if (event.writes && !(tso && step.op == Op::kStore)) {
      graph.cells[cell].order.push_back(e);
    }
  }
  return graph;
}

bool GraphBuilder::extend(Graph* graph, const Run& run, size_t replayed) {
  // By thread: numbers of its events, in their order; how many of them have been run.
  std::array<uint32_t, kMaxThreads + 1> next{};
  for (std::vector<int32_t>& events : events_of_) {
    events.clear();
  }
  for (size_t e = 0; e < graph->events.size(); ++e) {
    events_of_.at(graph->events[e].thread).push_back(static_cast<int32_t>(e));
  }
  const size_t known = graph->events.size();
  // A load that was given another value can end the program before the others have run.
  if (run.steps.size() < replayed && run.end != End::kCrashed && run.end != End::kExited) {
    return false;
  }
  for (size_t i = 0; i < run.steps.size(); ++i) {
    const Step& step = run.steps[i];
    if (step.choice.commit != 0) {
      continue;
    }
    std::vector<int32_t>& events = events_of_.at(step.choice.thread);
    uint32_t& index = next.at(step.choice.thread);
    const uint32_t cell = has_cell(step.op) ? cell_of(graph, step) : 0;
    if (i < replayed) {
      if (index >= events.size()) {
        return false;
      }
      GraphEvent& event = graph->events[static_cast<size_t>(events[index])];
      if (event.op != step.op || event.waits || (event.op == Op::kAnswer && event.b != step.b) ||
          (has_cell(step.op) && (event.cell != cell || event.size != step.size))) {
        return false;
      }
      if (reads(event.op) && event.source >= 0 &&
          graph->events[event.source].written != step.read && !graph->events[event.source].waits &&
          static_cast<size_t>(event.source) < known &&
          graph->events[event.source].op != Op::kStore) {
        return false;
      }
      event.read = step.read;
      event.written = step.written;
      event.a = step.a;
      event.b = step.b;
      event.pc = step.pc;
      ++index;
      continue;
    }
    if (index < events.size()) {
      continue;  // it is known to wait
    }
    GraphEvent event = event_of(step, cell, index);
    const auto e = static_cast<int32_t>(graph->events.size());
    if (reads(step.op)) {
      event.source = graph->newest(cell);
    }
    if (is_locked(step.op) && !step.waits) {
      event.writes = effect_of(*graph, event, event.source).writes;
    }
    event.writes = event.writes || step.op == Op::kStore;
    events.push_back(e);
    ++index;
    graph->events.push_back(event);
    if (event.writes) {
      graph->cells[cell].order.push_back(e);
    }
  }
  return true;
}

}  // namespace tsomon::explore
