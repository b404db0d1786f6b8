#include "tso/check/analysis.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "tso/check/analysis_budget.h"
#include "tso/check/class_graph.h"
#include "tso/check/component_search.h"
#include "tso/check/explanation.h"
#include "tso/check/issued_executions.h"
#include "tso/check/lock_points.h"
#include "tso/check/witness_values.h"
#include "tso/order/event_ranges.h"
#include "tso/order/issue_order.h"
#include "tso/order/mixed_graph.h"
#include "tso/order/open_pairs.h"
#include "tso/order/refinement.h"
#include "tso/order/values.h"
#include "tso/support/flat_map.h"
#include "tso/support/none.h"
#include "tso/support/ordered_work.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

// For a component when the decisions, or the work, of the trace are used up.
constexpr uint64_t kLeastSteps = 100;
constexpr uint64_t kLeastWork = 20'000;
// For looks at the whole of a small trace, all together.
constexpr uint64_t kWholeSteps = 10'000;
constexpr uint64_t kWholeWork = 100'000'000;
// For the executions of a small trace, for each component.
constexpr uint64_t kMaxStates = 30'000;

AnalysisOptions with_model(AnalysisOptions options) {
  if (options.property == Property::kScSerializability) {
    options.relation.model = MemoryModel::kSc;
    options.values = false;  // they need not be those of an SC execution; see use_issue_order_
  }
  return options;
}

class Analyser {
 public:
  // Components that have been judged are in `result` at any time.
  Analyser(const IndexedTrace& indexed, const AnalysisOptions& options, Analysis* result)
      : trace_(indexed.trace),
        options_(with_model(options)),
        use_issue_order_(options.property == Property::kScSerializability && options.values &&
                         has_values(trace_)),
        units_(indexed.units),
        relation_(indexed.relation),
        accesses_(indexed.accesses),
        fences_(relation_, accesses_, units_),
        wanted_(options.only),
        result_(*result) {}

  Result<void> run() {
    result_.units = units_.size();
    RefinementOptions refinement = {options_.values, options_.max_undirected, {}};
    std::optional<std::vector<Edge>> shown;
    if (use_issue_order_) {
      shown = issue_order_from_values(relation_, accesses_, options_.max_undirected);
      refinement.known = shown.value_or(std::vector<Edge>());
    }
    auto refined = refine(relation_, accesses_, refinement);
    if (!refined && !refinement.known.empty()) {
      shown.reset();
      refinement.known.clear();
      refined = refine(relation_, accesses_, refinement);
    }
    if (shown) {
      sources_.emplace(relation_, accesses_);
    }
    if (!refined) {
      return fail(ErrorKind::kMalformed,
                  "the intervals, locks or thread events contradict the order of the events: no "
                  "execution has this order");
    }
    graph_ = std::move(*refined);
    result_.open_edges = graph_->undirected.size();
    if (!trace_.complete) {
      incomplete(trace_.lost_events == 0 ? "events were lost"
                                         : fmt::format("{} events were lost", trace_.lost_events));
    }
    if (!graph_->complete) {
      incomplete(fmt::format("more than {} undirected edges", options_.max_undirected));
    }
    result_.values_contradict = graph_->values_contradict;
    if (graph_->values_contradict) {
      incomplete("the recorded values fit no execution and were ignored");
    } else if (options_.values && trace_.complete) {
      values_.emplace(relation_, accesses_);
    }
    if (graph_->locks_contradict) {
      incomplete("two threads held a lock at once: locks were taken to exclude nothing");
    }
    classes_.emplace(trace_, units_, *graph_, options_.property);
    in_.emplace(AnalysedTrace{trace_, options_, units_, relation_, *graph_, *classes_,
                              values_.has_value()});
    explainer_.emplace(*in_);
    search_.emplace(*in_, accesses_, fences_, values_, sources_);
    search_components();
    return {};
  }

 private:
  void incomplete(std::string why) { result_.missing(std::move(why)); }

