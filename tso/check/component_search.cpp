#include "tso/check/component_search.h"

#include <algorithm>
#include <utility>

#include "tso/check/analysis.h"
#include "tso/check/analysis_budget.h"
#include "tso/check/class_graph.h"
#include "tso/order/execution.h"
#include "tso/support/none.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr uint64_t kPairWork = 4;      // to ask for the order of two events
constexpr size_t kMaxRealised = 1500;  // events of a component whose orientations are all realised
constexpr size_t kMaxWhole = 1000;     // events of a trace that is looked at as a whole
constexpr size_t kMaxWholeOpen = 20'000;
constexpr size_t kMaxTied = 64;  // open edges that values tie to those of a component

}  // namespace

void ComponentSearch::prepare() {
  if ((values_ || sources_ || !options_.only.empty())) {
    for (uint32_t i = 0; i < classes_->edges().size(); ++i) {
      spend(2);
      if (classes_->edges()[i].undirected) {
        open_edges_.push_back(i);
      }
    }
    std::sort(open_edges_.begin(), open_edges_.end(), [this](uint32_t a, uint32_t b) {
      spend(1);
      return ends_of(a) < ends_of(b);
    });
  }
}

// May run on any thread.
SearchedComponent ComponentSearch::search(const WantedComponent& component,
                                          const std::vector<ReadsFrom>& rules,
                                          const OrientationBounds& left) const {
  SearchedComponent searched;
  searched.bounds = left;
  std::vector<uint32_t>& open = searched.open;
  OrientationProblem problem;
  FlatMap<uint32_t, uint32_t> local_event;
  FlatMap<uint32_t, uint32_t> local_class;
  const auto class_index = [&](uint32_t node) {
    return *local_class.try_emplace(node, static_cast<uint32_t>(local_class.size())).first;
  };
  // An event of a class whose cycles do not count is one by itself: no cycle passes by a single event.
  const auto class_of = [&](uint32_t e) {
    const uint32_t node = classes_->class_of(e);
    const bool counts = component.among.empty() ||
                        std::binary_search(component.among.begin(), component.among.end(), node);
    return counts ? node : classes_->classes() + e;
  };
  const auto event_index = [&](uint32_t e) {
    const auto [at, is_new] =
        local_event.try_emplace(e, static_cast<uint32_t>(problem.events.size()));
    if (is_new) {
      problem.events.push_back(e);
      problem.class_of.push_back(class_index(class_of(e)));
    }
    return *at;
  };
  const auto add_open = [&](uint32_t i) {
    const Edge& behind = classes_->events_behind(i);
    problem.open.push_back({event_index(behind.from), event_index(behind.to), true});
    problem.hint.push_back(relation_.lo(behind.from) <= relation_.lo(behind.to) ? 1 : 0);
    open.push_back(i);
  };
  for (const uint32_t i : component.edges) {
    spend(16);
    if (classes_->edges()[i].undirected) {
      add_open(i);
    } else if (const Edge& behind = classes_->events_behind(i);
               component.among.empty() || (class_of(behind.from) < classes_->classes() &&
                                           class_of(behind.to) < classes_->classes())) {
      problem.classes.push_back(
          {class_index(classes_->edges()[i].from), class_index(classes_->edges()[i].to), false});
    }
  }
  searched.tied = forwarding_edges(open);
  std::for_each(searched.tied.begin(), searched.tied.end(), add_open);
  const auto has_edge = [&](uint32_t e) { return local_event.find(e) != nullptr; };
  for (const ReadsFrom& rule : rules) {
    if (options_.only.empty() ||
        (has_edge(rule.read) && has_edge(rule.write) && has_edge(rule.other))) {
      problem.rules.push_back(
          {event_index(rule.read), event_index(rule.write), event_index(rule.other)});
    }
  }
  problem.class_count = static_cast<uint32_t>(local_class.size());
  for (const auto& [node, local] : local_class.entries()) {
    searched.members.push_back(node);
  }
  std::sort(searched.members.begin(), searched.members.end());
  const uint64_t order_work = work_of_order(problem.events.size());
  const bool fits = order_work <= left.max_work && fits_memory(problem.events.size(), open.size());
  auto by_fences = component.whole ? std::nullopt : ask_fenced(component, rules, &searched);
  if (by_fences &&
      (!fits || by_fences->cyclic == Answer::kNo ||
       (by_fences->cyclic == Answer::kYes && by_fences->acyclic != Answer::kUnknown))) {
    take(std::move(*by_fences), &searched);
    return searched;
  }
  std::vector<uint32_t> events;
  std::optional<SliceSteps> slice;  // of these
  OpenPairs places;
  if (options_.relation.semantics == Semantics::kExact && fits) {
    std::vector<uint32_t> own;
    events = component.whole ? all_events() : realisable_events(local_class, &own);
    own = component.whole ? events : std::move(own);
    const std::vector<uint32_t> tied =
        events.empty() || component.whole ? std::vector<uint32_t>() : tied_edges(open, own);
    if (!tied.empty()) {
      searched.tied.insert(searched.tied.end(), tied.begin(), tied.end());
      std::for_each(tied.begin(), tied.end(), add_open);
      problem.class_count = static_cast<uint32_t>(local_class.size());
      events = realisable_events(local_class, &own);
    }
    if (!events.empty()) {
      problem.accept_work = kPairWork * events.size() * events.size();
      add_steps(open, events, slice.emplace(relation_, events), &problem);
      places = places_of(open);
      problem.accept = [this, &places, &slice, own,
                        sources = sources_of(own)](const std::vector<bool>& orientation) {
        const OrientationOracle before = [&](uint32_t e, uint32_t f) {
          return oriented(places, orientation, e, f);
        };
        return (!values_ || values_agree(relation_, accesses_, *values_, own, before)) &&
               sources_come_first(relation_, sources, before) && slice->realisable(before);
      };
      add_choices(places, own, &problem);
    }
  }
  problem.before = [this, &problem](uint32_t i, uint32_t j) {
    return graph_->order.reaches(problem.events[i], problem.events[j]);
  };
  if (fits) {
    problem.event_order = graph_->order.among(problem.events);
    searched.work += order_work;
  }
  searched.result = options_.search(problem, left);
  searched.steps += searched.result.steps;
  searched.work += searched.result.work;
  if (const auto& closing = searched.result.closing) {
    searched.closing = {problem.events[closing->from], problem.events[closing->to]};
  }
  searched.by_executions = static_cast<bool>(problem.accept);
  searched.realised = searched.by_executions && searched.result.has_orientation;
  if (by_fences && by_fences->cyclic == Answer::kYes &&
      searched.result.cyclic == Answer::kUnknown) {
    take(std::move(*by_fences), &searched);
  }
  return searched;
}

