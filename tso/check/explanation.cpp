#include "tso/check/explanation.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "tso/check/cycle.h"
#include "tso/check/definitions.h"
#include "tso/check/further_cycles.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr size_t kMaxSlice = 4000;  // events that a finding is shown with

}  // namespace

void add_members(const AnalysedTrace& analysed, uint32_t node, std::vector<uint32_t>* events) {
  if (analysed.options.property == Property::kRobustness) {
    return;  // the events on the cycle themselves
  }
  const Unit& unit = analysed.units[node];
  spend(1 + (unit.last_event - unit.first_event));
  for (uint32_t e = unit.first_event; e <= unit.last_event; ++e) {
    if (analysed.classes.class_of(e) == node) {
      events->push_back(e);
    }
  }
}

bool Explainer::explain(const ViolatedComponent& component, Violation* finding, std::string* why) {
  Orientation chosen = orientation_of(component);
  const OrientationOracle before = oracle_of(chosen);
  finding->cycle = plain_cycle(component, before);
  TSOMON_CHECK(!finding->cycle.empty(), "a cyclic component has no cycle");
  collect_window(finding);
  if (!component.result.has_orientation) {
    // Too large to be oriented as a whole: directed edges, and at most one more, close the cycle;
    // the slice suffices.
    auto slice = orient_slice(component, finding->slice);
    if (slice) {
      chosen = std::move(*slice);
    } else if (component.closing) {
      *why = fmt::format("a component with {} open edges exceeds the bound", component.open.size());
      return false;
    } else {
      chosen = {};
    }
  }
  return show(component, before, finding, why);
}

std::vector<CycleEdge> Explainer::plain_cycle(const ViolatedComponent& component) const {
  const Orientation chosen = orientation_of(component);
  return plain_cycle(component, oracle_of(chosen));
}

std::vector<CycleEdge> Explainer::plain_cycle(const ViolatedComponent& component,
                                              const OrientationOracle& before) const {
  return shortened(
      in_.relation, in_.classes.class_of(),
      shortest_cycle_of_data(in_.trace, cycle_in(component, before), in_.classes.class_of()));
}

bool Explainer::in_every_execution(const std::vector<CycleEdge>& cycle) const {
  return std::all_of(cycle.begin(), cycle.end(), [&](const CycleEdge& edge) {
    return edge.kind != EdgeKind::kReordering || in_.graph.order.reaches(edge.from, edge.to);
  });
}

std::vector<uint32_t> Explainer::cycle_of_every_execution(
    const ViolatedComponent& component) const {
  for (const Through through : {Through::kConflicts, Through::kAll}) {
    auto cycles = certain_cycles(component, through, {});
    if (!cycles.empty()) {
      return std::move(cycles.front());
    }
  }
  return {};
}

std::vector<std::vector<uint32_t>> Explainer::further(const ViolatedComponent& component,
                                                      const std::vector<CycleEdge>& shown) const {
  return certain_cycles(component, Through::kConflicts, shown);
}

std::vector<std::vector<uint32_t>> Explainer::certain_cycles(
    const ViolatedComponent& component, Through through, const std::vector<CycleEdge>& but) const {
  std::vector<CycleEdge> edges;
  std::vector<uint32_t> number;
  for (const uint32_t i : component.edges) {
    spend(4);
    const Edge& behind = in_.classes.events_behind(i);
    if (in_.classes.edges()[i].undirected ||
        (through == Through::kConflicts &&
         orders_lock(in_.trace.events[behind.from], in_.trace.events[behind.to]))) {
      continue;
    }
    const EdgeKind kind = directed_kind(behind);
    // By starts and joins all that a thread does lies inside of a unit that waits for it.
    if (through == Through::kAll || (kind != EdgeKind::kThread && kind != EdgeKind::kHandOver)) {
      edges.push_back({in_.classes.class_of(behind.from), behind.from, behind.to, kind});
      number.push_back(i);
    }
  }
  const auto kind = [&](const CycleEdge& edge) {
    uint64_t hash = 0;
    for (const uint32_t e : {edge.from, edge.to}) {
      const Event& event = in_.trace.events[e];
      for (const uint64_t part : {uint64_t{in_.units[in_.units.of_event(e)].label},
                                  uint64_t{event.location}, static_cast<uint64_t>(event.kind())}) {
        hash = (hash ^ part) * 0x9E3779B97F4A7C15ULL;
        hash ^= hash >> 32;
      }
    }
    return hash;
  };
  const auto classes = [&](const auto& cycle, const auto& from) {
    std::vector<uint32_t> all;
    for (const auto& each : cycle) {
      all.push_back(in_.classes.class_of(from(each)));
    }
    std::sort(all.begin(), all.end());
    return all;
  };
  const std::vector<uint32_t> known = classes(but, [](const CycleEdge& edge) { return edge.from; });
  std::vector<std::vector<uint32_t>> cycles = further_cycles(edges, in_.classes.class_of(), kind);
  std::erase_if(cycles, [&](const std::vector<uint32_t>& cycle) {
    return classes(cycle, [&](uint32_t i) { return edges[i].from; }) == known;
  });
  for (std::vector<uint32_t>& cycle : cycles) {
    for (uint32_t& i : cycle) {
      i = number[i];
    }
  }
  return cycles;
}

