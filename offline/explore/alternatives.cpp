#include "offline/explore/alternatives.h"

#include <algorithm>
#include <utility>

#include "tso/support/work.h"

namespace tsomon::explore {
namespace {

const GraphEvent& event_at(const Graph& graph, int32_t e) {
  return graph.events[static_cast<size_t>(e)];
}
GraphEvent& event_at(Graph* graph, int32_t e) { return graph->events[static_cast<size_t>(e)]; }

// Cells with the writes for which `number` is not negative, as these numbers.
template <typename Number>
void take_cells(const Graph& from, Graph* to, const Number& number) {
  to->cells.resize(from.cells.size());
  for (size_t c = 0; c < from.cells.size(); ++c) {
    const GraphCell& cell = from.cells[c];
    GraphCell& taken = to->cells[c];
    taken.address = cell.address;
    taken.size = cell.size;
    taken.object = cell.object;
    taken.parts = cell.parts;
    taken.initial = cell.initial;
    taken.known = cell.known;
    taken.order.clear();
    for (const int32_t e : cell.order) {
      if (const int32_t other = number(e); other >= 0) {
        taken.order.push_back(other);
      }
    }
  }
}

void remove_write(Graph* graph, int32_t e) {
  GraphEvent& event = event_at(graph, e);
  std::erase(graph->cells[event.cell].order, e);
  event.writes = false;
}

size_t place_behind(const Graph& graph, uint32_t cell, int32_t source) {
  if (source == kInitial) {
    return 0;
  }
  const auto& order = graph.cells[cell].order;
  return static_cast<size_t>(std::find(order.begin(), order.end(), source) - order.begin()) + 1;
}

void insert_write(Graph* graph, int32_t e, size_t place) {
  GraphEvent& event = event_at(graph, e);
  auto& order = graph->cells[event.cell].order;
  order.insert(order.begin() + static_cast<ptrdiff_t>(place), e);
  event.writes = true;
}

// This is the event's source: what it writes itself follows. Its own write is not in the order.
void read_from(Graph* graph, int32_t e, int32_t source) {
  GraphEvent& event = event_at(graph, e);
  event.source = source;
  if (event.op == Op::kStore) {
    return insert_write(graph, e, place_behind(*graph, event.cell, source));
  }
  event.read = graph->value_read(event, source);
  event.waits = false;
  if (!is_locked(event.op)) {
    return;
  }
  const Effect effect = effect_of(*graph, event, source);
  event.waits = !effect.enabled;
  event.written = effect.value;
  if (effect.enabled && effect.writes) {
    insert_write(graph, e, place_behind(*graph, event.cell, source));
  }
}

}  // namespace

void Alternatives::find_needed(uint32_t last, uint32_t end, int32_t source) {
  last_ = static_cast<int32_t>(last);
  end_ = static_cast<int32_t>(end);
  needed_.find(last, source);
  maximal_.assign(end, 0);
}

// Whether `e` is as the search adds it: a load of the newest write, or the newest write, among what
// came before it and what the last event depends on.
bool Alternatives::is_maximal(int32_t e) const {
  const auto previous = [&](int32_t other) {
    return is_there(other) && (other <= e || needed_.has(other));
  };
  const Graph& graph = *graph_;
  const GraphEvent& event = event_at(graph, e);
  if (!has_cell(event.op)) {
    return event.op != Op::kAnswer || event.b == 0;
  }
  if (event.writes) {
    for (int32_t other = 0; other < end_; ++other) {
      if (other != e && previous(other) && event_at(graph, other).source == e) {
        return false;
      }
    }
  }
  const auto& order = graph.cells[event.cell].order;
  int32_t newest = kInitial;
  for (const int32_t write : order) {
    newest = write != e && previous(write) && may_be_source(event_at(graph, write), event) ? write
                                                                                           : newest;
  }
  if (has_source(event)) {
    return event.source == newest;
  }
  return newest == kInitial ||
         std::find(order.begin(), order.end(), newest) < std::find(order.begin(), order.end(), e);
}

bool Alternatives::added_maximally(int32_t e) {
  uint8_t& known = maximal_[static_cast<size_t>(e)];
  if (known == 0) {
    known = is_maximal(e) ? 2 : 1;
  }
  return known == 2;
}

// Nothing is left of what neither came before the load nor the last event needs. False: the load is
// needed, or another graph does this.
bool Alternatives::may_revisit(int32_t load) {
  if (needed_.has(load)) {
    return false;
  }
  for (int32_t e = 0; e < end_; ++e) {
    if (e == last_) {
      continue;
    }
    const bool kept = is_kept(e, load);
    if ((!kept || e == load) && !added_maximally(e)) {
      return false;
    }
    if (kept && e != load) {
      const int32_t source = event_at(*graph_, e).source;
      if (source >= 0 && source != load && !is_kept(source, load)) {
        return false;
      }
    }
  }
  return true;
}

// The last event is as the alternative has it, all before it as it was.
void Alternatives::change_last(const Graph& whole, const Alternative& alternative,
                               Graph* made) const {
  const auto last = static_cast<int32_t>(alternative.event);
  made->events.assign(whole.events.begin(), whole.events.begin() + last + 1);
  take_cells(whole, made, [last](int32_t e) { return e <= last ? e : -1; });
  GraphEvent& event = event_at(made, last);
  if (event.op == Op::kAnswer) {
    event.b = alternative.position;
  } else if (!has_source(event)) {
    remove_write(made, last);
    insert_write(made, last, alternative.position);
  } else if (alternative.source != event.source) {
    if (event.writes) {
      remove_write(made, last);
    }
    read_from(made, last, alternative.source);
  }
}

// The load reads the last event. find_needed() was called for it.
void Alternatives::revisit(const Graph& whole, const Alternative& alternative, Graph* made) {
  const int32_t load = alternative.revisited;
  const auto last = static_cast<int32_t>(alternative.event);
  const GraphEvent& event = event_at(whole, last);
  const bool store = !has_source(event);
  const bool reads_another = !store && alternative.source != event.source;
  number_.assign(alternative.end, -1);
  made->events.clear();
  for (int32_t e = 0; e < end_; ++e) {
    if (is_kept(e, load) || e == load) {
      number_[static_cast<size_t>(e)] = static_cast<int32_t>(made->events.size());
      made->events.push_back(event_at(whole, e));
    }
  }
  for (GraphEvent& kept : made->events) {
    kept.source = kept.source >= 0 ? number_[static_cast<size_t>(kept.source)] : kept.source;
  }
  take_cells(whole, made, [&](int32_t e) {
    const bool again = e == load || (e == last && (store || reads_another));
    return e >= end_ || again ? -1 : number_[static_cast<size_t>(e)];
  });
  // The events in front of the load have kept their numbers.
  event_at(made, load).writes = false;
  event_at(made, load).source = kReadsNone;
  const int32_t kept = number_[static_cast<size_t>(last)];
  if (store) {
    insert_write(made, kept, alternative.position);
  } else if (reads_another) {
    event_at(made, kept).writes = false;
    const int32_t source = alternative.source;
    read_from(made, kept, source >= 0 ? number_[static_cast<size_t>(source)] : source);
  }
  read_from(made, load, kept);
}

void Alternatives::make_graph(const Graph& whole, const Alternative& alternative, Graph* made) {
  if (alternative.revisited < 0) {
    change_last(whole, alternative, made);
  } else {
    revisit(whole, alternative, made);
  }
}

void Alternatives::make(const Graph& whole, const Alternative& alternative, Graph* made,
                        std::vector<Choice>* schedule) {
  if (alternative.revisited >= 0) {
    needed_.analyse(whole);
    find_needed(alternative.event, alternative.end, alternative.source);
  }
  make_graph(whole, alternative, made);
  steps_.build(*made, model_, StepGraph::Orders::kCells);
  steps_.sort(schedule);
}

bool Alternatives::offer(const Alternative& alternative) {
  spend(alternative.end);
  make_graph(*graph_, alternative, &made_);
  const bool consistent =
      steps_.build(made_, model_, StepGraph::Orders::kCells) && steps_.sort(nullptr);
  if (consistent) {
    found_.push_back(alternative);
  }
  return consistent;
}

// Backward.
void Alternatives::add_revisits(uint32_t e, uint32_t end, int32_t source, uint32_t positions) {
  const GraphEvent& event = graph_->events[e];
  bool looked = false;
  for (int32_t load = 0; load < static_cast<int32_t>(end); ++load) {
    const GraphEvent& other = event_at(*graph_, load);
    if (!has_source(other) || other.cell != event.cell || other.thread == event.thread ||
        !may_be_source(event, other)) {
      continue;
    }
    if (!looked) {
      find_needed(e, end, source);
      looked = true;
    }
    spend(end);
    if (!may_revisit(load)) {
      continue;
    }
    // A store comes anywhere among the writes that are left.
    uint32_t places = 1;
    if (positions > 1) {
      for (const int32_t write : graph_->cells[event.cell].order) {
        places += is_there(write) && write != load && is_kept(write, load) ? 1 : 0;
      }
    }
    for (uint32_t position = 0; position < places; ++position) {
      offer({e, end, source, position, load});
    }
  }
}

void Alternatives::add_of_event(uint32_t e) {
  const Graph& graph = *graph_;
  const GraphEvent& event = graph.events[e];
  if (event.op == Op::kAnswer) {
    for (uint32_t answer = 1; event.a >> answer != 0; ++answer) {
      if ((event.a >> answer & 1) != 0) {
        offer({e, e + 1, kReadsNone, answer, -1});
      }
    }
    return;
  }
  if (!has_cell(event.op)) {
    return;
  }
  std::vector<int32_t> writes = {kInitial};
  for (const int32_t write : graph.cells[event.cell].order) {
    if (write < static_cast<int32_t>(e) && may_be_source(event_at(graph, write), event)) {
      writes.push_back(write);
    }
  }
  const auto places = static_cast<uint32_t>(writes.size());
  if (!has_source(event)) {
    for (uint32_t position = 0; position + 1 < places; ++position) {
      offer({e, e + 1, kReadsNone, position, -1});
    }
    add_revisits(e, e + 1, kReadsNone, places);
    return;
  }
  for (const int32_t source : writes) {
    // One that waits for what has happened already waits for ever.
    if (source != event.source &&
        (!is_locked(event.op) || effect_of(graph, event, source).enabled)) {
      offer({e, e + 1, source, 0, -1});
    }
  }
  for (size_t i = 0; is_behind_source(event) && i < writes.size(); ++i) {
    const Effect effect = is_locked(event.op) ? effect_of(graph, event, writes[i]) : Effect{};
    if (event.op == Op::kStore || (effect.enabled && effect.writes)) {
      add_revisits(e, e + 1, writes[i], 1);
    }
  }
}

std::vector<Alternative> Alternatives::of(const Graph& graph, uint32_t from, int32_t revisited) {
  found_.clear();
  graph_ = &graph;
  needed_.analyse(graph);
  if (revisited >= 0 && is_behind_source(event_at(graph, revisited)) &&
      event_at(graph, revisited).writes) {
    add_revisits(static_cast<uint32_t>(revisited), from, event_at(graph, revisited).source, 1);
  }
  for (uint32_t e = from; e < graph.events.size(); ++e) {
    add_of_event(e);
  }
  return found_;
}

}  // namespace tsomon::explore