void ComponentSearch::take(OrientationResult by_fences, SearchedComponent* searched) {
  searched->fenced = true;
  searched->open.resize(searched->open.size() - searched->tied.size());
  searched->tied.clear();
  searched->realised = by_fences.has_orientation;
  searched->result = std::move(by_fences);
  searched->closing.reset();
}

// Components whose units all end fenced have a check of their own. Nothing: it does not apply.
std::optional<OrientationResult> ComponentSearch::ask_fenced(const WantedComponent& component,
                                                             const std::vector<ReadsFrom>& rules,
                                                             SearchedComponent* searched) const {
  const std::vector<UnitId>& members = searched->members;
  const std::vector<uint32_t>& open = searched->open;
  if (!options_.fenced || options_.property != Property::kSerializability ||
      options_.relation.model != MemoryModel::kTso ||
      options_.relation.semantics != Semantics::kExact ||
      !std::all_of(members.begin(), members.end(), [&](UnitId unit) {
        return fences_.fenced(unit) && fences_.forwarded_from(unit) == UnitTable::kNone;
      })) {
    return std::nullopt;
  }
  std::vector<Edge> pairs(open.size());
  std::transform(open.begin(), open.end(), pairs.begin(),
                 [&](uint32_t i) { return classes_->events_behind(i); });
  std::vector<Edge> directed;
  for (const uint32_t i : component.edges) {
    if (!classes_->edges()[i].undirected) {
      directed.push_back({classes_->edges()[i].from, classes_->edges()[i].to});
    }
  }
  ComponentQuestion question{relation_, units_, fences_, *graph_, members, pairs, directed, {}};
  if (values_ || !rules.empty()) {
    std::vector<uint32_t> own;
    for (const UnitId unit : members) {
      add_members(*in_, unit, &own);
    }
    question.accept = [this, places = places_of(open), own,
                       &rules](const std::vector<bool>& orientation) {
      const OrientationOracle before = [&](uint32_t e, uint32_t f) {
        return oriented(places, orientation, e, f);
      };
      return std::all_of(rules.begin(), rules.end(),
                         [&](const ReadsFrom& rule) {
                           return before(rule.write, rule.other) != Order::kBefore ||
                                  before(rule.read, rule.other) != Order::kAfter;
                         }) &&
             (!values_ || values_agree(relation_, accesses_, *values_, own, before));
    };
  }
  OrientationResult found = options_.fenced(question, searched->bounds);
  searched->work += found.work;
  searched->steps += found.steps;
  return found;
}

// A few rows of words for every event, and its place on the chains of others.
uint64_t ComponentSearch::work_of_order(uint64_t events) { return events * (events / 8 + 64); }
bool ComponentSearch::fits_memory(uint64_t events, uint64_t open) const {
  return bytes_of_part(events, open) <= options_.bounds.max_bytes;
}