  void search_components() {
    const std::vector<MixedEdge> wanted = wanted_edges();
    const std::vector<MixedEdge>& edges = options_.only.empty() ? classes_->edges() : wanted;
    const MixedComponents split = split_into_components(classes_->classes(), edges);
    std::vector<WantedComponent> components(split.count);
    for (uint32_t i = 0; i < edges.size(); ++i) {
      spend(4);
      const uint32_t component = split.component_of_node[edges[i].from];
      if (component != MixedComponents::kNone &&
          component == split.component_of_node[edges[i].to] && edges[i].from != edges[i].to) {
        components[component].edges.push_back(i);
      }
    }
    std::vector<std::vector<ReadsFrom>> rules(split.count);
    spend(2 * graph_->rules.size());
    for (const ReadsFrom& rule : graph_->rules) {
      // Both edges of a rule share the events `other` and `read`: one component holds them all, or not
      // all of them are wanted. See forwarding_edges() for the store.
      const auto part_of = [&](uint32_t e) {
        return split.component_of_node[classes_->class_of(e)];
      };
      const uint32_t component = part_of(rule.other);
      if (component != MixedComponents::kNone &&
          (options_.only.empty() || component == part_of(rule.read))) {
        rules[component].push_back(rule);
      }
    }
    std::optional<LockExclusion> locks;
    if (split.count > 0 && options_.property != Property::kRobustness) {
      locks.emplace(relation_, !graph_->locks_contradict && locks_exclude(relation_),
                    values_ ? find_value_sections(relation_, accesses_, *values_)
                            : std::vector<ValueSection>());
    }
    std::vector<uint32_t> searched;
    for (uint32_t component = 0; component < split.count; ++component) {
      ++result_.components;
      const bool locked = locks && !locks->empty() &&
                          locked_in_two_phases(relation_, units_, *locks, graph_->order, *classes_,
                                               components[component].edges);
      if (!locked && !only_single_events(components[component])) {
        searched.push_back(component);
      }
    }
    if (options_.progress != nullptr) {
      options_.progress->groups += searched.size();
    }
    if (!searched.empty()) {
      search_->prepare();
    }
    const auto search = [&](size_t i) {
      return search_->search(components[searched[i]], rules[searched[i]], bounds_left());
    };
    work_in_order(
        searched.size(), options_.threads, search, [&](size_t i, SearchedComponent&& found) {
          // What is left for a component depends on those before it, which may still have been at work.
          if (const OrientationBounds left = bounds_left();
              left.max_steps != found.bounds.max_steps || left.max_work != found.bounds.max_work) {
            found = search(i);
          }
          steps_ += found.steps;
          work_ += found.work;
          result_.fenced_components += found.fenced ? 1 : 0;
          const uint64_t bad = result_.violations() + result_.undecided_components;
          look_at_whole(components[searched[i]], &found);
          judge(components[searched[i]], found);
          if (result_.violations() + result_.undecided_components > bad) {
            add_unfenced(found.members);
          }
          if (options_.progress != nullptr) {
            ++options_.progress->searched;
          }
        });
    result_.work = work_;
  }

  // Between events of AnalysisOptions::only; loops stand for the others. Empty: all are wanted.
  std::vector<MixedEdge> wanted_edges() const {
    std::vector<MixedEdge> edges;
    if (options_.only.empty()) {
      return edges;
    }
    edges = classes_->edges();
    for (uint32_t i = 0; i < edges.size(); ++i) {
      spend(4);
      const Edge& behind = classes_->events_behind(i);
      if (!wanted_.contains(trace_, behind.from) || !wanted_.contains(trace_, behind.to)) {
        edges[i].to = edges[i].from;
      }
    }
    return edges;
  }

  // Units of one event each: a valid orientation is acyclic over events, hence over these units.
  bool only_single_events(const WantedComponent& component) const {
    return options_.property != Property::kRobustness &&
           std::all_of(component.edges.begin(), component.edges.end(), [&](uint32_t i) {
             spend(1);
             return units_[classes_->edges()[i].from].label == Interner::kNone &&
                    units_[classes_->edges()[i].to].label == Interner::kNone;
           });
  }

  OrientationBounds bounds_left() const {
    OrientationBounds bounds = options_.bounds;
    bounds.max_steps =
        std::min(bounds.max_steps, share(kLeastSteps, options_.max_total_steps, steps_));
    bounds.max_work = std::min(bounds.max_work, share(kLeastWork, options_.max_total_work, work_));
    return bounds;
  }

  void add_unfenced(const std::vector<UnitId>& members) {
    if (options_.property != Property::kSerializability) {
      return;
    }
    std::vector<UnitId> unfenced;
    for (const UnitId unit : members) {
      for (const UnitId one : {unit, fences_.forwarded_from(unit)}) {
        if (one != UnitTable::kNone && !fences_.fenced(one)) {
          unfenced.push_back(one);
        }
      }
    }
    std::sort(unfenced.begin(), unfenced.end());
    unfenced.erase(std::unique(unfenced.begin(), unfenced.end()), unfenced.end());
    if (unfenced.empty()) {
      return;
    }
    const auto group = static_cast<uint32_t>(result_.unfenced_groups.size());
    for (const UnitId unit : unfenced) {
      result_.unfenced.push_back({unit, fences_.missing_after(unit), group});
    }
    result_.unfenced_groups.push_back(members);
  }

