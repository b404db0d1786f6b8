#include "tso/analysis.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>

#include <fmt/format.h>

#include "tso/cycle.h"
#include "tso/issue_order.h"
#include "tso/mixed_graph.h"
#include "tso/ordered_work.h"
#include "tso/refinement.h"
#include "tso/values.h"

namespace tsomon {
namespace {

constexpr uint32_t kNone = 0xFFFFFFFFU;
// For a part when the decisions, or the work, of the trace are used up.
constexpr uint64_t kLeastSteps = 100;
constexpr uint64_t kLeastWork = 20'000;
constexpr size_t kMaxWindow = 4000;    // events that a finding is shown with
constexpr uint64_t kPairWork = 4;      // to ask for the order of two events
constexpr size_t kMaxRealised = 1500;  // events of a part whose orientations are all realised

class Analyser {
 public:
  Analyser(const Trace& trace, const AnalysisOptions& options)
      : trace_(trace),
        options_(with_model(options)),
        use_issue_order_(options.property == Property::kScSerializability && options.values &&
                         has_values(trace)),
        units_(trace),
        locations_(trace),
        relation_(trace, locations_, options_.relation),
        accesses_(relation_),
        fences_(relation_, accesses_, units_) {}

  Result<Analysis> run() {
    result_.units = units_.size();
    find_threads();
    sort_wanted();
    RefinementOptions refinement = {options_.values, options_.max_undirected, {}};
    if (use_issue_order_) {
      refinement.known = issue_order_from_values(relation_, accesses_, options_.max_undirected);
    }
    auto refined = refine(relation_, accesses_, refinement);
    if (!refined && !refinement.known.empty()) {
      refinement.known.clear();
      refined = refine(relation_, accesses_, refinement);
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
    if (graph_->values_contradict) {
      incomplete("the recorded values fit no execution and were ignored");
    } else if (options_.values && trace_.complete) {
      values_.emplace(relation_, accesses_);
    }
    number_classes();
    collect_edges();
    search_parts();
    conclude();
    return std::move(result_);
  }

 private:
  static AnalysisOptions with_model(AnalysisOptions options) {
    if (options.property == Property::kScSerializability) {
      options.relation.model = MemoryModel::kSc;
      options.values = false;  // they need not be those of an SC execution; see use_issue_order_
    }
    return options;
  }

  void incomplete(std::string why) {
    result_.complete = false;
    result_.notes.push_back(std::move(why));
  }

  void find_threads() {
    for (uint32_t e = 0; e < trace_.events.size(); ++e) {
      if (trace_.events[e].thread >= threads_.size()) {
        threads_.resize(trace_.events[e].thread + 1);
      }
      threads_[trace_.events[e].thread].push_back(e);
    }
  }

  // Classes: units, or single events for robustness.
  void number_classes() {
    class_of_.assign(trace_.events.size(), kNone);
    for (uint32_t e = 0; e < trace_.events.size(); ++e) {
      if (is(trace_.events[e], kinds::kNodes)) {
        class_of_[e] = options_.property == Property::kRobustness ? e : units_.of_event(e);
      }
    }
    classes_ = options_.property == Property::kRobustness
                   ? static_cast<uint32_t>(trace_.events.size())
                   : units_.size();
  }

  void collect_edges() {
    const auto add = [&](uint32_t from, uint32_t to, bool undirected) {
      if (class_of_[from] != class_of_[to]) {
        events_behind_.push_back({from, to});
        edges_.push_back({class_of_[from], class_of_[to], undirected});
      }
    };
    const size_t most = graph_->undirected.size() + graph_->order.edges().size() +
                        (options_.property == Property::kRobustness ? trace_.events.size() : 0);
    events_behind_.reserve(most);
    edges_.reserve(most);
    for (const Edge& edge : graph_->undirected) {
      add(edge.from, edge.to, true);
    }
    for (uint32_t e = 0; e < trace_.events.size(); ++e) {
      for (const uint32_t next : graph_->order.edges().successors(e)) {
        add(e, next, false);
      }
    }
    if (options_.property == Property::kRobustness) {
      std::vector<uint32_t> last;
      for (uint32_t e = 0; e < trace_.events.size(); ++e) {
        if (class_of_[e] == kNone) {
          continue;
        }
        last.resize(std::max<size_t>(last.size(), trace_.events[e].thread + 1), kNone);
        uint32_t& before = last[trace_.events[e].thread];
        if (before != kNone) {
          add(before, e, false);
        }
        before = e;
      }
    }
  }

  struct Part {
    std::vector<uint32_t> edges;  // positions in edges_
  };

  void search_parts() {
    const MixedParts split = split_into_parts(classes_, edges_);
    std::vector<Part> parts(split.count);
    for (uint32_t i = 0; i < edges_.size(); ++i) {
      const uint32_t part = split.part_of_node[edges_[i].from];
      if (part != MixedParts::kNone && part == split.part_of_node[edges_[i].to]) {
        parts[part].edges.push_back(i);
      }
    }
    std::vector<std::vector<ReadsFrom>> rules(split.count);
    for (const ReadsFrom& rule : graph_->rules) {
      // Both edges of a rule share the events `other` and `read`: one part holds them all.
      const uint32_t part = split.part_of_node[class_of_[rule.other]];
      if (part != MixedParts::kNone) {
        rules[part].push_back(rule);
      }
    }
    std::vector<uint32_t> searched;
    for (uint32_t part = 0; part < split.count; ++part) {
      if (wanted(parts[part])) {
        ++result_.parts;
        if (!only_single_events(parts[part])) {
          searched.push_back(part);
        }
      }
    }
    if (options_.progress != nullptr) {
      options_.progress->groups += searched.size();
    }
    const auto search = [&](size_t i) {
      return search_part(parts[searched[i]], rules[searched[i]], bounds_left());
    };
    work_in_order(searched.size(), options_.threads, search, [&](size_t i, SearchedPart&& found) {
      // What is left for a part depends on those before it, which may still have been at work.
      if (const OrientationBounds left = bounds_left();
          left.max_steps != found.bounds.max_steps || left.max_work != found.bounds.max_work) {
        found = search(i);
      }
      steps_ += found.steps;
      work_ += found.work;
      result_.fenced_parts += found.fenced ? 1 : 0;
      const uint64_t bad = result_.violated_parts + result_.undecided_parts;
      judge(parts[searched[i]], found);
      if (result_.violated_parts + result_.undecided_parts > bad) {
        add_unfenced(found.members);
      }
      if (options_.progress != nullptr) {
        ++options_.progress->searched;
      }
    });
    result_.work = work_;
  }

  // AnalysisOptions::only by thread and first event; `last` is the greatest of those up to there.
  void sort_wanted() {
    only_ = options_.only;
    const auto place = [](const EventRange& range) { return std::pair(range.thread, range.first); };
    std::sort(only_.begin(), only_.end(),
              [&](const EventRange& a, const EventRange& b) { return place(a) < place(b); });
    for (size_t i = 1; i < only_.size(); ++i) {
      if (only_[i].thread == only_[i - 1].thread) {
        only_[i].last = std::max(only_[i].last, only_[i - 1].last);
      }
    }
  }

  bool is_wanted(uint32_t e) const {
    const ThreadId thread = trace_.events[e].thread;
    const auto after =
        std::upper_bound(only_.begin(), only_.end(), std::pair(thread, e),
                         [](const std::pair<ThreadId, uint32_t>& at, const EventRange& range) {
                           return at < std::pair(range.thread, range.first);
                         });
    return after != only_.begin() && (after - 1)->thread == thread && e <= (after - 1)->last;
  }

  bool wanted(const Part& part) const {
    return only_.empty() || std::any_of(part.edges.begin(), part.edges.end(), [&](uint32_t i) {
             return is_wanted(events_behind_[i].from) || is_wanted(events_behind_[i].to);
           });
  }

  // Units of one event each: a valid orientation is acyclic over events, hence over these units.
  bool only_single_events(const Part& part) const {
    return options_.property != Property::kRobustness &&
           std::all_of(part.edges.begin(), part.edges.end(), [&](uint32_t i) {
             return units_[edges_[i].from].label == Interner::kNone &&
                    units_[edges_[i].to].label == Interner::kNone;
           });
  }

  struct SearchedPart {
    OrientationBounds bounds;
    std::vector<uint32_t> open;   // edges of the part
    std::vector<UnitId> members;  // its units, or events
    bool fenced = false;          // decided without the search
    OrientationResult result;
    std::optional<Edge> closing;  // as in `result`, by events of the trace
    bool realised = false;  // the orientation is that of an execution with the recorded values
    uint64_t steps = 0;
    uint64_t work = 0;
  };

  OrientationBounds bounds_left() const {
    OrientationBounds bounds = options_.bounds;
    bounds.max_steps =
        std::min(bounds.max_steps, share(kLeastSteps, options_.max_total_steps, steps_));
    bounds.max_work = std::min(bounds.max_work, share(kLeastWork, options_.max_total_work, work_));
    return bounds;
  }

  // May run on any thread.
  SearchedPart search_part(const Part& part, const std::vector<ReadsFrom>& rules,
                           const OrientationBounds& left) const {
    SearchedPart searched;
    searched.bounds = left;
    std::vector<uint32_t>& open = searched.open;
    OrientationProblem problem;
    std::unordered_map<uint32_t, uint32_t> local_event;
    std::unordered_map<uint32_t, uint32_t> local_class;
    const auto class_index = [&](uint32_t node) {
      return local_class.try_emplace(node, static_cast<uint32_t>(local_class.size())).first->second;
    };
    const auto event_index = [&](uint32_t e) {
      const auto [at, is_new] =
          local_event.try_emplace(e, static_cast<uint32_t>(problem.events.size()));
      if (is_new) {
        problem.events.push_back(e);
        problem.class_of.push_back(class_index(class_of_[e]));
      }
      return at->second;
    };
    for (const uint32_t i : part.edges) {
      if (edges_[i].undirected) {
        const Edge& behind = events_behind_[i];
        problem.open.push_back({event_index(behind.from), event_index(behind.to), true});
        problem.hint.push_back(relation_.lo(behind.from) <= relation_.lo(behind.to) ? 1 : 0);
        open.push_back(i);
      } else {
        problem.classes.push_back({class_index(edges_[i].from), class_index(edges_[i].to), false});
      }
    }
    for (const ReadsFrom& rule : rules) {
      problem.rules.push_back(
          {event_index(rule.read), event_index(rule.write), event_index(rule.other)});
    }
    problem.class_count = static_cast<uint32_t>(local_class.size());
    for (const auto& [node, local] : local_class) {
      searched.members.push_back(node);
    }
    std::sort(searched.members.begin(), searched.members.end());
    if (decide_fenced(part, &searched)) {
      return searched;
    }
    std::vector<uint32_t> events;
    std::optional<WindowSteps> window;  // of these
    Places places;
    OrientationBounds bounds = left;
    const uint64_t order_work = work_of_order(problem.events.size());
    if (order_work > bounds.max_work) {
      bounds.max_events = 0;
    }
    if (options_.relation.semantics == Semantics::kExact && bounds.max_events != 0) {
      std::vector<uint32_t> own;
      events = realisable_events(local_class, &own);
      if (!events.empty()) {
        problem.accept_work = kPairWork * events.size() * events.size();
        add_steps(open, events, window.emplace(relation_, events), &problem);
        places = places_of(open);
        problem.accept = [this, &places, &window, own](const std::vector<bool>& orientation) {
          const auto before = [&](uint32_t e, uint32_t f) {
            return oriented(places, orientation, e, f);
          };
          return (!values_ || values_agree(relation_, accesses_, *values_, own, before)) &&
                 window->realisable(before);
        };
      }
    }
    problem.before = [this, &problem](uint32_t i, uint32_t j) {
      return graph_->order.reaches(problem.events[i], problem.events[j]);
    };
    if (problem.events.size() <= bounds.max_events) {
      problem.event_order = graph_->order.among(problem.events);
      searched.work += order_work;
    }
    searched.result = options_.search(problem, bounds);
    searched.steps += searched.result.steps;
    searched.work += searched.result.work;
    if (const auto& closing = searched.result.closing) {
      searched.closing = {problem.events[closing->from], problem.events[closing->to]};
    }
    searched.realised = static_cast<bool>(problem.accept) && searched.result.has_orientation;
    return searched;
  }

  // Parts whose units all end fenced have a check of their own. False: it does not apply, or left
  // open what the search can still decide.
  bool decide_fenced(const Part& part, SearchedPart* searched) const {
    const std::vector<UnitId>& members = searched->members;
    const std::vector<uint32_t>& open = searched->open;
    if (!options_.fenced || options_.property != Property::kSerializability ||
        options_.relation.model != MemoryModel::kTso ||
        options_.relation.semantics != Semantics::kExact ||
        !std::all_of(members.begin(), members.end(), [&](UnitId unit) {
          return fences_.fenced(unit) && fences_.forwarded_from(unit) == UnitTable::kNone;
        })) {
      return false;
    }
    std::vector<Edge> pairs(open.size());
    std::transform(open.begin(), open.end(), pairs.begin(),
                   [&](uint32_t i) { return events_behind_[i]; });
    std::vector<Edge> directed;
    for (const uint32_t i : part.edges) {
      if (!edges_[i].undirected) {
        directed.push_back({edges_[i].from, edges_[i].to});
      }
    }
    PartQuestion question{relation_, units_, fences_, *graph_, members, pairs, directed, {}};
    if (values_) {
      std::vector<uint32_t> own;
      for (const UnitId unit : members) {
        add_members(unit, &own);
      }
      question.accept = [this, places = places_of(open),
                         own](const std::vector<bool>& orientation) {
        return values_agree(relation_, accesses_, *values_, own, [&](uint32_t e, uint32_t f) {
          return oriented(places, orientation, e, f);
        });
      };
    }
    const OrientationResult found = options_.fenced(question, searched->bounds);
    searched->work += found.work;
    const bool decided = found.cyclic == Answer::kNo ||
                         (found.cyclic == Answer::kYes && found.acyclic != Answer::kUnknown);
    if (!decided && pairs.size() <= options_.bounds.max_events) {
      searched->steps += found.steps;
      return false;
    }
    searched->fenced = true;
    searched->result = found;
    searched->steps += found.steps;
    searched->realised = found.has_orientation;
    return true;
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
    for (const UnitId unit : unfenced) {
      result_.unfenced.push_back({unit, fences_.missing_after(unit)});
    }
  }

  static uint64_t share(uint64_t least, uint64_t total, uint64_t used) {
    return std::max(least, total - std::min(total, used));
  }
  // Every pair is asked for.
  static uint64_t work_of_order(uint64_t events) { return events * events * kPairWork; }

  void add_steps(const std::vector<uint32_t>& open, const std::vector<uint32_t>& window,
                 const WindowSteps& steps, OrientationProblem* problem) const {
    std::vector<Edge> pairs;
    pairs.reserve(open.size());
    for (const uint32_t i : open) {
      pairs.push_back(events_behind_[i]);
    }
    const Orientation nothing;
    problem->steps =
        steps.order([&](uint32_t e, uint32_t f) { return oriented(nothing, e, f); }, pairs);
    const bool tso = relation_.options().model == MemoryModel::kTso;
    for (const uint32_t e : problem->events) {
      const auto place =
          static_cast<uint32_t>(std::lower_bound(window.begin(), window.end(), e) - window.begin());
      problem->step_of.emplace_back(2 * place, 2 * place + (tso && relation_.is_store(e) ? 1 : 0));
    }
  }

  // What was chosen for undirected edges: (e, f) -> e comes first.
  using Orientation = std::unordered_map<uint64_t, bool>;
  static uint64_t pair_key(uint32_t e, uint32_t f) { return (static_cast<uint64_t>(e) << 32) | f; }

  Orientation orientation_of(const std::vector<uint32_t>& open,
                             const std::vector<bool>& orientation) const {
    Orientation chosen;
    for (size_t i = 0; i < open.size(); ++i) {
      const Edge& edge = events_behind_[open[i]];
      chosen[pair_key(edge.from, edge.to)] = orientation[i];
      chosen[pair_key(edge.to, edge.from)] = !orientation[i];
    }
    return chosen;
  }

  // Where the open edges of a part stand in their list, for many orientations of all of them.
  using Places = std::unordered_map<uint64_t, uint32_t>;

  Places places_of(const std::vector<uint32_t>& open) const {
    Places places;
    places.reserve(open.size());
    for (uint32_t i = 0; i < open.size(); ++i) {
      const Edge& edge = events_behind_[open[i]];
      places.emplace(pair_key(edge.from, edge.to), i);
    }
    return places;
  }

  Order oriented(const Places& places, const std::vector<bool>& orientation, uint32_t e,
                 uint32_t f) const {
    if (const auto at = places.find(pair_key(e, f)); at != places.end()) {
      return orientation[at->second] ? Order::kBefore : Order::kAfter;
    }
    if (const auto at = places.find(pair_key(f, e)); at != places.end()) {
      return orientation[at->second] ? Order::kAfter : Order::kBefore;
    }
    return certain(e, f);
  }

  // Some valid orientation of the open edges among the events of a window, `closing` as it is;
  // empty: none was found.
  Orientation orient_window(const std::vector<uint32_t>& open, const std::vector<uint32_t>& window,
                            const std::optional<Edge>& closing) const {
    const auto inside = [&](uint32_t e) {
      return std::binary_search(window.begin(), window.end(), e);
    };
    const auto index = [&](uint32_t e) {
      return static_cast<uint32_t>(std::lower_bound(window.begin(), window.end(), e) -
                                   window.begin());
    };
    OrientationProblem problem;
    problem.events = window;
    problem.class_of.assign(window.size(), 0);
    problem.class_count = 1;
    std::vector<uint32_t> taken;
    for (const uint32_t i : open) {
      const Edge& edge = events_behind_[i];
      if (inside(edge.from) && inside(edge.to)) {
        problem.open.push_back({index(edge.from), index(edge.to), true});
        problem.hint.push_back(relation_.lo(edge.from) <= relation_.lo(edge.to) ? 1 : 0);
        taken.push_back(i);
      }
    }
    for (const ReadsFrom& rule : graph_->rules) {
      if (inside(rule.read) && inside(rule.write) && inside(rule.other)) {
        problem.rules.push_back({index(rule.read), index(rule.write), index(rule.other)});
      }
    }
    problem.event_order = graph_->order.among(window);
    uint64_t work = 0;
    if (closing && !problem.event_order.insert(index(closing->from), index(closing->to), &work)) {
      return {};
    }
    problem.accept = [&](const std::vector<bool>& orientation) {
      const Orientation chosen = orientation_of(taken, orientation);
      return realise(relation_, window,
                     [&](uint32_t e, uint32_t f) { return oriented(chosen, e, f); })
          .has_value();
    };
    OrientationBounds bounds = options_.bounds;
    bounds.max_events = std::max<uint32_t>(bounds.max_events, kMaxWindow);
    const OrientationResult found = enumerate_orientations(problem, bounds);
    return found.has_orientation ? orientation_of(taken, found.orientation) : Orientation();
  }

  // Undirected edges that were not chosen are decided by what is certain; those of other parts stay
  // open.
  Order oriented(const Orientation& chosen, uint32_t e, uint32_t f) const {
    if (const auto at = chosen.find(pair_key(e, f)); at != chosen.end()) {
      return at->second ? Order::kBefore : Order::kAfter;
    }
    return certain(e, f);
  }

  Order certain(uint32_t e, uint32_t f) const {
    if (graph_->order.reaches(e, f)) {
      return Order::kBefore;
    }
    return graph_->order.reaches(f, e) ? Order::kAfter : Order::kNone;
  }

  // The events that decide whether an orientation of a part has an execution: those of the part,
  // and around each forwarded load what its thread does until its store has left the buffer, for a
  // load that turns out to read memory holds back the loads after it. Empty: too many.
  std::vector<uint32_t> realisable_events(const std::unordered_map<uint32_t, uint32_t>& classes,
                                          std::vector<uint32_t>* own) const {
    std::vector<uint32_t> events;
    for (const auto& [node, local] : classes) {
      add_members(node, &events);
      if (options_.property == Property::kRobustness) {
        events.push_back(node);
      }
      if (events.size() > kMaxRealised) {
        return {};
      }
    }
    *own = events;
    for (const uint32_t load : *own) {
      const uint32_t source = relation_.source(load);
      if (source == Relation::kNever) {
        continue;
      }
      const auto& thread = threads_[trace_.events[source].thread];
      for (size_t at = relation_.position(source);
           at < thread.size() && thread[at] != relation_.settled_by(load); ++at) {
        if (class_of_[thread[at]] != kNone) {
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

  void judge(const Part& part, const SearchedPart& searched) {
    const OrientationResult& found = searched.result;
    const std::vector<uint32_t>& open = searched.open;
    if (found.cyclic == Answer::kNo && found.acyclic == Answer::kNo) {
      incomplete("the recorded values of a part fit no execution");
      ++result_.undecided_parts;
      return;
    }
    if (found.cyclic != Answer::kYes) {
      if (found.cyclic == Answer::kUnknown) {
        ++result_.undecided_parts;
        incomplete(fmt::format("a part with {} open edges exceeds the bound", open.size()));
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
    if (result_.findings.size() < options_.max_findings && !explain(part, searched, &finding)) {
      ++result_.undecided_parts;
      return;
    }
    ++result_.violated_parts;
    worst_ = std::max(worst_, finding.verdict);
    if (result_.findings.size() < options_.max_findings) {
      result_.findings.push_back(std::move(finding));
    }
  }

  // Cycle, window and witness of a finding; false when the witness does not hold.
  bool explain(const Part& part, const SearchedPart& searched, Violation* finding) {
    const OrientationResult& found = searched.result;
    const std::vector<uint32_t>& open = searched.open;
    Orientation chosen =
        found.has_orientation ? orientation_of(open, found.orientation) : Orientation();
    if (searched.closing) {
      chosen[pair_key(searched.closing->from, searched.closing->to)] = true;
      chosen[pair_key(searched.closing->to, searched.closing->from)] = false;
    }
    const auto before = [&](uint32_t e, uint32_t f) { return oriented(chosen, e, f); };

    std::vector<CycleEdge> edges;
    for (const uint32_t i : part.edges) {
      Edge behind = events_behind_[i];
      EdgeKind kind = EdgeKind::kConflict;
      if (edges_[i].undirected) {
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
      edges.push_back({class_of_[behind.from], behind.from, behind.to, kind});
    }
    finding->cycle = shortest_cycle(edges, class_of_);
    TSOMON_CHECK(!finding->cycle.empty(), "a cyclic part has no cycle");
    collect_window(finding);
    if (!found.has_orientation) {
      // Too large to be oriented as a whole: directed edges, and at most one more, close the cycle;
      // the window suffices.
      chosen = orient_window(open, finding->window, searched.closing);
      if (chosen.empty() && searched.closing) {
        incomplete(fmt::format("a part with {} open edges exceeds the bound", open.size()));
        return false;
      }
    }
    // Edges that follow from others were left out of the graph: a detour may have a short cut.
    const auto shorter = shortest_cycle_among(relation_, class_of_, finding->window, before,
                                              options_.property == Property::kRobustness);
    if (!shorter.empty()) {
      finding->cycle = shorter;
      collect_window(finding);
    }
    name_cycle(finding);
    const auto steps = realise(relation_, finding->window, before);
    if (!steps) {
      if (options_.relation.semantics == Semantics::kPaper) {
        result_.notes.emplace_back("a violation of the paper's relation that no execution has");
        return true;
      }
      incomplete("internal error: no execution has the orientation that was found");
      return false;
    }
    if (!witnesses_) {
      witnesses_.emplace(trace_, WitnessClaim{options_.property, options_.relation, false});
    }
    const bool values = values_.has_value() && searched.realised;
    const auto checked = witnesses_->check(*steps, values);
    if (!checked) {
      incomplete("internal error: " + checked.error().to_string());
      return false;
    }
    std::vector<uint32_t> ends;
    for (const CycleEdge& edge : finding->cycle) {
      ends.insert(ends.end(), {edge.from, edge.to});
    }
    finding->witness = minimal_witness(*witnesses_, relation_, *steps, values, ends);
    finding->window.clear();
    for (const Step& step : finding->witness) {
      if (!step.commit) {
        finding->window.push_back(step.event);
      }
    }
    std::sort(finding->window.begin(), finding->window.end());
    // The cycle that is left may be another one.
    const auto left = shortest_cycle_among(relation_, class_of_, finding->window, before,
                                           options_.property == Property::kRobustness);
    if (!left.empty()) {
      finding->cycle = left;
      name_cycle(finding);
    }
    return true;
  }

  void name_cycle(Violation* finding) const {
    for (CycleEdge& edge : finding->cycle) {
      edge.unit = units_.of_event(edge.from);
      if (edge.kind == EdgeKind::kReordering && graph_->order.reaches(edge.from, edge.to)) {
        edge.kind = EdgeKind::kValues;
      }
    }
  }

  EdgeKind directed_kind(const Edge& edge) const {
    const Event& from = trace_.events[edge.from];
    const Event& to = trace_.events[edge.to];
    if (from.thread == to.thread) {
      return EdgeKind::kProgramOrder;
    }
    if (from.kind() == EventKind::kFork || to.kind() == EventKind::kJoin) {
      return EdgeKind::kThread;
    }
    return relation_.between(edge.from, edge.to) == Order::kBefore ? EdgeKind::kConflict
                                                                   : EdgeKind::kValues;
  }

  void add_members(uint32_t node, std::vector<uint32_t>* events) const {
    if (options_.property == Property::kRobustness) {
      return;  // the events on the cycle themselves
    }
    for (uint32_t e = units_[node].first_event; e <= units_[node].last_event; ++e) {
      if (class_of_[e] == node) {
        events->push_back(e);
      }
    }
  }

  // The events of the classes on the cycle and the stores their loads may be forwarded from. Of
  // very long units only the ends of the cycle's edges: every pair of the window will be ordered.
  void collect_window(Violation* finding) const {
    auto& window = finding->window;
    window.clear();
    for (const CycleEdge& edge : finding->cycle) {
      add_members(class_of_[edge.from], &window);
    }
    if (window.size() > kMaxWindow) {
      window.clear();
    }
    for (const CycleEdge& edge : finding->cycle) {
      window.insert(window.end(), {edge.from, edge.to});
    }
    const size_t own = window.size();
    for (size_t i = 0; i < own; ++i) {
      if (const uint32_t source = relation_.source(window[i]); source != Relation::kNever) {
        window.push_back(source);
      }
    }
    std::sort(window.begin(), window.end());
    window.erase(std::unique(window.begin(), window.end()), window.end());
  }

  void conclude() {
    if (result_.violated_parts > 0) {
      result_.verdict = worst_;
    } else {
      result_.verdict = result_.complete ? Verdict::kClean : Verdict::kInconclusive;
    }
    // The gravest first; the order of the trace otherwise.
    std::stable_sort(result_.findings.begin(), result_.findings.end(),
                     [](const Violation& a, const Violation& b) { return a.verdict > b.verdict; });
  }

  const Trace& trace_;
  AnalysisOptions options_;
  bool use_issue_order_ = false;  // that the values imply, for SC-serializability
  UnitTable units_;
  LocationTable locations_;
  Relation relation_;
  AccessIndex accesses_;
  Fences fences_;
  std::optional<RefinedGraph> graph_;
  std::optional<RecordedValues> values_;
  std::optional<WitnessChecker> witnesses_;     // made for the first one
  std::vector<std::vector<uint32_t>> threads_;  // events of each
  std::vector<EventRange> only_;
  Analysis result_;
  Verdict worst_ = Verdict::kClean;
  // Of the parts that have been judged; parts that are searched ahead look at them.
  std::atomic<uint64_t> steps_{0};  // decisions
  std::atomic<uint64_t> work_{0};
  std::vector<uint32_t> class_of_;
  uint32_t classes_ = 0;
  std::vector<MixedEdge> edges_;     // between classes
  std::vector<Edge> events_behind_;  // the events of each
};

}  // namespace

Result<Analysis> analyse(const Trace& trace, const AnalysisOptions& options) {
  return Analyser(trace, options).run();
}

}  // namespace tsomon