void ComponentSearch::add_steps(const std::vector<uint32_t>& open,
                                const std::vector<uint32_t>& slice, const SliceSteps& steps,
                                OrientationProblem* problem) const {
  std::vector<Edge> pairs;
  pairs.reserve(open.size());
  for (const uint32_t i : open) {
    pairs.push_back(classes_->events_behind(i));
  }
  problem->steps = steps.order([&](uint32_t e, uint32_t f) { return certain(e, f); }, pairs);
  const bool tso = relation_.options().model == MemoryModel::kTso;
  for (const uint32_t e : problem->events) {
    const auto place =
        static_cast<uint32_t>(std::lower_bound(slice.begin(), slice.end(), e) - slice.begin());
    problem->step_of.emplace_back(2 * place, 2 * place + (tso && relation_.is_store(e) ? 1 : 0));
  }
}

// As ReadChoice::order has it, of two events without an open edge.
int32_t ComponentSearch::in_choice(Order known) {
  return known == Order::kBefore  ? ReadChoice::kBefore
         : known == Order::kAfter ? ReadChoice::kAfter
                                  : ReadChoice::kNone;
}
bool ComponentSearch::reads_known_value(uint32_t e) const {
  const LocationId location = relation_.locations().of_event(e);
  return location != LocationTable::kNone && values_->usable(location) && values_->read(e);
}

std::vector<LoadSources> ComponentSearch::sources_of(const std::vector<uint32_t>& loads) const {
  return sources_ ? foreign_sources(relation_, accesses_, *sources_, graph_->order, loads)
                  : std::vector<LoadSources>();
}

// Open edges that lie on no cycle with those of a component (`open`), or not on one that is wanted,
// but that say which stores the loads of the component (`own`) may have read: between events that are
// units of their own, or units of the component. No more than kMaxTied.
std::vector<uint32_t> ComponentSearch::tied_edges(const std::vector<uint32_t>& open,
                                                  const std::vector<uint32_t>& own) const {
  std::vector<uint32_t> tied;
  if (!values_ && !sources_) {
    return tied;
  }
  OpenPairs places = places_of(open);
  std::vector<uint32_t> events = own;
  std::vector<uint32_t> sorted = own;
  std::sort(sorted.begin(), sorted.end());
  const auto may_be_tied = [&](uint32_t e) {
    return std::binary_search(sorted.begin(), sorted.end(), e) ||
           units_[units_.of_event(e)].label == Interner::kNone;
  };
  const auto order = [&](uint32_t e, uint32_t f) {
    const Order known = certain(e, f);
    if (known == Order::kNone && tied.size() < kMaxTied && !places.find(e, f) && may_be_tied(e) &&
        may_be_tied(f)) {
      if (const auto edge = open_edge_between(e, f)) {
        tied.push_back(*edge);
        places.add(classes_->events_behind(*edge));
        events.insert(events.end(), {e, f});
      }
    }
    return in_choice(known);
  };
  for (size_t i = 0; i < events.size() && tied.size() < kMaxTied; ++i) {
    if (sources_) {
      for (const LoadSources& load : sources_of({events[i]})) {
        std::for_each(load.stores.begin(), load.stores.end(),
                      [&](uint32_t w) { order(w, load.load); });
        if (load.overwritten_by != Relation::kNever) {
          order(load.overwritten_by, load.load);
        }
      }
    } else if (reads_known_value(events[i])) {
      read_choice(relation_, accesses_, *values_, events[i], order);
    }
  }
  return tied;
}

// Where not all cycles are wanted: the order of a store with the source of a load says whether it
// may come before the load (theory section 5.1), also where that source is not wanted.
std::vector<uint32_t> ComponentSearch::forwarding_edges(const std::vector<uint32_t>& open) const {
  std::vector<uint32_t> tied;
  if (options_.only.empty() || options_.relation.semantics != Semantics::kExact) {
    return tied;
  }
  OpenPairs places = places_of(open);
  for (const uint32_t i : open) {
    spend(4);
    const Edge& behind = classes_->events_behind(i);
    for (const auto& [load, store] :
         {std::pair{behind.from, behind.to}, std::pair{behind.to, behind.from}}) {
      const uint32_t source = relation_.source(load);
      if (source == Relation::kNever || places.find(source, store)) {
        continue;
      }
      if (const auto edge = open_edge_between(source, store)) {
        tied.push_back(*edge);
        places.add(classes_->events_behind(*edge));
      }
    }
  }
  return tied;
}

std::optional<uint32_t> ComponentSearch::open_edge_between(uint32_t e, uint32_t f) const {
  const std::pair<uint32_t, uint32_t> pair = std::minmax(e, f);
  const auto at = std::partition_point(open_edges_.begin(), open_edges_.end(),
                                       [&](uint32_t edge) { return ends_of(edge) < pair; });
  return at != open_edges_.end() && ends_of(*at) == pair ? std::optional(*at) : std::nullopt;
}
std::pair<uint32_t, uint32_t> ComponentSearch::ends_of(uint32_t edge) const {
  const Edge& behind = classes_->events_behind(edge);
  return std::minmax(behind.from, behind.to);
}

