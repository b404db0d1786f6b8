#include "offline/check/fenced_check.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "offline/check/component_steps.h"
#include "offline/check/fenced_units.h"
#include "tso/support/none.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr uint64_t kTryWork = 64;
constexpr size_t kMaxCompared = 500;  // open edges between two units that are compared in pairs
constexpr int kMaxRefused = 16;       // executions that do not have the recorded values

// An open edge in one direction, in one of the ways in which it can be.
struct Arc {
  uint32_t open;
  uint32_t leaves;  // units
  uint32_t enters;
  StepOrder::Way edges;  // of steps
};

struct ArcGroup {
  uint32_t enters;
  std::vector<Arc> arcs;
};

// Cycles of units with open edges, from few to many. Where one open edge enters the unit from which
// directed edges lead to the next, the steps need not be ordered the same way: a cycle on which
// they are all along is a cycle of steps, which no execution has. So cycles begin and end where
// they are not.
class FencedCycles {
 public:
  // Whether an execution with these steps, beside the certain ones, is what was looked for.
  using Accept = std::function<Answer(const std::vector<Edge>&)>;

  FencedCycles(const ComponentSteps& steps, const FencedUnits& units,
               std::vector<std::vector<ArcGroup>> leaving, uint64_t max_tries)
      : steps_(steps),
        units_(units),
        leaving_(std::move(leaving)),
        entering_(units.size()),
        max_tries_(max_tries) {
    for (const auto& groups : leaving_) {
      for (const ArcGroup& group : groups) {
        for (const Arc& arc : group.arcs) {
          entering_[group.enters].push_back(arc.edges.front().to);
        }
      }
    }
  }

  Answer run(const Accept& accept) {
    accept_ = &accept;
    for (uint32_t length = 1; length <= units_.threads(); ++length) {
      add_level();
      for (uint32_t unit = 0; unit < units_.size(); ++unit) {
        const Answer answer = leave(unit, length);
        if (answer != Answer::kNo) {
          return answer;
        }
      }
    }
    return refused_ ? Answer::kUnknown : Answer::kNo;
  }

  uint64_t tries() const { return tries_; }

 private:
  // earliest_[r]: the first position in each thread that a unit comes before with at most r open
  // edges. nearest_[r][t]: the same over all units that open edges lead to from the unit at a
  // position of thread t or a later one.
  void add_level() {
    const uint32_t threads = units_.threads();
    spend(uint64_t{units_.size()} * threads * (1 + threads));
    std::vector<uint32_t> earliest(static_cast<size_t>(units_.size()) * threads);
    for (uint32_t unit = 0; unit < units_.size(); ++unit) {
      for (uint32_t t = 0; t < threads; ++t) {
        uint32_t& first = earliest[static_cast<size_t>(unit) * threads + t];
        first = units_.first_after(unit, t);
        for (uint32_t from = 0; from < threads && !earliest_.empty(); ++from) {
          const uint32_t at = earliest_.back()[static_cast<size_t>(unit) * threads + from];
          if (at != kNone) {
            first = std::min(first, nearest_.front()[from][static_cast<size_t>(at) * threads + t]);
          }
        }
      }
    }
    earliest_.push_back(std::move(earliest));
    nearest_.emplace_back(threads);
    for (uint32_t thread = 0; thread < threads; ++thread) {
      const auto& line = units_.line(thread);
      auto& nearest = nearest_.back()[thread];
      nearest.assign((line.size() + 1) * threads, kNone);
      for (size_t at = line.size(); at-- > 0;) {
        spend(threads * (1 + leaving_[line[at]].size()));
        for (uint32_t t = 0; t < threads; ++t) {
          uint32_t& first = nearest[at * threads + t];
          first = nearest[(at + 1) * threads + t];
          for (const ArcGroup& group : leaving_[line[at]]) {
            first =
                std::min(first, earliest_.back()[static_cast<size_t>(group.enters) * threads + t]);
          }
        }
      }
    }
  }

  Answer leave(uint32_t unit, uint32_t length) {
    for (const ArcGroup& group : leaving_[unit]) {
      const Answer answer = follow(unit, group, length);
      if (answer != Answer::kNo) {
        return answer;
      }
    }
    return Answer::kNo;
  }