// Undirected edges that were not chosen are decided by what is certain; those of other components stay
// open. It asks `chosen` as that is then.
OrientationOracle Explainer::oracle_of(const Orientation& chosen) const {
  return [this, &chosen](uint32_t e, uint32_t f) {
    const Order order = chosen.pairs.order(chosen.forward, e, f);
    return order != Order::kNone ? order : certain(e, f);
  };
}

// The open edges of the component as the search left them.
Explainer::Orientation Explainer::orientation_of(const ViolatedComponent& component) const {
  Orientation chosen;
  if (component.result.has_orientation) {
    spend(component.open.size());
    chosen.pairs.reserve(component.open.size());
    for (const uint32_t i : component.open) {
      chosen.pairs.add(in_.classes.events_behind(i));
    }
    chosen.forward = component.result.orientation;
  } else if (component.closing) {
    chosen.pairs.add(*component.closing);
    chosen.forward.push_back(true);
  }
  return chosen;
}

// The edges between classes that the orientation decides.
std::vector<CycleEdge> Explainer::cycle_in(const ViolatedComponent& component,
                                           const OrientationOracle& before) const {
  std::vector<CycleEdge> edges;
  edges.reserve(component.edges.size());
  spend(8 * component.edges.size());
  for (const uint32_t i : component.edges) {
    Edge behind = in_.classes.events_behind(i);
    EdgeKind kind = EdgeKind::kConflict;
    if (in_.classes.edges()[i].undirected) {
      const Order order = before(behind.from, behind.to);
      if (order == Order::kNone) {
        continue;
      }
      if (order == Order::kAfter) {
        std::swap(behind.from, behind.to);
      }
      kind = EdgeKind::kReordering;
    } else {
      kind = directed_kind(behind);
    }
    edges.push_back({in_.classes.class_of(behind.from), behind.from, behind.to, kind});
  }
  return edges;
}

// Some valid orientation of the open edges among the events of a slice, `closing` as it is;
// nothing: none was found.
std::optional<Explainer::Orientation> Explainer::orient_slice(
    const ViolatedComponent& component, const std::vector<uint32_t>& slice) const {
  const auto inside = [&](uint32_t e) { return std::binary_search(slice.begin(), slice.end(), e); };
  const auto index = [&](uint32_t e) {
    return static_cast<uint32_t>(std::lower_bound(slice.begin(), slice.end(), e) - slice.begin());
  };
  OrientationProblem problem;
  problem.events = slice;
  problem.class_of.assign(slice.size(), 0);
  problem.class_count = 1;
  Orientation chosen;
  for (const uint32_t i : component.open) {
    const Edge& edge = in_.classes.events_behind(i);
    if (inside(edge.from) && inside(edge.to)) {
      problem.open.push_back({index(edge.from), index(edge.to), true});
      problem.hint.push_back(in_.relation.lo(edge.from) <= in_.relation.lo(edge.to) ? 1 : 0);
      chosen.pairs.add(edge);
    }
  }
  for (const ReadsFrom& rule : in_.graph.rules) {
    if (inside(rule.read) && inside(rule.write) && inside(rule.other)) {
      problem.rules.push_back({index(rule.read), index(rule.write), index(rule.other)});
    }
  }
  problem.event_order = in_.graph.order.among(slice);
  uint64_t work = 0;
  if (component.closing && !problem.event_order.insert(index(component.closing->from),
                                                       index(component.closing->to), &work)) {
    return std::nullopt;
  }
  problem.accept = [&](const std::vector<bool>& orientation) {
    return realise(in_.relation, slice,
                   [&](uint32_t e, uint32_t f) {
                     const Order order = chosen.pairs.order(orientation, e, f);
                     return order != Order::kNone ? order : certain(e, f);
                   })
        .has_value();
  };
  OrientationBounds bounds = in_.options.bounds;
  bounds.max_bytes = std::max(bounds.max_bytes, bytes_of_part(kMaxSlice, 0));
  OrientationResult found = enumerate_orientations(problem, bounds);
  if (!found.has_orientation || chosen.pairs.empty()) {
    return std::nullopt;
  }
  chosen.forward = std::move(found.orientation);
  return chosen;
}