void ComponentSearch::add_choices(const OpenPairs& places, const std::vector<uint32_t>& own,
                                  OrientationProblem* problem) const {
  if (!values_) {
    return;
  }
  const auto order = [&](uint32_t e, uint32_t f) {
    if (const auto place = places.find(e, f)) {
      return static_cast<int32_t>(2 * place->number + (place->forward ? 0 : 1));
    }
    return in_choice(certain(e, f));
  };
  for (const uint32_t e : own) {
    if (!reads_known_value(e)) {
      continue;
    }
    auto choice = read_choice(relation_, accesses_, *values_, e, order);
    if (choice && std::any_of(choice->order.begin(), choice->order.end(),
                              [](int32_t known) { return known >= 0; })) {
      problem->choices.push_back(std::move(*choice));
    }
  }
}

// The open edges of a component, for many orientations of all of them.
OpenPairs ComponentSearch::places_of(const std::vector<uint32_t>& open) const {
  OpenPairs places;
  places.reserve(open.size());
  for (const uint32_t i : open) {
    spend(4);
    places.add(classes_->events_behind(i));
  }
  return places;
}

Order ComponentSearch::oriented(const OpenPairs& places, const std::vector<bool>& orientation,
                                uint32_t e, uint32_t f) const {
  const Order order = places.order(orientation, e, f);
  return order != Order::kNone ? order : certain(e, f);
}

Order ComponentSearch::certain(uint32_t e, uint32_t f) const {
  if (graph_->order.reaches(e, f)) {
    return Order::kBefore;
  }
  return graph_->order.reaches(f, e) ? Order::kAfter : Order::kNone;
}

// The events that decide whether an orientation of a component has an execution: those of the component,
// around each forwarded load what its thread does until its store has left the buffer, for a
// load that turns out to read memory holds back the loads after it, and stores that were issued
// before a load of the component but, as the values say, came after it. Empty: too many.
std::vector<uint32_t> ComponentSearch::realisable_events(const FlatMap<uint32_t, uint32_t>& classes,
                                                         std::vector<uint32_t>* own) const {
  std::vector<uint32_t> events;
  for (const auto& [node, local] : classes.entries()) {
    add_members(*in_, node, &events);
    if (options_.property == Property::kRobustness) {
      events.push_back(node);
    }
    if (events.size() > kMaxRealised) {
      return {};
    }
  }
  *own = events;
  for (const uint32_t load : *own) {
    add_overtaken(load, &events);
    const uint32_t source = relation_.source(load);
    if (source == Relation::kNever) {
      continue;
    }
    const auto thread = relation_.of_thread(trace_.events[source].thread);
    for (size_t at = relation_.position(source);
         at < thread.size() && thread[at] != relation_.visible_by(load); ++at) {
      if (classes_->class_of()[thread[at]] != kNone) {
        events.push_back(thread[at]);
      }
      if (events.size() > 4 * kMaxRealised) {
        return {};
      }
    }
  }
  // Loads among the added ones may be forwarded from still older stores.
  for (size_t i = own->size(); i < events.size(); ++i) {
    if (const uint32_t source = relation_.source(events[i]); source != Relation::kNever) {
      events.push_back(source);
    }
  }
  std::sort(events.begin(), events.end());
  events.erase(std::unique(events.begin(), events.end()), events.end());
  return events.size() > kMaxRealised ? std::vector<uint32_t>() : events;
}

bool ComponentSearch::fits_whole() const {
  return open_edges_.size() <= kMaxWholeOpen && all_events().size() <= kMaxWhole;
}

std::vector<uint32_t> ComponentSearch::all_events() const {
  std::vector<uint32_t> events;
  for (uint32_t e = 0; e < trace_.events.size() && events.size() <= kMaxWhole; ++e) {
    spend(1);
    if (classes_->class_of(e) != kNone) {
      events.push_back(e);
    }
  }
  return events;
}

void ComponentSearch::add_overtaken(uint32_t load, std::vector<uint32_t>* events) const {
  const LocationId location = relation_.locations().of_event(load);
  if (!values_ || location == LocationTable::kNone || !values_->read(load)) {
    return;
  }
  for (const ThreadAccesses& list : accesses_.at(location)) {
    for (auto w = std::partition_point(
             list.writes.begin(), list.writes.end(),
             [&](uint32_t write) { return !graph_->order.reaches(load, write); });
         w != list.writes.end() && relation_.between(load, *w) == Order::kUndirected; ++w) {
      events->push_back(*w);
    }
  }
}

}  // namespace tsomon
