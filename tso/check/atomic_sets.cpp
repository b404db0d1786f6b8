#include "tso/check/atomic_sets.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "tso/check/analysis_budget.h"
#include "tso/check/cycle.h"
#include "tso/check/set_objects.h"
#include "tso/check/set_witness.h"
#include "tso/model/location_table.h"
#include "tso/model/set_bytes.h"
#include "tso/model/units.h"
#include "tso/order/assumed_order.h"
#include "tso/order/issue_order.h"
#include "tso/order/mixed_graph.h"
#include "tso/order/reachability.h"
#include "tso/order/refinement.h"
#include "tso/support/none.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

// The unit of every access with regard to one set; `set` nullptr: every unit is declared on it.
std::vector<uint32_t> units_of_set(const Trace& trace, const std::string* set) {
  struct Thread {
    size_t depth = 0;       // of open units
    uint32_t unit = kNone;  // of the outermost declared one
    size_t outermost = 0;   // its depth
  };
  std::vector<Thread> threads;
  std::vector<uint32_t> unit_of(trace.events.size(), kNone);
  uint32_t count = 0;
  const auto declared = [&](const Event& begin) {
    const auto sets = unit_sets(trace.symbols.labels.text(static_cast<uint32_t>(begin.address)));
    // A unit that names no set is declared on all of them.
    return sets.empty() || std::find(sets.begin(), sets.end(), *set) != sets.end();
  };
  spend(2 * trace.events.size());
  for (size_t e = 0; e < trace.events.size(); ++e) {
    const Event& event = trace.events[e];
    threads.resize(std::max<size_t>(threads.size(), event.thread + 1));
    Thread& thread = threads[event.thread];
    switch (event.kind()) {
      case EventKind::kUnitBegin:
        if (thread.unit == kNone && (set == nullptr || declared(event))) {
          thread.unit = count++;
          thread.outermost = thread.depth;
        }
        ++thread.depth;
        break;
      case EventKind::kUnitEnd:
        if (thread.depth != 0) {
          --thread.depth;
          if (thread.depth == thread.outermost) {
            thread.unit = kNone;
          }
        }
        break;
      case EventKind::kWait:
        if (thread.unit != kNone) {
          thread.unit = count++;
        }
        break;
      default:
        if (is_data(event)) {
          unit_of[e] = thread.unit != kNone ? thread.unit : count++;
        }
        break;
    }
  }
  return unit_of;
}

// Those that can lie on a cycle of units.
std::vector<CycleEdge> cyclic(const std::vector<CycleEdge>& edges,
                              const std::vector<uint32_t>& unit_of) {
  std::unordered_map<uint32_t, uint32_t> local;
  std::vector<MixedEdge> mixed;
  mixed.reserve(edges.size());
  const auto node = [&](uint32_t event) {
    return local.try_emplace(unit_of[event], static_cast<uint32_t>(local.size())).first->second;
  };
  for (const CycleEdge& edge : edges) {
    const uint32_t from = node(edge.from);
    mixed.push_back({from, node(edge.to), false});
  }
  const MixedComponents components =
      split_into_components(static_cast<uint32_t>(local.size()), mixed);
  std::vector<CycleEdge> result;
  for (size_t i = 0; i < edges.size(); ++i) {
    if (components.edge_on_cycle[i]) {
      result.push_back(edges[i]);
    }
  }
  return result;
}