// From the cycle and its slice to the execution, and to the cycle that is left in it.
bool Explainer::show(const ViolatedComponent& component, const OrientationOracle& before,
                     Violation* finding, std::string* why) {
  const auto& class_of = in_.classes.class_of();
  // Of a cycle that every execution has only what every one has is a short cut.
  const bool every = std::none_of(component.edges.begin(), component.edges.end(),
                                  [&](uint32_t i) { return in_.classes.edges()[i].undirected; });
  const OrientationOracle cycle_order =
      every ? [this](uint32_t e, uint32_t f) { return certain(e, f); } : before;
  // Edges that follow from others were left out of the graph: a detour may have a short cut.
  auto shorter =
      shortest_cycle_among(in_.relation, class_of, finding->slice, cycle_order, program_order());
  if (!shorter.empty()) {
    finding->cycle = std::move(shorter);
    collect_window(finding);
  }
  name_cycle(finding);
  const auto steps = realise(in_.relation, finding->slice, before);
  if (!steps) {
    if (in_.options.relation.semantics == Semantics::kPaper) {
      *why = "a violation of the paper's relation that no execution has";
      return true;
    }
    *why = "internal error: no execution has the orientation that was found";
    return false;
  }
  auto values = in_.values && component.realised ? WitnessValues::kKnown : WitnessValues::kIgnored;
  const auto checked = witness_checker().check(*steps, values);
  if (!checked) {
    *why = "internal error: " + checked.error().to_string();
    return false;
  }
  std::vector<uint32_t> ends;
  for (const CycleEdge& edge : finding->cycle) {
    ends.insert(ends.end(), {edge.from, edge.to});
  }
  complete(finding->cycle, &ends);
  // What is left out must not make a load look as if it had returned something else.
  if (values == WitnessValues::kKnown && witness_checker().check(*steps, WitnessValues::kShown)) {
    values = WitnessValues::kShown;
  }
  // The cycle that is left may be another one, and nothing but what is left orders it. If every
  // execution has the cycle, so it must be; else its own ends stay.
  std::vector<CycleEdge> left;
  for (const Ends may : {Ends::kMayGo, Ends::kStay}) {
    keep_witness(minimal_witness(witness_checker(), in_.relation, *steps, values, ends, may),
                 finding);
    ThreadOrder in_thread = program_order();
    const ThreadDefinitions own(in_.trace, in_.relation.options(), finding->slice);
    if (!in_thread) {
      in_thread = [&own](uint32_t e, uint32_t f) { return own.directed_in_thread(e, f); };
    }
    left = shortest_cycle_among(in_.relation, class_of, finding->slice, cycle_order, in_thread);
    if (!every || !left.empty()) {
      break;
    }
  }
  if (!left.empty()) {
    finding->cycle = std::move(left);
    name_cycle(finding);
  }
  return true;
}

const WitnessChecker& Explainer::witness_checker() {
  if (!witnesses_) {
    witnesses_.emplace(
        in_.trace, WitnessClaim{in_.options.property, in_.options.relation, WitnessValues::kIgnored,
                                !in_.graph.locks_contradict});
  }
  return *witnesses_;
}

void Explainer::keep_witness(std::vector<Step> witness, Violation* finding) const {
  finding->witness = std::move(witness);
  finding->slice.clear();
  for (const Step& step : finding->witness) {
    if (!step.commit) {
      finding->slice.push_back(step.event);
    }
  }
  std::sort(finding->slice.begin(), finding->slice.end());
}

void Explainer::show_execution(const std::vector<Step>& steps, Violation* finding) {
  if (!witness_checker().check(steps, WitnessValues::kShown)) {
    return;
  }
  keep_witness(minimal_witness(witness_checker(), in_.relation, steps, WitnessValues::kShown, {}),
               finding);
  std::unordered_map<uint32_t, uint32_t> issued;
  for (const Step& step : finding->witness) {
    if (!step.commit) {
      issued.emplace(step.event, static_cast<uint32_t>(issued.size()));
    }
  }
  const auto before = [&](uint32_t e, uint32_t f) {
    return issued.at(e) < issued.at(f) ? Order::kBefore : Order::kAfter;
  };
  const ThreadOrder in_thread = [this](uint32_t e, uint32_t f) {
    return in_.relation.position(e) < in_.relation.position(f);
  };
  auto cycle =
      shortest_cycle_among(in_.relation, in_.classes.class_of(), finding->slice, before, in_thread);
  if (!cycle.empty()) {
    finding->cycle = std::move(cycle);
    name_cycle(finding);
  }
}

