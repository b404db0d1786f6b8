#include "offline/check/crossing_units.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "offline/check/crossing_proof.h"
#include "offline/check/issue_edges.h"
#include "offline/check/orientation_search.h"
#include "offline/check/thread_lists.h"
#include "offline/check/value_edges.h"
#include "tso/check/analysis_budget.h"
#include "tso/order/reachability.h"
#include "tso/support/nearby.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr uint32_t kEnd = ThreadLists::kEnd;
constexpr uint64_t kMostRefused = 1000;
constexpr uint64_t kOrderSteps = 1'000'000'000;
constexpr uint64_t kOrderStepsPerEvent = 1000;
constexpr uint64_t kMostShown = 8;   // where each costs executions of the whole trace
constexpr size_t kLongTrace = 4096;  // events
// Pairs of accesses in an open order, of which the exact analysis may be done soon: of a fifth of
// them faster than what follows.
constexpr uint64_t kFewOpen = 5'000;
constexpr uint64_t kEventsForOpen = 4;
// What the exact analysis may do first: where little is open it is done by then.
constexpr WorkBudget kFirstLook = {.work_at_first = 1'000'000, .work_per_event = 100};

// What can be reached from one event that leaves a unit.
class Reach {
 public:
  struct Entry {
    Edge edge;        // from an event of another thread's to one of this thread's
    uint32_t before;  // the entry that led to edge.from; kEnd: edge.from is where it all began
  };

  explicit Reach(const ThreadLists& lists, ThreadId threads)
      : lists_(lists), threads_(threads), near_(lists.lists().size()) {}

  void clear() {
    for (const ThreadId thread : touched_) {
      threads_[thread] = {};
    }
    touched_.clear();
    open_.clear();
    entries_.clear();
  }

  void enter(ThreadId thread, Edge edge, uint32_t before) {
    const uint32_t unit = lists_.unit(edge.to);
    const uint32_t full = lists_.full_from(thread, unit);
    if (full != unit && unit < threads_[thread].full) {
      lower(thread, unit, {edge, before}, &Reached::some, &Reached::some_by);
    }
    if (full < lists_.units(thread)) {
      enter_from(thread, full, edge, before);
    }
  }
  // All units from this one on.
  void enter_from(ThreadId thread, uint32_t unit, Edge edge, uint32_t before) {
    lower(thread, unit, {edge, before}, &Reached::full, &Reached::full_by);
  }

  // The entry by which a unit that is entered by all is reached; kEnd: it is not.
  uint32_t reaches(ThreadId thread, uint32_t unit) const {
    const Reached& mine = threads_[thread];
    return mine.full <= unit ? mine.full_by : mine.some <= unit ? mine.some_by : kEnd;
  }
  // One by which any unit is.
  uint32_t reaches_any(ThreadId thread) const {
    const Reached& mine = threads_[thread];
    return mine.some != kEnd ? mine.some_by : mine.full_by;
  }

  bool next(ThreadId* thread) {
    if (open_.empty()) {
      return false;
    }
    *thread = open_.front();
    open_.pop_front();
    threads_[*thread].open = false;
    return true;
  }

  // The first place of the list in a unit that is reached, and the entry that says so.
  uint32_t first_of(uint32_t list, ThreadId thread, uint32_t* by) {
    const Reached& mine = threads_[thread];
    uint32_t* const near = &near_[list];
    const uint32_t full = mine.full == kEnd ? kEnd : lists_.first_from(list, mine.full, near);
    const uint32_t some =
        mine.some == kEnd ? kEnd : lists_.first_entered_from(list, mine.some, near);
    *by = some < full ? mine.some_by : mine.full_by;
    return std::min(some, full);
  }

  uint32_t add(const Entry& entry) {
    entries_.push_back(entry);
    return static_cast<uint32_t>(entries_.size() - 1);
  }
  const Entry& entry(uint32_t number) const { return entries_[number]; }

 private:
  struct Reached {
    uint32_t full = kEnd;  // all units from this one on
    uint32_t some = kEnd;  // those from this one on that are entered by all
    uint32_t full_by = kEnd;
    uint32_t some_by = kEnd;
    bool open = false;
  };