  // Takes each arc of a group, looks for the rest of the cycle, and takes it back.
  Answer follow(uint32_t unit, const ArcGroup& group, uint32_t length) {
    if (++tries_ > max_tries_) {
      return Answer::kUnknown;
    }
    spend(1 + 4 * group.arcs.size());
    const bool starts = path_.empty();
    const uint32_t start = starts ? unit : path_.front()->leaves;
    const bool closes = units_.reaches(group.enters, start);
    const size_t left = length - path_.size() - 1;
    // No cycle of this length, or one with fewer open edges that had its turn.
    if (closes != (left == 0) || (!starts && comes_back(group.enters)) ||
        earliest_[left][static_cast<size_t>(group.enters) * units_.threads() +
                        units_.thread(start)] > units_.position(start)) {
      return Answer::kNo;
    }
    for (const Arc& arc : group.arcs) {
      if (++tries_ > max_tries_) {
        return Answer::kUnknown;
      }
      const Arc& first = starts ? arc : *path_.front();
      if (closes ? leads_on(arc.edges.front().to, first) : starts && !can_end(arc)) {
        continue;
      }
      const size_t mark = taken_.size();
      taken_.insert(taken_.end(), arc.edges.begin(), arc.edges.end());
      Answer answer = Answer::kNo;
      if (fits(mark)) {
        path_.push_back(&arc);
        answer = closes ? accept() : extend(length);
        path_.pop_back();
      }
      taken_.resize(mark);
      if (answer != Answer::kNo) {
        return answer;
      }
    }
    return Answer::kNo;
  }

  Answer extend(uint32_t length) {
    const uint32_t start = path_.front()->leaves;
    const size_t left = length - path_.size() - 1;
    const uint32_t threads = units_.threads();
    for (uint32_t t = 0; t < threads; ++t) {
      const auto& line = units_.line(t);
      // Where an earlier open edge of the path leads already, by directed edges.
      auto end = static_cast<uint32_t>(line.size());
      for (size_t i = 0; i + 1 < path_.size(); ++i) {
        end = std::min(end, units_.first_after(path_[i]->enters, t));
      }
      for (uint32_t at = units_.first_after(path_.back()->enters, t); at < end; ++at) {
        if (nearest_[left][t][static_cast<size_t>(at) * threads + units_.thread(start)] >
            units_.position(start)) {
          break;  // from here on nothing comes back
        }
        spend(1);
        if (++tries_ > max_tries_) {
          return Answer::kUnknown;
        }
        const Answer answer = leave(line[at], length);
        if (answer != Answer::kNo) {
          return answer;
        }
      }
    }
    return Answer::kNo;
  }

  // The certain order of the steps leads from where an open edge ends to where the arc begins.
  bool leads_on(uint32_t step, const Arc& arc) const {
    return std::any_of(arc.edges.begin(), arc.edges.end(),
                       [&](const Edge& edge) { return steps_.reaches(step, edge.from); });
  }

  // A cycle that begins with the arc may end: some open edge enters a unit that comes before, at a
  // step that does not.
  bool can_end(const Arc& first) {
    for (uint32_t t = 0; t < units_.threads(); ++t) {
      // All steps of a unit come before those of the next one.
      for (uint32_t at = units_.last_before(first.leaves, t); at != kNone; --at) {
        ++tries_;
        spend(1 + entering_[units_.line(t)[at]].size());
        const std::vector<uint32_t>& ends = entering_[units_.line(t)[at]];
        if (std::any_of(ends.begin(), ends.end(),
                        [&](uint32_t step) { return !leads_on(step, first); })) {
          return true;
        }
        if (!ends.empty()) {
          break;
        }
      }
    }
    return false;
  }

  // Directed edges lead back to the middle of the path: a cycle with fewer open edges.
  bool comes_back(uint32_t unit) const {
    return std::any_of(path_.begin() + 1, path_.end(),
                       [&](const Arc* earlier) { return units_.reaches(unit, earlier->leaves); });
  }