  static uint64_t share(uint64_t least, uint64_t total, uint64_t used) {
    return std::max(least, total - std::min(total, used));
  }
  // Where not all cycles are wanted, one may lead through units that values tie to the component.
  static std::vector<uint32_t> explained_edges(const WantedComponent& component,
                                               const SearchedComponent& searched) {
    std::vector<uint32_t> edges = component.edges;
    edges.insert(edges.end(), searched.tied.begin(), searched.tied.end());
    return edges;
  }
  // `edges` outlive it.
  static ViolatedComponent violated(const std::vector<uint32_t>& edges,
                                    const SearchedComponent& searched) {
    return {edges, searched.open, searched.result, searched.closing, searched.realised};
  }
  // Cycle, slice and witness of a finding; false when the witness does not hold.
  bool explain(const std::vector<uint32_t>& edges, const SearchedComponent& searched,
               Violation* finding) {
    std::string why;
    const bool holds = explainer_->explain(violated(edges, searched), finding, &why);
    if (!holds) {
      incomplete(std::move(why));
    } else if (!why.empty()) {
      result_.notes.say(std::move(why));
    }
    return holds;
  }

  // Of a component some executions have a cycle and some have none. What lies outside of it may exclude
  // the ones or the others: values of loads there, and the order of issues that leads through it.
  void look_at_whole(const WantedComponent& component, SearchedComponent* searched) {
    if (!values_ || !options_.only.empty() || options_.relation.semantics != Semantics::kExact ||
        searched->result.cyclic != Answer::kYes || searched->result.acyclic != Answer::kYes ||
        !search_->fits_whole() || !has_values(trace_)) {
      return;
    }
    if (!whole_) {
      whole_ = search_whole({}).result;
    }
    OrientationResult& result = searched->result;
    if (whole_->cyclic == Answer::kNo) {
      result.cyclic = whole_->acyclic == Answer::kNo ? result.cyclic : Answer::kNo;
      return;
    }
    result.acyclic = whole_->acyclic;
    if (result_.components > 1) {
      // Its own cycles, with the others' executions. That another component is violated in each says
      // nothing of this one.
      const OrientationResult own = search_whole(classes_of(component)).result;
      result.cyclic = own.cyclic == Answer::kNo ? Answer::kNo : Answer::kYes;
      if (whole_->acyclic != Answer::kYes) {
        result.acyclic = own.acyclic;
      }
    }
  }

  // Sorted.
  std::vector<uint32_t> classes_of(const WantedComponent& component) const {
    std::vector<uint32_t> classes;
    for (const uint32_t i : component.edges) {
      classes.push_back(classes_->edges()[i].from);
      classes.push_back(classes_->edges()[i].to);
    }
    std::sort(classes.begin(), classes.end());
    return classes;
  }

  SearchedComponent search_whole(std::vector<uint32_t> among) {
    WantedComponent all{{}, true, std::move(among)};
    for (uint32_t i = 0; i < classes_->edges().size(); ++i) {
      all.edges.push_back(i);
    }
    // Bounds of its own: what a smaller one leaves of the rest must not become wrong.
    OrientationBounds bounds = options_.bounds;
    bounds.max_steps = share(0, with_effort(kWholeSteps), whole_steps_);
    bounds.max_work = share(0, with_effort(kWholeWork), whole_work_);
    SearchedComponent found = search_->search(all, graph_->rules, bounds);
    whole_steps_ += found.steps;
    whole_work_ += found.work;
    if (!found.by_executions) {
      found.result = OrientationResult();
    }
    return found;
  }

  // Of SC-serializability: an order of the issues that the pairs of accesses allow may be that of no
  // execution with the recorded values.
  IssuedExecutions look_at_executions(const WantedComponent& component) const {
    if (!sources_ || options_.relation.semantics != Semantics::kExact) {
      return {};
    }
    std::vector<UnitId> among;
    for (const uint32_t i : component.edges) {
      const Edge& behind = classes_->events_behind(i);
      among.push_back(units_.of_event(behind.from));
      among.push_back(units_.of_event(behind.to));
    }
    std::sort(among.begin(), among.end());
    return issued_executions(relation_, units_, *sources_, graph_->order, among,
                             !graph_->locks_contradict && options_.relation.lock_order,
                             with_effort(kMaxStates));
  }