  // The bound comes down to this unit, if it is above.
  void lower(ThreadId thread, uint32_t unit, const Entry& entry, uint32_t Reached::*bound,
             uint32_t Reached::*by) {
    Reached& mine = threads_[thread];
    if (mine.*bound <= unit) {
      return;
    }
    if (mine.full == kEnd && mine.some == kEnd) {
      touched_.push_back(thread);
    }
    mine.*bound = unit;
    mine.*by = static_cast<uint32_t>(entries_.size());
    entries_.push_back(entry);
    if (!mine.open) {
      mine.open = true;
      open_.push_back(thread);
    }
  }

  const ThreadLists& lists_;
  std::vector<Reached> threads_;
  std::vector<ThreadId> touched_;
  std::deque<ThreadId> open_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> near_;  // by list: where it was looked for last
};

class CrossingSearch {
 public:
  CrossingSearch(const IndexedTrace& indexed, const AnalysisOptions& options)
      : trace_(indexed.trace),
        options_(options),
        units_(indexed.units),
        locations_(indexed.locations),
        relation_(indexed.relation),
        accesses_(indexed.accesses),
        neighbours_(relation_),
        by_event_(options.property == Property::kRobustness) {}

  CrossingUnits run() {
    CrossingUnits result;
    result.units = units_.size();
    if (too_many_threads(conflicting_lists())) {
      result.unknown = "what comes before what would take too much memory for so many threads";
      return result;
    }
    std::vector<Edge> edges = directed_edges(relation_, accesses_);
    std::optional<ValueReads> values;
    if (options_.values) {
      values.emplace(relation_, accesses_);
      values->add_edges(&edges);
    }
    if (options_.relation.semantics == Semantics::kExact) {
      add_issue_edges(relation_, accesses_, neighbours_, &edges);
    }
    order_ = Reachability::build(relation_, edges);
    if (order_ && values && !values->draw(&*order_)) {
      order_.reset();
    }
    edges = {};
    if (!order_) {
      result.unknown = "no execution was found to have the recorded order and values";
      return result;
    }
    lists_.emplace(relation_, accesses_, units_, by_event_);
    if (!add_passages()) {
      result.unknown = "a unit starts or joins a thread, which its cycles may pass";
      return result;
    }
    reach_.emplace(*lists_, relation_.threads());
    targets_.assign(lists_->lists().size(), kEnd);
    passed_.assign(targets_.size(), kEnd);
    near_.assign(targets_.size(), 0);
    near_start_.assign(targets_.size(), 0);
    const OrderedUnits in{trace_, options_, units_, relation_, *order_, neighbours_, by_event_};
    CrossingProof proof(in, accesses_, *lists_, values ? &*values : nullptr);
    // In the order of the trace: what one search looks at lies near to what the one before did.
    std::vector<uint32_t> last_unit(targets_.size(), kEnd);
    bool all = true;
    for (uint32_t e = 0; all && e < trace_.events.size(); ++e) {
      spend(1);
      const uint32_t list = lists_->list_of(e);
      // The first access of a unit leaves to all that the later ones leave to.
      if (list != kEnd && lists_->lists()[list].shared &&
          std::exchange(last_unit[list], lists_->unit(e)) != lists_->unit(e)) {
        all = search_from(e, lists_->lists()[list].thread, &proof, &result);
      }
    }
    if (!result.violation && result.refused > 0) {
      result.violation = proof.show_any();
    }
    if (result.violation) {
      result.cyclic = Answer::kYes;
      proof.settle(&*result.violation);
    } else if (all && result.refused == 0) {
      result.cyclic = Answer::kNo;
    }
    return result;
  }

 private:
  // How many edges between threads there may be.
  uint64_t conflicting_lists() const {
    uint64_t lists = 0;
    for (LocationId location = 0; location < locations_.size(); ++location) {
      uint64_t accesses = 0;
      for (const ThreadAccesses& list : accesses_.at(location)) {
        accesses += list.writes.size() + list.reads.size();
      }
      for (const LocationId other : locations_.overlapping(location)) {
        spend(1);
        lists += accesses * accesses_.at(other).size();
      }
    }
    return lists;
  }

  // What comes before what takes a number for each event and thread, and a step for each edge.
  bool too_many_threads(uint64_t edges) const {
    return (edges + trace_.events.size()) * relation_.threads() >
           kOrderSteps + kOrderStepsPerEvent * trace_.events.size();
  }