  // No cycle of steps goes through the edges taken from `first` on.
  bool fits(size_t first) const {
    for (size_t added = first; added < taken_.size(); ++added) {
      std::vector<bool> seen(taken_.size(), false);
      spend(taken_.size());
      std::vector<size_t> queue{added};
      for (size_t at = 0; at < queue.size(); ++at) {
        for (size_t next = 0; next < taken_.size(); ++next) {
          if (!steps_.reaches(taken_[queue[at]].to, taken_[next].from)) {
            continue;
          }
          if (next == added) {
            return false;
          }
          if (!seen[next]) {
            seen[next] = true;
            queue.push_back(next);
          }
        }
      }
    }
    return true;
  }

  // A refused one is passed over: another may have the recorded values.
  Answer accept() {
    const Answer answer = (*accept_)(taken_);
    if (answer == Answer::kNo) {
      refused_ = true;
    }
    return answer;
  }

  const ComponentSteps& steps_;
  const FencedUnits& units_;
  std::vector<std::vector<ArcGroup>> leaving_;   // by unit
  std::vector<std::vector<uint32_t>> entering_;  // steps at which open edges end, by unit
  uint64_t max_tries_;
  uint64_t tries_ = 0;
  bool refused_ = false;
  const Accept* accept_ = nullptr;
  std::vector<std::vector<uint32_t>> earliest_;
  std::vector<std::vector<std::vector<uint32_t>>> nearest_;
  std::vector<const Arc*> path_;
  std::vector<Edge> taken_;
};

class FencedComponent {
 public:
  FencedComponent(const ComponentQuestion& question, const OrientationBounds& bounds)
      : question_(question), bounds_(bounds), units_(question.units, question.members) {
    for (uint32_t i = 0; i < question.members.size(); ++i) {
      unit_index_[question.members[i]] = i;
    }
  }

  OrientationResult run() {
    result_.steps = 1;
    result_.work = question_.open.size() + question_.directed.size() + question_.members.size();
    const auto steps = ComponentSteps::build(question_, bounds_.max_bytes / 2);
    if (!steps ||
        uint64_t{8} * units_.size() * units_.threads() * units_.threads() > bounds_.max_bytes / 2) {
      return result_;
    }
    steps_ = &*steps;
    result_.work += uint64_t{steps_->steps()} * 2 * units_.threads();
    std::vector<Edge> directed;
    for (const Edge& edge : question_.directed) {
      directed.push_back({unit_index_.at(edge.from), unit_index_.at(edge.to)});
    }
    const bool plainly_cyclic = !units_.order(directed);
    if (!plainly_cyclic && !find_arcs(&directed)) {
      return result_;
    }
    if (plainly_cyclic || !units_.order(directed)) {
      // Every execution has a cycle. Without the open edges it can be shown only if it needs none.
      const bool shown = try_execution({}) == Answer::kYes;
      if (shown || plainly_cyclic) {
        result_.cyclic = Answer::kYes;
        result_.acyclic = Answer::kNo;
      }
      return result_;
    }
    find_cycle();
    if (result_.cyclic == Answer::kYes) {
      find_order();
    }
    return result_;
  }

 private:
  uint32_t unit_of(uint32_t e) const { return unit_index_.at(question_.units.of_event(e)); }

  bool possible(const StepOrder::Way& way) const {
    return std::all_of(way.begin(), way.end(),
                       [&](const Edge& edge) { return !steps_->reaches(edge.to, edge.from); });
  }

  // The open edges in both directions, by the units they leave; those that the steps decide are
  // added to `directed`. False: some has no direction left.
  bool find_arcs(std::vector<Edge>* directed) {
    std::map<std::pair<uint32_t, uint32_t>, std::vector<Arc>> groups;
    for (uint32_t i = 0; i < question_.open.size(); ++i) {
      spend(16);
      std::vector<Arc> both[2];
      for (const bool forward : {false, true}) {
        const Edge& open = question_.open[i];
        const uint32_t from = forward ? open.from : open.to;
        const uint32_t to = forward ? open.to : open.from;
        for (const StepOrder::Way& way : steps_->alternatives(from, to)) {
          if (possible(way)) {
            both[forward ? 1 : 0].push_back({i, unit_of(from), unit_of(to), way});
          }
        }
      }
      if (both[0].empty() && both[1].empty()) {
        return false;
      }
      const bool decided = both[0].empty() || both[1].empty();
      for (std::vector<Arc>& arcs : both) {
        for (Arc& arc : arcs) {
          if (decided) {
            directed->push_back({arc.leaves, arc.enters});
          } else {
            groups[{arc.leaves, arc.enters}].push_back(arc);
          }
        }
      }
    }
    leaving_.resize(units_.size());
    for (auto& [ends, arcs] : groups) {
      leaving_[ends.first].push_back({ends.second, needed(std::move(arcs))});
    }
    return true;
  }