Order Explainer::certain(uint32_t e, uint32_t f) const {
  if (in_.graph.order.reaches(e, f)) {
    return Order::kBefore;
  }
  return in_.graph.order.reaches(f, e) ? Order::kAfter : Order::kNone;
}

EdgeKind Explainer::directed_kind(const Edge& edge) const {
  const Event& from = in_.trace.events[edge.from];
  const Event& to = in_.trace.events[edge.to];
  if (from.thread == to.thread) {
    return EdgeKind::kProgramOrder;
  }
  if (from.kind() == EventKind::kFork || to.kind() == EventKind::kJoin) {
    return EdgeKind::kThread;
  }
  if (in_.relation.hands_over(edge.from, edge.to)) {
    return EdgeKind::kHandOver;
  }
  return in_.relation.between(edge.from, edge.to) == Order::kBefore ? EdgeKind::kConflict
                                                                    : EdgeKind::kValues;
}

void Explainer::name_cycle(Violation* finding) const {
  for (CycleEdge& edge : finding->cycle) {
    edge.unit = in_.units.of_event(edge.from);
    if (edge.kind == EdgeKind::kReordering && in_.graph.order.reaches(edge.from, edge.to)) {
      edge.kind = EdgeKind::kValues;
    }
  }
}

// The events of the classes on the cycle and the stores their loads may be forwarded from. Of
// very long units only the ends of the cycle's edges: every pair of the slice will be ordered.
void Explainer::collect_window(Violation* finding) const {
  auto& slice = finding->slice;
  slice.clear();
  for (const CycleEdge& edge : finding->cycle) {
    add_members(in_, in_.classes.class_of(edge.from), &slice);
  }
  if (slice.size() > kMaxSlice) {
    slice.clear();
  }
  for (const CycleEdge& edge : finding->cycle) {
    slice.insert(slice.end(), {edge.from, edge.to});
  }
  complete(finding->cycle, &slice);
}

// Full program order, of a property that asks for it.
ThreadOrder Explainer::program_order() const {
  if (in_.options.property != Property::kRobustness) {
    return {};
  }
  return [this](uint32_t e, uint32_t f) {
    return in_.relation.position(e) < in_.relation.position(f);
  };
}

// Adds the stores that loads may be forwarded from, and what the edges of the cycle inside of
// threads rest on.
void Explainer::complete(const std::vector<CycleEdge>& cycle, std::vector<uint32_t>* events) const {
  constexpr int kMostRounds = 8;
  for (int round = 0; round < kMostRounds; ++round) {
    for (size_t i = events->size(); i-- > 0;) {
      if (const uint32_t source = in_.relation.source((*events)[i]); source != Relation::kNever) {
        events->push_back(source);
      }
    }
    std::sort(events->begin(), events->end());
    events->erase(std::unique(events->begin(), events->end()), events->end());
    const size_t size = events->size();
    if (in_.options.property != Property::kSerializability) {
      return;
    }
    const ThreadDefinitions own(in_.trace, in_.relation.options(), *events);
    for (const CycleEdge& edge : cycle) {
      if (own.same_thread(edge.from, edge.to) && !own.directed_in_thread(edge.from, edge.to)) {
        add_supports(edge.from, edge.to, own, events);
      }
    }
    if (events->size() == size) {
      return;
    }
  }
}

// A store, or a load that the store may seem to have been forwarded to, comes before a later load
// because of a fence, of later stores that do not fit into the buffer beside it, or of a load that
// had to wait for one of them.
void Explainer::add_supports(uint32_t from, uint32_t to, const ThreadDefinitions& known,
                             std::vector<uint32_t>* events) const {
  const Relation& relation = in_.relation;
  const uint32_t store = relation.is_store(from) ? from : known.source(from);
  const uint32_t by = store == Relation::kNever ? store : relation.visible_by(store);
  if (by == Relation::kNever || relation.position(by) > relation.position(to)) {
    return;
  }
  events->push_back(by);
  if (relation.drains(by)) {
    return;
  }
  const auto thread = relation.of_thread(in_.trace.events[store].thread);
  for (size_t at = relation.position(by); at-- > relation.position(store);) {
    const uint32_t between = thread[at];
    if (!relation.is_store(between)) {
      continue;
    }
    if (relation.is_store(by)) {
      events->push_back(between);
    } else if (known.same_bytes(between, by)) {
      events->push_back(between);
      return;
    }
  }
}

}  // namespace tsomon