  bool shows_execution(const Violation& finding) const {
    return !values_ || finding.witness.empty() || values_allow(*in_, accesses_, *values_, finding);
  }
  // The values of what lies outside of the component do not allow the execution that was found: one
  // with all values, if there is any.
  Answer show_other_execution(const WantedComponent& component, Violation* finding) {
    if (!search_->fits_whole()) {
      return Answer::kUnknown;
    }
    const SearchedComponent searched = search_whole(classes_of(component));
    if (searched.result.cyclic != Answer::kYes) {
      return searched.result.cyclic;
    }
    Violation other;
    other.verdict = finding->verdict;
    other.complete = finding->complete;
    const bool shown =
        explain(explained_edges(component, searched), searched, &other) && shows_execution(other);
    *finding = std::move(other);
    return shown ? Answer::kYes : Answer::kUnknown;
  }

  void judge(const WantedComponent& component, const SearchedComponent& searched) {
    std::vector<CycleEdge> shown;
    judge(component, searched, &shown);
    if (!shown.empty()) {
      tell_further(component, searched, shown);
    }
  }

  // Of a component that has a finding: what else every execution has.
  void tell_further(const WantedComponent& component, const SearchedComponent& searched,
                    const std::vector<CycleEdge>& shown) {
    const std::vector<uint32_t> all = explained_edges(component, searched);
    const std::vector<uint32_t> no_open;
    const OrientationResult no_orientation;
    for (const std::vector<uint32_t>& edges : explainer_->further(violated(all, searched), shown)) {
      // Its edges are directed: which kind it is takes no look at what is open.
      const ViolatedComponent alone{edges, no_open, no_orientation, std::nullopt, false};
      Violation finding;
      finding.verdict = Verdict::kDefinite;
      if (options_.told == Told::kEachKind && is_known(finding, explainer_->plain_cycle(alone))) {
        continue;
      }
      std::string why;
      if (!explainer_->explain(violated(edges, searched), &finding, &why)) {
        incomplete("not each kind of violation of a group of units could be shown");
        continue;
      }
      result_.findings.push_back(std::move(finding));
    }
  }

  // Then it is counted. Otherwise the next finding is the first of the kind.
  bool is_known(const Violation& finding, const std::vector<CycleEdge>& cycle) {
    const auto [known, is_new] =
        kinds_.try_emplace(kind_of(finding, cycle, trace_, units_, trace_.symbols.names.size()),
                           result_.findings.size());
    if (!is_new) {
      result_.findings[known->second].repeats.add(finding.verdict, begin_of(cycle));
    }
    return !is_new;
  }

  // `shown`: where each kind is told, the cycle that it is told by.
  void judge(const WantedComponent& component, const SearchedComponent& searched,
             std::vector<CycleEdge>* shown) {
    OrientationResult found = searched.result;
    IssuedExecutions executions;
    if (found.cyclic == Answer::kYes) {
      executions = look_at_executions(component);
      const bool none = executions.cyclic == Answer::kNo && executions.acyclic == Answer::kNo;
      if (!none && executions.cyclic == Answer::kNo) {
        found.cyclic = Answer::kNo;
      }
      if (!none && executions.acyclic != Answer::kUnknown) {
        found.acyclic = executions.acyclic;
      }
    }
    const std::vector<uint32_t>& open = searched.open;
    if (found.cyclic == Answer::kNo && found.acyclic == Answer::kNo) {
      incomplete("the recorded values of a component fit no execution");
      ++result_.undecided_components;
      return;
    }
    if (found.cyclic != Answer::kYes) {
      if (found.cyclic == Answer::kUnknown) {
        ++result_.undecided_components;
        incomplete(fmt::format("a component with {} open edges exceeds the bound", open.size()));
      }
      return;
    }
    Violation finding;
    finding.verdict = found.acyclic == Answer::kNo ? Verdict::kDefinite : Verdict::kPossible;
    finding.complete = found.acyclic != Answer::kUnknown;
    if (!finding.complete) {
      incomplete(fmt::format("whether a violation is definite was not decided: {} open edges",
                             open.size()));
    }
    std::vector<uint32_t> edges = explained_edges(component, searched);
    std::vector<CycleEdge> cycle;
    const bool may_differ = finding.verdict == Verdict::kDefinite && !searched.open.empty();
    if (options_.told != Told::kFirst || may_differ) {
      cycle = explainer_->plain_cycle(violated(edges, searched));
    }
    if (may_differ && !explainer_->in_every_execution(cycle)) {
      auto certain = explainer_->cycle_of_every_execution(violated(edges, searched));
      if (!certain.empty()) {
        edges = std::move(certain);
        cycle = explainer_->plain_cycle(violated(edges, searched));
      }
    }
    std::string kind;
    if (options_.told != Told::kFirst) {
      *shown = cycle;
    }
    if (options_.told == Told::kEachKind) {
      kind = kind_of(finding, cycle, trace_, units_, trace_.symbols.names.size());
      if (const auto known = kinds_.find(kind); known != kinds_.end()) {
        result_.findings[known->second].repeats.add(finding.verdict, begin_of(cycle));
        return;
      }
    }
    if ((options_.told != Told::kFirst || result_.findings.size() < options_.max_findings) &&
        !explain(edges, searched, &finding)) {
      ++result_.undecided_components;
      return;
    }
    if (finding.verdict == Verdict::kPossible && !shows_execution(finding)) {
      const Answer other = show_other_execution(component, &finding);
      if (other == Answer::kUnknown) {
        ++result_.undecided_components;
        incomplete("the recorded values do not allow the execution that was found");
      }
      if (other != Answer::kYes) {
        return;
      }
    }
    if (!finding.witness.empty() && !executions.witness.empty()) {
      explainer_->show_execution(executions.witness, &finding);
    }
    if (options_.told == Told::kFirst) {
      result_.add(std::move(finding), options_.max_findings);
      return;
    }
    if (options_.told == Told::kEachKind) {
      kinds_.emplace(std::move(kind), result_.findings.size());
    }
    result_.findings.push_back(std::move(finding));
  }