  bool implies(const Arc& arc, const Arc& other) const {
    return std::all_of(other.edges.begin(), other.edges.end(), [&](const Edge& weak) {
      return std::any_of(arc.edges.begin(), arc.edges.end(), [&](const Edge& strong) {
        return steps_->reaches(weak.from, strong.from) && steps_->reaches(strong.to, weak.to);
      });
    });
  }

  // Between the same two units, an arc that implies another one is not needed; of two that imply
  // each other the first is kept.
  std::vector<Arc> needed(std::vector<Arc>&& arcs) const {
    if (arcs.size() > kMaxCompared) {
      return std::move(arcs);
    }
    std::vector<Arc> kept;
    for (size_t i = 0; i < arcs.size(); ++i) {
      bool is_needed = true;
      spend(4 * arcs.size());
      for (size_t j = 0; j < arcs.size() && is_needed; ++j) {
        is_needed = i == j || !implies(arcs[i], arcs[j]) || (i < j && implies(arcs[j], arcs[i]));
      }
      if (is_needed) {
        kept.push_back(arcs[i]);
      }
    }
    return kept;
  }

  // An execution with these orders of steps, kept if it has the recorded values.
  Answer try_execution(const std::vector<Edge>& extra) {
    const auto place = steps_->schedule(extra);
    if (!place) {
      return Answer::kNo;
    }
    std::vector<bool> orientation;
    spend(16 * question_.open.size());
    for (const Edge& open : question_.open) {
      const auto ways = steps_->alternatives(open.from, open.to);
      orientation.push_back(std::any_of(ways.begin(), ways.end(), [&](const auto& way) {
        return std::all_of(way.begin(), way.end(), [&](const Edge& edge) {
          return (*place)[edge.from] < (*place)[edge.to];
        });
      }));
    }
    result_.work += uint64_t{16} * (steps_->steps() + question_.open.size());
    if (question_.accept && !question_.accept(orientation)) {
      return ++refused_ > kMaxRefused ? Answer::kUnknown : Answer::kNo;
    }
    if (!result_.has_orientation) {
      result_.has_orientation = true;
      result_.orientation = std::move(orientation);
    }
    return Answer::kYes;
  }

  void find_cycle() {
    FencedCycles search(*steps_, units_, std::move(leaving_), bounds_.max_work / kTryWork);
    result_.cyclic =
        search.run([&](const std::vector<Edge>& taken) { return try_execution(taken); });
    result_.work += search.tries() * kTryWork;
  }

  // An execution in which the units follow an order: by their ends, or by their beginnings.
  void find_order() {
    refused_ = 0;
    for (const bool ends : {true, false}) {
      std::vector<uint32_t> key;
      for (const UnitId unit : question_.members) {
        key.push_back(ends ? question_.units[unit].last_event : question_.units[unit].first_event);
      }
      const std::vector<uint32_t> place = units_.places(key);
      std::vector<Edge> extra;
      for (const Edge& open : question_.open) {
        const bool forward = place[unit_of(open.from)] < place[unit_of(open.to)];
        const auto ways = forward ? steps_->alternatives(open.from, open.to)
                                  : steps_->alternatives(open.to, open.from);
        extra.insert(extra.end(), ways.front().begin(), ways.front().end());
      }
      if (try_execution(extra) == Answer::kYes) {
        result_.acyclic = Answer::kYes;
        return;
      }
    }
  }

  const ComponentQuestion& question_;
  const OrientationBounds& bounds_;
  FencedUnits units_;
  const ComponentSteps* steps_ = nullptr;
  std::unordered_map<UnitId, uint32_t> unit_index_;
  std::vector<std::vector<ArcGroup>> leaving_;
  int refused_ = 0;
  OrientationResult result_;
};

}  // namespace

OrientationResult check_fenced_component(const ComponentQuestion& question,
                                         const OrientationBounds& bounds) {
  return FencedComponent(question, bounds).run();
}

}  // namespace tsomon