// What is known of the order of the issues beyond the intervals.
class IssueOrder {
 public:
  IssueOrder(const Trace& trace, const LocationTable& locations, const AtomicSetOptions& options) {
    RelationOptions issues = options.relation;
    issues.model = MemoryModel::kSc;
    const Relation& relation = relation_.emplace(trace, locations, issues);
    const AccessIndex& accesses = accesses_.emplace(relation);
    RefinementOptions refinement = {false, options.max_undirected, {}};
    if (options.values && has_values(trace)) {
      refinement.known = issue_order_from_values(relation, accesses, options.max_undirected)
                             .value_or(std::vector<Edge>());
    }
    graph_ = refine(relation, accesses, refinement);
    if (graph_) {
      arrange(static_cast<uint32_t>(trace.events.size()));
      if (options.values && has_values(trace)) {
        values_.emplace(relation, accesses);
        assumed_.emplace(relation, accesses, *values_, graph_->order, graph_->undirected);
      }
    }
  }
  bool usable() const { return graph_.has_value(); }
  bool before(uint32_t e, uint32_t f) const { return graph_->order.reaches(e, f); }
  // Pairs of conflicting accesses that may have come in either order.
  const std::vector<Edge>& open() const { return graph_->undirected; }
  // Whether some execution has both e before f and g before h.
  bool possible(uint32_t e, uint32_t f, uint32_t g, uint32_t h) const {
    const auto leads = [&](uint32_t from, uint32_t to) { return from == to || before(from, to); };
    return !leads(f, e) && !leads(h, g) && !(leads(f, g) && leads(h, e)) &&
           possible({{e, f}, {g, h}});
  }
  // Whether recorded values leave one with all of these.
  bool possible(const std::vector<Edge>& edges) const {
    return !assumed_ || assumed_->possible(edges);
  }
  // In a sequence that agrees with all that is known.
  uint32_t place(uint32_t e) const { return place_[e]; }

 private:
  // Of the events that may come next, the first of the trace does.
  void arrange(uint32_t count) {
    const std::vector<uint32_t> order = smallest_first(graph_->order.edges());
    place_.resize(count);
    for (uint32_t i = 0; i < order.size(); ++i) {
      place_[order[i]] = i;
    }
  }

  std::optional<Relation> relation_;
  std::optional<AccessIndex> accesses_;
  std::optional<RefinedGraph> graph_;
  std::optional<RecordedValues> values_;
  std::optional<AssumedOrder> assumed_;
  std::vector<uint32_t> place_;
};

// The conflicts of one set after the other.
class SetCheck {
 public:
  // `order`: nullptr, the intervals alone decide.
  SetCheck(const Trace& trace, const LocationTable& locations, const IssueOrder* order)
      : trace_(trace), locations_(locations), order_(order), last_(locations.size()) {}

  // Whether the order of all conflicts is certain. `cycle` becomes the shortest cycle of certain
  // edges, if there is none one of all edges.
  // `bytes`: of the set; nullptr: all that the accesses have in common.
  bool check(std::vector<SetAccess> accesses, const std::vector<uint32_t>& unit_of,
             const SetBytes* bytes, std::vector<CycleEdge>* cycle) {
    ordered_ = true;
    bytes_ = bytes;
    edges_.clear();
    cycle->clear();
    if (!any_unit_of_two(accesses, unit_of)) {
      return true;
    }
    if (order_ != nullptr) {
      std::sort(accesses.begin(), accesses.end(), [&](const SetAccess& a, const SetAccess& b) {
        return order_->place(a.event) < order_->place(b.event);
      });
    }
    for (const SetAccess& access : accesses) {
      add(access, unit_of);
    }
    for (const SetAccess& access : accesses) {
      last_[locations_.of_event(access.event)] = LastAccess();
    }
    // The search for a short cycle has a bound: whether there is one is known before.
    const std::vector<CycleEdge> all = cyclic(edges_, unit_of);
    std::vector<CycleEdge> certain;
    std::copy_if(all.begin(), all.end(), std::back_inserter(certain),
                 [](const CycleEdge& edge) { return edge.kind != EdgeKind::kOverlap; });
    *cycle = shortest_cycle(cyclic(certain, unit_of), unit_of);
    if (cycle->empty()) {
      *cycle = shortest_cycle(all, unit_of);
      if (!possible(*cycle)) {
        cycle->clear();
      }
    }
    if (cycle->empty() && !ordered_ && order_ != nullptr) {
      *cycle = cycle_of_two(accesses, unit_of);
    }
    return ordered_;
  }

 private:
  struct Read {
    SetAccess first;  // of a unit; when its last one is not certain either, nothing is
    uint32_t last = 0;
  };
  struct LastAccess {
    SetAccess write{kNone};
    std::vector<Read> reads;  // since then
  };