  // False: there is no need to look on.
  bool search_from(uint32_t b, ThreadId thread, CrossingProof* proof, CrossingUnits* result) {
    if (!aim(thread, b)) {
      return true;
    }
    if (const auto cycle = cycle_from(thread, b)) {
      result->violation = proof->show(*cycle);
      result->refused += result->violation ? 0 : 1;
      return !result->violation && !proof->exhausted() &&
             result->refused != (proof->direct() ? kMostRefused : kMostShown);
    }
    return true;
  }

  // Where the search from `b` is to come back to: of each list of its thread the latest access
  // whose unit is that of `b` or leads to it, and that is not before it.
  bool aim(ThreadId thread, uint32_t b) {
    bool any = false;
    start_ = b;
    horizon_ = 0;
    for (const uint32_t list : lists_->of_thread(thread)) {
      spend(4);
      const uint32_t place = lists_->last_leading_to(list, lists_->unit(b), &near_start_[list]);
      const uint32_t a = place == kEnd ? kEnd : lists_->lists()[list].events[place];
      targets_[list] = a != kEnd && a != b && !order_->reaches(a, b) ? a : kEnd;
      if (targets_[list] != kEnd) {
        any = true;
        const uint32_t unit = lists_->unit(a);
        horizon_ = std::max(horizon_, lists_->full_from(thread, unit));
      }
    }
    return any;
  }

  // Whether a way from `b` may lead through its thread once more, by way of this unit: not where
  // that leads to the unit of `b`, for a shorter cycle is then closed there; and not behind what
  // the units that are to be come back to lead to, for these could be left there at once.
  bool may_return(ThreadId thread, uint32_t unit) const {
    const uint32_t start = lists_->unit(start_);
    const bool leads = unit <= start && (unit == start || lists_->entered_by_all(thread, start) ||
                                         lists_->full_from(thread, unit) <= start);
    return !leads && unit < horizon_;
  }

  // The edges of a cycle, in the order of the cycle.
  std::optional<std::vector<Edge>> cycle_from(ThreadId start, uint32_t b) {
    reach_->clear();
    singles_.clear();
    for (const uint32_t list : std::exchange(passed_lists_, {})) {
      passed_[list] = kEnd;
    }
    if (auto cycle = leave(start, b, kEnd)) {
      return cycle;
    }
    ThreadId thread = 0;
    while (!singles_.empty() || reach_->next(&thread)) {
      if (!singles_.empty()) {
        const auto [load, entry] = singles_.back();
        singles_.pop_back();
        if (auto cycle = leave(start, load, entry)) {
          return cycle;
        }
        continue;
      }
      for (const uint32_t list : lists_->of_thread(thread)) {
        uint32_t by = kEnd;
        const uint32_t place = reach_->first_of(list, thread, &by);
        spend(8);
        if (place == kEnd) {
          continue;
        }
        if (auto cycle = leave(start, lists_->lists()[list].events[place], by)) {
          return cycle;
        }
      }
      for (const uint32_t passage : passages_[thread]) {
        spend(1);
        pass(passage, thread);
      }
    }
    return std::nullopt;
  }

  // Along the conflicts of an event to other threads.
  std::optional<std::vector<Edge>> leave(ThreadId start, uint32_t from, uint32_t by) {
    uint32_t target = kEnd;
    any_conflicting_list(relation_, accesses_, from, [&](uint32_t index_list, ThreadId thread) {
      const uint32_t first = ThreadLists::first_of(index_list);
      return enter_list(start, thread, first, from, by, &target) ||
             enter_list(start, thread, first + 1, from, by, &target);
    });
    return target == kEnd ? std::nullopt : std::optional(cycle_to({from, target}, by));
  }

  // True: that closes a cycle, at `target`.
  bool enter_list(ThreadId start, ThreadId thread, uint32_t list, uint32_t from, uint32_t by,
                  uint32_t* target) {
    const ThreadLists::List& theirs = lists_->lists()[list];
    spend(8);
    if (thread == start && targets_[list] != kEnd &&
        !comes_before(theirs, lists_->place_of(targets_[list]), from)) {
      *target = targets_[list];
      return true;
    }
    const uint32_t first = first_not_before(list, from);
    if (first < theirs.events.size() &&
        (thread != start || may_return(start, lists_->unit(theirs.events[first])))) {
      const Edge edge{from, theirs.events[first]};
      reach_->enter(thread, edge, by);
      // A unit of forwarded loads leads nowhere, but can be left by what it was entered by.
      const uint32_t unit = lists_->unit(edge.to);
      if (first < passed_[list] && !lists_->entered_by_all(thread, unit) &&
          lists_->full_from(thread, unit) != unit) {
        passed_[list] = first;
        passed_lists_.push_back(list);
        singles_.push_back({edge.to, reach_->add({edge, by})});
      }
    }
    return false;
  }