  const Trace& trace_;
  AnalysisOptions options_;
  bool use_issue_order_ = false;  // that the values imply, for SC-serializability
  const UnitTable& units_;
  const Relation& relation_;
  const AccessIndex& accesses_;
  Fences fences_;
  std::optional<RefinedGraph> graph_;
  std::optional<RecordedValues> values_;
  std::optional<RecordedValues> sources_;  // of SC-serializability: what loads may have read
  EventRanges wanted_;
  std::optional<ClassGraph> classes_;
  std::optional<AnalysedTrace> in_;
  std::optional<Explainer> explainer_;
  std::optional<ComponentSearch> search_;
  Analysis& result_;
  std::unordered_map<std::string, size_t> kinds_;  // of Told::kEachKind, in the findings
  std::optional<OrientationResult> whole_;         // of the whole trace
  uint64_t whole_steps_ = 0;
  uint64_t whole_work_ = 0;
  // What the judged components have taken; components that are searched ahead look at it.
  std::atomic<uint64_t> steps_{0};  // decisions
  std::atomic<uint64_t> work_{0};
};

}  // namespace

Result<Analysis> analysed_within(const WorkBudget& budget, const Trace& trace,
                                 const std::function<Result<void>(Analysis*)>& analysis) {
  Analysis result;
  Result<void> done;
  const auto limit = within(budget.of(trace.events.size()), [&] {
    // Inside the heap that ends with the work: what is kept is copied.
    Analysis found;
    const auto keep = [&] {
      const WorkPause outside;
      result = Analysis(found);
    };
    Result<void> own;
    try {
      own = analysis(&found);
    } catch (...) {
      keep();
      throw;
    }
    keep();
    const WorkPause outside;
    done = Result<void>(own);
  });
  if (!done) {
    return tl::unexpected<Error>(std::move(done.error()));
  }
  if (limit) {
    result.missing(limit_text(*limit));
  }
  result.arrange(result.findings.size());  // the order of the trace otherwise
  return result;
}

bool ended_early(const Analysis& analysis) {
  return std::any_of(analysis.notes.begin(), analysis.notes.end(), [](const std::string& note) {
    return note == limit_text(WorkLimit::kStopped) || note == limit_text(WorkLimit::kWork) ||
           note == limit_text(WorkLimit::kMemory);
  });
}

Result<Analysis> analyse(const Trace& trace, const AnalysisOptions& options) {
  return analysed_within(kAnalysisBudget, trace, [&](Analysis* result) {
    const IndexedTrace indexed(trace, with_model(options).relation);
    return Analyser(indexed, options, result).run();
  });
}

Result<Analysis> analyse(const IndexedTrace& indexed, const AnalysisOptions& options) {
  TSOMON_CHECK(options.property != Property::kScSerializability,
               "a trace was indexed for another memory model than the property's");
  return analysed_within(kAnalysisBudget, indexed.trace, [&](Analysis* result) {
    return Analyser(indexed, options, result).run();
  });
}

}  // namespace tsomon