  static bool any_unit_of_two(const std::vector<SetAccess>& accesses,
                              const std::vector<uint32_t>& unit_of) {
    std::unordered_set<uint32_t> units;
    return std::any_of(accesses.begin(), accesses.end(), [&](const SetAccess& access) {
      return !units.insert(unit_of[access.event]).second;
    });
  }

  bool possible(const std::vector<CycleEdge>& cycle) const {
    std::vector<Edge> edges;
    for (const CycleEdge& edge : cycle) {
      if (edge.kind == EdgeKind::kOverlap) {
        edges.push_back({edge.from, edge.to});
      }
    }
    return order_ == nullptr || edges.empty() || order_->possible(edges);
  }

  // Two units of which each may have come before the other, by conflicts of which one is open.
  std::vector<CycleEdge> cycle_of_two(const std::vector<SetAccess>& accesses,
                                      const std::vector<uint32_t>& unit_of) const {
    constexpr size_t kMostOfAPair = 64;
    std::vector<bool> member(trace_.events.size(), false);
    for (const SetAccess& access : accesses) {
      member[access.event] = true;
    }
    // Conflicts of two units, in both directions where they are open.
    std::map<std::pair<uint32_t, uint32_t>, std::vector<CycleEdge>> pairs;
    const auto add = [&](uint32_t from, uint32_t to, EdgeKind kind) {
      auto& list = pairs[std::minmax(unit_of[from], unit_of[to])];
      if (list.size() < kMostOfAPair) {
        list.push_back({unit_of[from], from, to, kind});
      }
    };
    for (const Edge& edge : order_->open()) {
      if (member[edge.from] && member[edge.to] && unit_of[edge.from] != unit_of[edge.to] &&
          in_set(locations_.of_event(edge.from), locations_.of_event(edge.to))) {
        add(edge.from, edge.to, EdgeKind::kOverlap);
        add(edge.to, edge.from, EdgeKind::kOverlap);
      }
    }
    for (const CycleEdge& edge : edges_) {
      if (edge.kind != EdgeKind::kOverlap &&
          pairs.count(std::minmax(unit_of[edge.from], unit_of[edge.to])) != 0) {
        add(edge.from, edge.to, edge.kind);
      }
    }
    for (const auto& [units, list] : pairs) {
      for (const CycleEdge& one : list) {
        for (const CycleEdge& back : list) {
          spend(1);
          if (one.unit == units.first && back.unit == units.second &&
              order_->possible(one.from, one.to, back.from, back.to)) {
            return {one, back};
          }
        }
      }
    }
    return {};
  }

  bool certain(uint32_t e, uint32_t f) const {
    const Event& source = trace_.events[e];
    const Event& target = trace_.events[f];
    return source.thread == target.thread || trace_.hi(source) < target.lo ||
           (order_ != nullptr && order_->before(e, f));
  }

  // What two locations have in common is in the set.
  bool in_set(LocationId a, LocationId b) const {
    return bytes_ == nullptr || bytes_->meets_both(locations_.key(a), locations_.key(b));
  }

  void link(const SetAccess& from, uint32_t last, const SetAccess& to,
            const std::vector<uint32_t>& unit_of) {
    const bool first_certain = certain(from.event, to.event);
    ordered_ = ordered_ && first_certain && (last == from.event || certain(last, to.event));
    if (unit_of[from.event] != unit_of[to.event]) {
      edges_.push_back({0, from.event, to.event, kind_of(from, to, first_certain)});
    }
  }

  EdgeKind kind_of(const SetAccess& from, const SetAccess& to, bool certain) const {
    if (!certain || from.shaky || to.shaky) {
      return EdgeKind::kOverlap;
    }
    const Event& source = trace_.events[from.event];
    const Event& target = trace_.events[to.event];
    return source.thread == target.thread || trace_.hi(source) < target.lo ? EdgeKind::kConflict
                                                                           : EdgeKind::kValues;
  }