  bool comes_before(const ThreadLists::List& list, uint32_t place, uint32_t e) const {
    return order_->reaches(list.events[place], e) ||
           (!list.issued.empty() && list.issued[place] < relation_.lo(e));
  }
  uint32_t first_not_before(uint32_t list, uint32_t e) {
    const ThreadLists::List& theirs = lists_->lists()[list];
    return first_without(static_cast<uint32_t>(theirs.events.size()), &near_[list],
                         [&](uint32_t place) { return comes_before(theirs, place, e); });
  }

  std::vector<Edge> cycle_to(Edge last, uint32_t by) const {
    std::vector<Edge> cycle{last};
    for (; by != kEnd; by = reach_->entry(by).before) {
      cycle.push_back(reach_->entry(by).edge);
    }
    std::reverse(cycle.begin(), cycle.end());
    return cycle;
  }

  // Forks and joins lead from thread to thread, too. False: one lies inside of a unit, which may
  // begin a cycle, or something else does.
  bool add_passages() {
    if (!relation_.hand_overs().empty()) {
      return false;
    }
    passages_.resize(relation_.threads());
    for (const uint32_t e : relation_.thread_events()) {
      const Event& event = trace_.events[e];
      if (!options_.relation.thread_order ||
          (!by_event_ && units_[units_.of_event(e)].label != Interner::kNone)) {
        return false;
      }
      if (event.address < relation_.threads() && event.address != event.thread) {
        passages_[event.kind() == EventKind::kFork ? event.thread : event.address].push_back(e);
      }
    }
    return true;
  }

  void pass(uint32_t passage, ThreadId thread) {
    const Event& event = trace_.events[passage];
    const auto child = static_cast<ThreadId>(event.address);
    if (event.kind() == EventKind::kFork) {
      const uint32_t by = reach_->reaches(thread, lists_->unit(passage));
      if (by != kEnd && lists_->units(child) > 0) {
        reach_->enter_from(child, 0, {passage, relation_.of_thread(child).front()}, by);
      }
    } else {
      const uint32_t by = reach_->reaches_any(thread);
      reach_->enter_from(event.thread, lists_->unit(passage), {reach_->entry(by).edge.to, passage},
                         by);
    }
  }

  const Trace& trace_;
  const AnalysisOptions& options_;
  const UnitTable& units_;
  const LocationTable& locations_;
  const Relation& relation_;
  const AccessIndex& accesses_;
  EffectNeighbours neighbours_;
  bool by_event_;
  std::optional<Reachability> order_;
  std::optional<ThreadLists> lists_;
  std::optional<Reach> reach_;
  uint32_t start_ = kEnd;  // where the search began
  // All units that it may come back to lead to those from here on.
  uint32_t horizon_ = 0;
  struct Single {
    uint32_t load;
    uint32_t entry;
  };
  std::vector<Single> singles_;   // entered and to be left by the same load
  std::vector<uint32_t> passed_;  // by list: the first place of such a load
  std::vector<uint32_t> passed_lists_;
  std::vector<uint32_t> near_;                   // by list: where first_not_before() looked last
  std::vector<uint32_t> near_start_;             // the same of aim()
  std::vector<uint32_t> targets_;                // by list of the thread that is looked at
  std::vector<std::vector<uint32_t>> passages_;  // forks, and joins, by the thread they lead from
};

// `search` finds the crossing units, within the bounds of an analysis.
template <typename Search>
Result<Analysis> analyse_with(const Trace& trace, const AnalysisOptions& options,
                              const Search& search) {
  return analysed_within(kAnalysisBudget, trace, [&](Analysis* result) -> Result<void> {
    if (!trace.complete || trace.sampled) {
      result->missing("events are missing, which may have ordered or violated something");
      return {};
    }
    CrossingUnits found = search();
    result->units = found.units;
    if (found.violation) {
      if (!found.violation->complete) {
        result->missing("whether a violation is definite was not decided");
      }
      result->notes.say(kOthersUnsought);
      result->add(std::move(*found.violation), options.max_findings);
    } else if (found.cyclic == Answer::kUnknown) {
      result->missing(
          found.unknown != nullptr
              ? found.unknown
              : fmt::format("{} cycles of units were met that no execution was found to have",
                            found.refused));
    }
    return {};
  });
}

