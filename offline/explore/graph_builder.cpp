// Graphs of runs.
#include <algorithm>
#include <array>
#include <deque>
#include <set>
#include <utility>

#include "offline/explore/execution_graph.h"

namespace tsomon::explore {
namespace {

// The event is in memory now.
void put_write(Graph* graph, int32_t e) {
  GraphEvent& event = graph->events[static_cast<size_t>(e)];
  if (event.op == Op::kStore && event.part) {
    event.source = graph->newest(event.cell);
  }
  graph->cells[event.cell].order.push_back(e);
}

// Whether the run did what the graph has. What was read is looked at where it is not from a store:
// the values of stores are those of this run.
bool is_replayed(const Graph& graph, const GraphEvent& event, const GraphEvent& run, size_t known) {
  if (event.op != run.op || event.waits || (event.op == Op::kAnswer && event.b != run.b) ||
      (has_cell(run.op) &&
       (event.cell != run.cell || event.offset != run.offset || event.size != run.size))) {
    return false;
  }
  if (!reads(event.op) || event.source < 0 || graph.cells[event.cell].parts ||
      static_cast<size_t>(event.source) >= known) {
    return true;
  }
  const GraphEvent& source = graph.events[static_cast<size_t>(event.source)];
  return source.written == run.read || source.waits || source.op == Op::kStore;
}

bool is_in(uint64_t begin, uint64_t end, uint64_t from, uint64_t size) {
  return from >= begin && from + size <= end;
}

}  // namespace

GraphEvent GraphBuilder::event_of(Graph* graph, const Step& step, uint32_t index) {
  GraphEvent event;
  event.thread = step.choice.thread;
  event.index = index;
  event.operation = index;
  event.op = step.op;
  event.size = step.size;
  event.exact = step.exact;
  event.waits = step.waits;
  event.a = step.a;
  event.b = step.b;
  event.read = step.read;
  event.written = step.written;
  event.pc = step.pc;
  if (has_cell(step.op)) {
    event.cell = cell_of(graph, step);
    const GraphCell& cell = graph->cells[event.cell];
    event.offset = static_cast<uint8_t>(step.address - cell.address);
    event.part = step.size != cell.size;
  }
  return event;
}

void GraphBuilder::put_parts(const Key& key) {
  for (const uint64_t at : {std::get<0>(key), std::get<0>(key) + std::get<1>(key)}) {
    if (at % 8 != 0) {
      parts_[at / 8] |= static_cast<uint8_t>(1U << (at % 8));
    }
  }
}

// False: they are too many bytes for a cell.
bool GraphBuilder::join(uint64_t begin, uint64_t end) {
  constexpr uint64_t kMost = sizeof(Value);
  for (const auto& [address, size] : ranges_) {
    if (address < end && begin < address + size) {
      begin = std::min(begin, address);
      end = std::max(end, address + size);
    }
  }
  if (end - begin > kMost) {
    return false;
  }
  std::erase_if(ranges_,
                [&](const auto& range) { return is_in(begin, end, range.first, range.second); });
  ranges_[begin] = static_cast<uint8_t>(end - begin);
  return true;
}

void GraphBuilder::look_for_others(const Key& key, const Access& access) {
  const auto [address, size, object] = key;
  constexpr uint64_t kLargest = 16;
  const uint64_t from = address - std::min(address, kLargest - 1);
  for (auto other = accesses_.lower_bound(Key(from, 0, false));
       other != accesses_.end() && std::get<0>(other->first) < address + size; ++other) {
    const auto [begin, length, is_object] = other->first;
    if (is_object || other->first == key || begin + length <= address) {
      continue;
    }
    if (!access.divisible && !other->second.divisible) {
      if (!join(std::min(address, begin), std::max(address + size, begin + length)) &&
          mixed_.address == 0) {
        mixed_ = {std::max(address, begin), size, access.pc, length, other->second.pc};
      }
      continue;
    }
    if (!access.divisible || other->second.divisible) {
      put_parts(key);
    }
    if (!other->second.divisible || access.divisible) {
      put_parts(other->first);
    }
  }
}

const GraphBuilder::Access& GraphBuilder::note_access(const Key& key, bool divisible, uint64_t pc) {
  const auto [found, is_new] = accesses_.try_emplace(key);
  Access& access = found->second;
  if (is_new) {
    const Key cell = cell_with(key);
    access = {divisible, pc, std::get<0>(cell), std::get<1>(cell), number_of(cell)};
  }
  if ((is_new || (access.divisible && !divisible)) && !std::get<2>(key)) {
    access.divisible = divisible;
    look_for_others(key, access);
  }
  return access;
}

// The range of several accesses, or the access alone.
GraphBuilder::Key GraphBuilder::cell_with(const Key& access) const {
  const auto [address, size, object] = access;
  auto range = ranges_.upper_bound(address);
  if (object || range == ranges_.begin()) {
    return access;
  }
  --range;
  return is_in(range->first, range->first + range->second, address, size)
             ? Key(range->first, range->second, false)
             : access;
}

uint32_t GraphBuilder::number_of(const Key& cell) {
  return numbers_.try_emplace(cell, static_cast<uint32_t>(numbers_.size())).first->second;
}

uint32_t GraphBuilder::cell_of(Graph* graph, const Step& step) {
  const bool object = is_object(step.op);
  const Access& access = note_access({step.address, step.size, object}, step.divisible, step.pc);
  if (graph->cells.size() <= access.cell) {
    graph->cells.resize(access.cell + 1);
  }
  GraphCell& cell = graph->cells[access.cell];
  if (cell.size == 0) {
    cell.address = access.begin;
    cell.size = access.size;
    cell.object = object;
    cell.parts = !object && ranges_.contains(access.begin);
    cell.initial = cell.parts ? 0 : step.initial;
  }
  // The first step on a byte tells what it held before any: it comes before the writes to it.
  const auto offset = static_cast<uint32_t>(step.address - cell.address);
  for (uint32_t byte = 0; cell.parts && byte < step.size; ++byte) {
    if ((cell.known >> (offset + byte) & 1) == 0) {
      cell.known |= static_cast<uint16_t>(1U << (offset + byte));
      cell.initial |= (step.initial >> (8 * byte) & 0xFF) << (8 * (offset + byte));
    }
  }
  return access.cell;
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
    numbers[c] = number_of({cell.address, cell.size, cell.object});
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
  for (const auto& [key, access] : other.accesses_) {
    note_access(key, access.divisible, access.pc);
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
      put_write(&graph, store);
      continue;
    }
    const uint32_t operation = step.waits ? 0 : operations[step.choice.thread]++;
    if (!step.waits && dropped.contains({step.choice.thread, operation})) {
      continue;
    }
    GraphEvent event = event_of(&graph, step, static_cast<uint32_t>(thread.events.size()));
    event.operation = operation;
    const auto e = static_cast<int32_t>(graph.events.size());
    if (reads(step.op)) {
      event.source = graph.newest_for(event);
      for (const int32_t store : thread.buffer) {
        const GraphEvent& own = graph.events[store];
        event.source = own.cell == event.cell && covers(own, event) ? store : event.source;
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
      put_write(&graph, e);
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
    GraphEvent event = event_of(graph, step, index);
    if (i < replayed) {
      if (index >= events.size() ||
          !is_replayed(*graph, graph->events[static_cast<size_t>(events[index])], event, known)) {
        return false;
      }
      GraphEvent& replaced = graph->events[static_cast<size_t>(events[index])];
      replaced.read = step.read;
      replaced.written = step.written;
      replaced.a = step.a;
      replaced.b = step.b;
      replaced.pc = step.pc;
      ++index;
      continue;
    }
    if (index < events.size()) {
      continue;  // it is known to wait
    }
    const auto e = static_cast<int32_t>(graph->events.size());
    if (has_source(event)) {
      event.source = graph->newest_for(event);
    }
    if (is_locked(step.op) && !step.waits) {
      event.writes = effect_of(*graph, event, event.source).writes;
    }
    event.writes = event.writes || step.op == Op::kStore;
    events.push_back(e);
    ++index;
    graph->events.push_back(event);
    if (event.writes) {
      graph->cells[event.cell].order.push_back(e);
    }
  }
  return true;
}

}  // namespace tsomon::explore