  void add(const SetAccess& access, const std::vector<uint32_t>& unit_of) {
    const Event& event = trace_.events[access.event];
    const LocationId here = locations_.of_event(access.event);
    const bool writes = event.kind() != EventKind::kRead;
    spend(locations_.overlapping(here).size());
    for (const LocationId other : locations_.overlapping(here)) {
      if (!in_set(here, other)) {
        continue;
      }
      const LastAccess& last = last_[other];
      if (last.write.event != kNone) {
        link(last.write, last.write.event, access, unit_of);
      }
      for (size_t i = 0; writes && i < last.reads.size(); ++i) {
        spend(2);
        link(last.reads[i].first, last.reads[i].last, access, unit_of);
      }
    }
    LastAccess& mine = last_[here];
    if (writes) {
      mine.write = access;
      mine.reads.clear();
    } else if (mine.reads.empty() ||
               unit_of[mine.reads.back().first.event] != unit_of[access.event]) {
      mine.reads.push_back({access, access.event});
    } else if (order_ != nullptr ||
               trace_.hi(event) > trace_.hi(trace_.events[mine.reads.back().last])) {
      mine.reads.back().last = access.event;
    }
  }

  const Trace& trace_;
  const LocationTable& locations_;
  const IssueOrder* order_;
  const SetBytes* bytes_ = nullptr;
  std::vector<LastAccess> last_;
  std::vector<CycleEdge> edges_;
  bool ordered_ = true;
};

std::vector<SetAccess> accesses_to(const Trace& trace, const SetBytes* bytes) {
  std::vector<SetAccess> result;
  spend(2 * trace.events.size());
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    const Event& event = trace.events[e];
    if (is_data(event) && (bytes == nullptr || bytes->meets({event.address, event.size}))) {
      result.push_back({e});
    }
  }
  return result;
}

// The accesses of the cycle one after the other, stores committing at once: an execution of the
// machine in which the order of every two is the one that is known, or that of the cycle. Empty:
// there are too many, or there is none.
std::vector<Step> witness_of(const Violation& finding, const Trace& trace,
                             const IssueOrder* order) {
  constexpr size_t kMost = 512;
  const std::vector<uint32_t>& slice = finding.slice;
  if (slice.size() > kMost) {
    return {};
  }
  std::set<std::pair<uint32_t, uint32_t>> chosen;
  for (const CycleEdge& edge : finding.cycle) {
    chosen.insert({edge.from, edge.to});
  }
  const auto before = [&](uint32_t e, uint32_t f) {
    const Event& first = trace.events[e];
    const Event& second = trace.events[f];
    return first.thread == second.thread
               ? e < f
               : trace.hi(first) < second.lo || chosen.count({e, f}) != 0 ||
                     (order != nullptr && order->before(e, f));
  };
  std::vector<Step> witness;
  std::vector<uint32_t> left = slice;
  while (!left.empty()) {
    spend(left.size() * left.size());
    const auto next = std::find_if(left.begin(), left.end(), [&](uint32_t e) {
      return std::none_of(left.begin(), left.end(),
                          [&](uint32_t other) { return other != e && before(other, e); });
    });
    if (next == left.end()) {
      return {};
    }
    witness.push_back({false, *next});
    if (is(trace.events[*next], kinds::kStores)) {
      witness.push_back({true, *next});
    }
    left.erase(next);
  }
  return witness;
}

Violation violation_of(std::vector<CycleEdge> cycle, const UnitTable& units, const Trace& trace,
                       const IssueOrder* order) {
  Violation finding;
  finding.verdict = Verdict::kDefinite;
  for (CycleEdge& edge : cycle) {
    if (edge.kind == EdgeKind::kOverlap) {
      finding.verdict = Verdict::kPossible;
    }
    edge.unit = units.of_event(edge.from);
    finding.slice.insert(finding.slice.end(), {edge.from, edge.to});
  }
  std::sort(finding.slice.begin(), finding.slice.end());
  finding.slice.erase(std::unique(finding.slice.begin(), finding.slice.end()), finding.slice.end());
  finding.cycle = std::move(cycle);
  finding.witness = witness_of(finding, trace, order);
  return finding;
}

SetChoice resolved(const Trace& trace, SetChoice choice) {
  if (choice != SetChoice::kAuto) {
    return choice;
  }
  const bool objects = trace.symbols.sets.empty() &&
                       std::any_of(trace.events.begin(), trace.events.end(), begins_object);
  return objects ? SetChoice::kObjects : SetChoice::kDeclared;
}