// All that the exact analysis finds, and what was met before, where that does not come to its end.
Result<Analysis> with_others(const IndexedTrace& indexed, const AnalysisOptions& options,
                             Result<Analysis> crossing) {
  std::optional<Result<Analysis>> all;
  const WorkSpent spent = measured(kAllViolationsBudget.of(indexed.trace.events.size()),
                                   [&] { all = analyse_exactly(indexed, options); });
  if (!*all || (!spent.over && (*all)->verdict() == Verdict::kInconclusive)) {
    return crossing;
  }
  if (!spent.over) {
    return std::move(*all);
  }
  const auto kind = [&](const Violation& violation) {
    return kind_of(violation, violation.cycle, indexed.trace, indexed.units,
                   indexed.trace.symbols.names.size());
  };
  const std::string met = kind(crossing->findings.front());
  const bool is_new =
      std::none_of((*all)->findings.begin(), (*all)->findings.end(),
                   [&](const Violation& violation) { return kind(violation) == met; });
  if (is_new) {
    (*all)->findings.push_back(std::move(crossing->findings.front()));
    (*all)->arrange((*all)->findings.size());
  }
  return std::move(*all);
}

// The next step is not taken when a stop was asked for.
Result<Analysis> ended_early(Result<Analysis> analysis) {
  if (analysis && analysis->verdict() == Verdict::kInconclusive) {
    analysis->missing(limit_text(WorkLimit::kStopped));
  }
  return analysis;
}

}  // namespace

CrossingUnits find_crossing_units(const Trace& trace, const AnalysisOptions& options) {
  return CrossingSearch(IndexedTrace(trace, options.relation), options).run();
}

Result<Analysis> analyse_crossing_units(const Trace& trace, const AnalysisOptions& options) {
  return analyse_with(trace, options, [&] { return find_crossing_units(trace, options); });
}

Result<Analysis> analyse_crossing_units(const IndexedTrace& indexed,
                                        const AnalysisOptions& options) {
  return analyse_with(indexed.trace, options,
                      [&] { return CrossingSearch(indexed, options).run(); });
}

Result<Analysis> analyse_in_steps(const Trace& trace, const AnalysisOptions& options) {
  const uint64_t n = trace.events.size();
  if (n < kLongTrace || options.property == Property::kScSerializability ||
      options.relation.model != MemoryModel::kTso) {
    return analyse_exactly(trace, options);
  }
  const IndexedTrace indexed(trace, options.relation);
  const uint64_t open =
      estimated_open_pairs(indexed.relation, indexed.accesses, kFewOpen + n / kEventsForOpen);
  std::optional<Result<Analysis>> crossing;
  if (open >= kFewOpen / 5 + n / (4 * kEventsForOpen)) {
    crossing = analyse_crossing_units(indexed, options);
    if (stop_asked()) {
      return ended_early(std::move(*crossing));
    }
    if (!*crossing || (*crossing)->verdict() == Verdict::kClean) {
      return std::move(*crossing);
    }
  }
  std::optional<Result<Analysis>> exact;
  WorkSpent spent{0, true};
  if (open < kFewOpen + n / kEventsForOpen) {
    spent = measured(kFirstLook.of(n), [&] { exact = analyse_exactly(indexed, options); });
    if (stop_asked()) {
      return ended_early(std::move(*exact));
    }
    if (!*exact || (!spent.over && (*exact)->verdict() != Verdict::kInconclusive) ||
        (*exact)->violations() > 0) {
      return std::move(*exact);
    }
  }
  if (!crossing) {
    crossing = analyse_crossing_units(indexed, options);
  }
  if (stop_asked()) {
    return ended_early(std::move(*crossing));
  }
  if (*crossing && (*crossing)->verdict() != Verdict::kInconclusive) {
    return options.told == Told::kFirst || (*crossing)->violations() == 0
               ? std::move(*crossing)
               : with_others(indexed, options, std::move(*crossing));
  }
  return spent.over ? analyse_exactly(indexed, options) : std::move(*exact);
}

}  // namespace tsomon