// `ordered`: whether the order of all conflicts was certain. Sets that have been judged are in
// `kept` at any time.
void judge(const Trace& trace, const LocationTable& locations, const AtomicSetOptions& options,
           const IssueOrder* order, bool* ordered, Analysis* kept) {
  Analysis& result = *kept;
  result = Analysis();
  const UnitTable units(trace);
  result.units = units.size();
  const auto incomplete = [&](std::string why) { result.missing(std::move(why)); };
  if (!trace.complete) {
    incomplete("events were lost");
  }
  SetCheck sets(trace, locations, order);
  *ordered = true;
  const auto check = [&](std::vector<SetAccess> accesses, const std::vector<uint32_t>& unit_of,
                         const SetBytes* bytes) {
    std::erase_if(accesses, [&](const SetAccess& access) {
      return access.event < options.first || access.event > options.last;
    });
    std::vector<CycleEdge> cycle;
    const bool all_ordered = sets.check(std::move(accesses), unit_of, bytes, &cycle);
    ++result.components;
    if (cycle.empty()) {
      return all_ordered;
    }
    Violation finding = violation_of(std::move(cycle), units, trace, order);
    const std::string fault = finding.witness.empty()
                                  ? std::string()
                                  : fault_of_set_witness(trace, finding.witness, unit_of, bytes);
    if (fault.empty()) {
      result.findings.push_back(std::move(finding));
    } else {
      incomplete("internal error: the witness " + fault);
    }
    return all_ordered;
  };
  if (resolved(trace, options.sets) == SetChoice::kObjects) {
    const Objects objects(trace);
    const std::vector<uint32_t> unit_of = units_of_set(trace, nullptr);
    for (const Object& object : objects.all()) {
      const Event& begin = trace.events[object.begin];
      const SetBytes bytes({{begin.address, begin.size}});
      *ordered = check(object.accesses, unit_of, &bytes) && *ordered;
    }
    if (objects.all().empty()) {
      incomplete(kNoObjects);
    }
    if (!objects.certain()) {
      incomplete("to which object some accesses belong is not certain");
    }
    if (!*ordered) {
      incomplete("the order of conflicting accesses to an object is not certain");
    }
  } else if (trace.symbols.sets.empty()) {
    *ordered = check(accesses_to(trace, nullptr), units_of_set(trace, nullptr), nullptr);
    if (!*ordered) {
      incomplete("the order of conflicting accesses is not certain");
    }
  } else {
    for (const AtomicSet& set : trace.symbols.sets) {
      const SetBytes bytes(set.members);
      if (!check(accesses_to(trace, &bytes), units_of_set(trace, &set.name), &bytes)) {
        *ordered = false;
        incomplete(
            fmt::format("the order of conflicting accesses to set '{}' is not certain", set.name));
      }
    }
  }
}

// When something took place is not known.
Trace without_times(const Trace& trace) {
  Trace result;
  result.symbols = trace.symbols;
  result.complete = trace.complete;
  result.lost_events = trace.lost_events;
  for (const Event& event : trace.events) {
    Event bare = event;
    bare.has_hi = bare.has_read_value = bare.has_write_value = 0;
    result.add(bare, kTimeMin, kTimeMax, trace.read_value(event), trace.write_value(event));
  }
  return result;
}

}  // namespace

Analysis analyse_atomic_sets(const Trace& trace, const AtomicSetOptions& options) {
  if (options.relation.order == TraceOrder::kThread) {
    AtomicSetOptions open = options;
    open.relation.order = TraceOrder::kIssue;
    return analyse_atomic_sets(without_times(trace), open);
  }
  return *analysed_within(kAnalysisBudget, trace, [&](Analysis* result) -> Result<void> {
    const LocationTable locations(trace);
    bool ordered = true;
    judge(trace, locations, options, nullptr, &ordered, result);
    if (!ordered && options.refine && result->verdict() != Verdict::kDefinite) {
      const IssueOrder order(trace, locations, options);
      if (order.usable()) {
        Analysis refined;
        judge(trace, locations, options, &order, &ordered, &refined);
        *result = std::move(refined);
      }
    }
    return {};
  });
}

}  // namespace tsomon
