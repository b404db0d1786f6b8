#include "offline/explain/repairs.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "offline/explain/executions.h"
#include "offline/explain/explained.h"
#include "offline/explain/fence_repairs.h"
#include "offline/explain/smallest_blocks.h"
#include "tso/support/work.h"

namespace tsomon::explain {
namespace {

constexpr size_t kMaxCommon = 1'000;  // sets of blocks on the way to those of all violations

class Search {
 public:
  Search(const std::vector<ViolatingTrace>& violating, const std::vector<PassingTrace>& passing,
         const RepairOptions& options)
      : violating_(violating), passing_(passing), options_(options) {}

  Repairs run() {
    step([&] { find_violations(); });
    result_.violations = violations_.size();
    step([&] { look_at_slices(); });
    if (options_.minimize) {
      step([&] { minimize(); });
    }
    if (options_.fences) {
      step([&] { find_fence_repairs(inputs_, pointers(), options_, &result_); });
    }
    if (options_.blocks) {
      step([&] { find_blocks(); });
    }
    step([&] { ask_passing(0); });
    arrange();
    step([&] { verify_blocks(); });
    const size_t asked = result_.repairs.size();
    if (options_.blocks) {
      step([&] { find_smallest_blocks(); });
    }
    if (options_.blocks && options_.fences) {
      step([&] { combine(); });
    }
    step([&] { ask_passing(asked); });
    arrange();  // what was refuted comes last
    if (!of_events() && result_.repairs.empty() && !violations_.empty()) {
      result_.notes.missing("neither fences nor blocks were found, nor both together");
    }
    step([&] { find_locks(); });
    return std::move(result_);
  }

 private:
  // What ends before its time leaves what it has found, and so do the steps after it.
  template <typename Work>
  void step(const Work& work) {
    try {
      work();
    } catch (const WorkEnded& ended) {
      const WorkPause outside;
      result_.notes.missing(limit_text(ended.limit()));
    }
  }

  bool of_events() const { return options_.analysis.property == Property::kRobustness; }

  OrderOptions order_options() const {
    OrderOptions order{options_.analysis.relation, options_.analysis.values,
                       options_.analysis.max_undirected};
    if (options_.analysis.property == Property::kScSerializability) {
      order.relation.model = MemoryModel::kSc;
      order.values = false;
    }
    return order;
  }

  void find_violations() {
    for (const ViolatingTrace& one : violating_) {
      ExplainedTrace& input = inputs_.emplace_back();
      input.trace = one.trace;
      const UnitTable units(*one.trace);
      code_.add(*one.trace, units, one.place_of);
      input.unit_events = events_of_units(*one.trace, units);
    }
    for (const PassingTrace& one : passing_) {
      code_.add(*one.trace, UnitTable(*one.trace), one.place_of);
    }
    for (uint32_t i = 0; i < violating_.size(); ++i) {
      of_events() ? add_cycles(i) : add_circles(i);
    }
  }

  void add_cycles(uint32_t input) {
    for (const std::vector<CycleEdge>& cycle : violating_[input].cycles) {
      ExplainedViolation& one = violations_.emplace_back();
      one.input = input;
      std::map<ThreadId, EventRange> ranges;
      for (const CycleEdge& edge : cycle) {
        for (const uint32_t e : {edge.from, edge.to}) {
          const ThreadId thread = inputs_[input].trace->events[e].thread;
          EventRange& range = ranges.try_emplace(thread, EventRange{thread, e, e}).first->second;
          range.first = std::min(range.first, e);
          range.last = std::max(range.last, e);
        }
      }
      for (const auto& [thread, range] : ranges) {
        one.members.push_back(range);
      }
    }
  }

  void add_circles(uint32_t index) {
    ExplainedTrace& input = inputs_[index];
    std::vector<std::vector<Edge>> chosen;
    for (const std::vector<CycleEdge>& cycle : violating_[index].cycles) {
      std::vector<Edge>& edges = chosen.emplace_back();
      for (const CycleEdge& edge : cycle) {
        if (edge.kind == EdgeKind::kReordering) {
          edges.push_back({edge.from, edge.to});
        }
      }
    }
    input.ordered = OrderedTrace::make(*input.trace, order_options(), chosen);
    if (!input.ordered) {
      result_.notes.missing("the order of a trace contradicts itself");
      return;
    }
    if (!input.ordered->complete()) {
      result_.notes.missing("not all orders of a trace were looked at");
    }
    std::map<UnitId, size_t> circle_of;
    std::vector<std::vector<UnitId>> circles = input.ordered->circles();
    for (size_t i = 0; i < circles.size(); ++i) {
      for (const UnitId unit : circles[i]) {
        circle_of[unit] = i;
      }
    }
    std::set<size_t> taken;
    for (const std::vector<CycleEdge>& cycle : violating_[index].cycles) {
      const auto circle = circle_of.find(cycle.front().unit);
      if (circle != circle_of.end()) {
        if (taken.insert(circle->second).second) {
          add_circle(index, std::move(circles[circle->second]));
        }
        continue;
      }
      std::set<UnitId> units;
      for (const CycleEdge& edge : cycle) {
        units.insert(edge.unit);
      }
      add_circle(index, {units.begin(), units.end()});
    }
  }

  void add_circle(uint32_t input, std::vector<UnitId> units) {
    ExplainedViolation& one = violations_.emplace_back();
    one.input = input;
    one.units = std::move(units);
    for (const UnitId unit : one.units) {
      const Unit& of = inputs_[input].ordered->units()[unit];
      one.members.push_back({of.thread, of.first_event, of.last_event});
    }
  }

  void look_at_slices() {
    for (ExplainedViolation& one : violations_) {
      std::vector<uint32_t> labels;
      for (const UnitId unit : one.units) {
        labels.push_back(inputs_[one.input].ordered->units()[unit].label);
      }
      one.slice.emplace(*inputs_[one.input].trace, one.members, labels, options_.analysis);
    }
  }

  void minimize() {
    constexpr uint64_t kMaxQuestions = 5'000;
    for (const ExplainedViolation& one : violations_) {
      if (one.slice && one.slice->can_ask()) {
        SmallestTrace smallest{one.input, {}, true};
        smallest.events = one.slice->smallest(kMaxQuestions, &smallest.complete);
        result_.smallest.push_back(std::move(smallest));
      }
    }
  }

  // Blocks

  void find_blocks() {
    if (of_events()) {
      return;
    }
    std::vector<std::vector<SegmentSet>> lists;
    bool complete = true;
    for (ExplainedViolation& one : violations_) {
      const ExplainedTrace& input = inputs_[one.input];
      if (!input.ordered) {
        return;
      }
      const UnitTable& units = input.ordered->units();
      const auto executions = one.slice ? causes_in_executions(*one.slice, units, order_options(),
                                                               code_, options_.causes)
                                        : std::nullopt;
      if (!executions || executions->empty()) {
        one.causes =
            causes_of(*input.ordered, one.units, input.unit_events, code_, options_.causes);
        add_list(one.causes, &lists);
        complete = complete && one.causes.complete;
        continue;
      }
      for (const CircleCauses& execution : *executions) {
        add_list(execution, &lists);
        one.causes.sets.insert(execution.sets.begin(), execution.sets.end());
        complete = complete && execution.complete;
      }
    }
    const std::vector<SegmentSet> common = common_repairs(lists, kMaxCommon, &complete);
    if (!complete) {
      result_.notes.missing("not all sets of blocks were looked at");
    }
    for (const SegmentSet& set : common) {
      if (set.empty()) {
        continue;
      }
      add_blocks(set);
    }
  }

  static void add_list(const CircleCauses& causes, std::vector<std::vector<SegmentSet>>* lists) {
    std::vector<SegmentSet> sets;
    for (const auto& [set, found] : causes.sets) {
      sets.push_back(set);
    }
    if (std::find(lists->begin(), lists->end(), sets) == lists->end()) {
      lists->push_back(std::move(sets));
    }
  }

  BlockPlace place_of(const Segment& block) const {
    BlockPlace place;
    place.found.block = block;
    place.method = code_.method_name(block.operation);
    place.code = code_.code_of(block);
    place.first_location = code_.location(block.operation, block.first);
    place.last_location = code_.location(block.operation, block.last);
    bool is_whole = false;
    bool is_known = false;
    for (const ExplainedViolation& one : violations_) {
      for (const auto& [set, occurrences] : one.causes.sets) {
        for (const Occurrence& found : occurrences) {
          if (block.contains(found.block) && (!is_known || (found.block == block && !is_whole))) {
            is_known = true;
            is_whole = found.block == block;
            place.input = one.input;
            place.found.unit = found.unit;
            place.found.first = found.first;
            place.found.last = found.last;
          }
        }
      }
      for (size_t i = 0; !is_known && i < one.units.size(); ++i) {
        is_known = find_in(one, one.units[i], block, &place);
      }
    }
    return place;
  }

  // The block's run in the unit, if it has one.
  bool find_in(const ExplainedViolation& one, UnitId unit, const Segment& block,
               BlockPlace* place) const {
    if (method_of(one, unit) != block.operation) {
      return false;
    }
    bool any = false;
    for (const uint32_t e : inputs_[one.input].unit_events[unit]) {
      const uint32_t line = code_.line(block.operation, *inputs_[one.input].trace, e);
      if (line == CodeMap::kNone || line < block.first || line > block.last) {
        continue;
      }
      place->found.first = any ? place->found.first : e;
      place->found.last = e;
      any = true;
    }
    place->input = any ? one.input : place->input;
    place->found.unit = any ? unit : place->found.unit;
    return any;
  }

  // The passing traces

  // Looks at the repairs from the `first` on.
  void ask_passing(size_t first) {
    for (const PassingTrace& one : passing_) {
      const Trace& trace = *one.trace;
      const auto ordered = OrderedTrace::make(trace, order_options(), {});
      if (!ordered) {
        result_.notes.missing("the order of a passing trace contradicts itself");
        continue;
      }
      std::map<std::string, std::vector<uint32_t>> stores;
      for (uint32_t e = 0; e < trace.events.size(); ++e) {
        spend(4);
        if (is(trace.events[e], kinds::kStores)) {
          stores[location_of(trace, e)].push_back(e);
        }
      }
      for (size_t i = first; i < result_.repairs.size(); ++i) {
        Repair& repair = result_.repairs[i];
        repair.forbids += forbids(repair, *ordered, stores) ? 1 : 0;
      }
    }
  }

  bool forbids(const Repair& repair, const OrderedTrace& ordered,
               const std::map<std::string, std::vector<uint32_t>>& stores) const {
    if (!repair.code.empty()) {
      uint32_t count = 0;
      const auto classes = code_.occurrences(ordered.trace(), ordered.units(), repair.code, &count);
      if (ordered.has_cycle(count, classes)) {
        return true;
      }
    }
    if (repair.fences.empty()) {
      return false;
    }
    const auto end = static_cast<uint32_t>(ordered.trace().events.size());
    const Question question = cut_out(ordered.trace(), 0, end - 1, kAround, options_.analysis);
    std::vector<uint32_t> after;
    for (const FencePlace& fence : repair.fences) {
      if (const auto at = stores.find(fence.location); at != stores.end()) {
        after.insert(after.end(), at->second.begin(), at->second.end());
      }
    }
    std::sort(after.begin(), after.end());
    return !after.empty() &&
           violations_left(with_fences(question, after, FenceTime::kOpen)) == Left::kNoExecution;
  }

  static bool is_refuted(const Repair& repair) { return repair.verified == std::optional(false); }

  void arrange() {
    const WorkPause outside;
    const auto key = [](const Repair& repair) {
      uint64_t cost = 0;
      for (const FencePlace& fence : repair.fences) {
        cost += fence.times;
      }
      uint64_t lines = 0;
      for (const Segment& block : repair.code) {
        lines += block.last - block.first + 1;
      }
      return std::tuple(is_refuted(repair), repair.forbids, repair.fences.empty(), cost,
                        repair.code.size(), lines, repair.code);
    };
    std::stable_sort(result_.repairs.begin(), result_.repairs.end(),
                     [&](const Repair& a, const Repair& b) { return key(a) < key(b); });
    if (result_.repairs.size() > options_.max_repairs) {
      result_.notes.say(fmt::format("{} more repairs are not shown",
                                    result_.repairs.size() - options_.max_repairs));
      result_.repairs.resize(options_.max_repairs);
    }
    uint32_t rank = 0;
    for (size_t i = 0; i < result_.repairs.size(); ++i) {
      const bool same = i > 0 && result_.repairs[i].forbids == result_.repairs[i - 1].forbids &&
                        is_refuted(result_.repairs[i]) == is_refuted(result_.repairs[i - 1]);
      rank += same ? 0 : 1;
      result_.repairs[i].rank = rank;
    }
  }

  void verify_blocks() {
    for (Repair& repair : result_.repairs) {
      if (repair.fences.empty()) {
        repair.verified = all_interrupt(repair.code);
      }
    }
  }

  std::vector<const ExplainedViolation*> pointers() const {
    std::vector<const ExplainedViolation*> all;
    for (const ExplainedViolation& one : violations_) {
      all.push_back(&one);
    }
    return all;
  }

  // Every execution of every violation interrupts one of them; nothing: that was not decided.
  std::optional<bool> all_interrupt(const SegmentSet& blocks) const {
    return all_interrupt(blocks, pointers());
  }
  std::optional<bool> all_interrupt(const SegmentSet& blocks,
                                    const std::vector<const ExplainedViolation*>& of) const {
    std::map<uint32_t, std::vector<uint32_t>> occurrences;  // by input
    std::map<uint32_t, uint32_t> counts;
    std::optional<bool> holds = true;
    for (const ExplainedViolation* const violation : of) {
      const ExplainedViolation& one = *violation;
      const ExplainedTrace& input = inputs_[one.input];
      if (!one.slice || !input.ordered) {
        holds.reset();
        continue;
      }
      if (occurrences.count(one.input) == 0) {
        occurrences[one.input] =
            code_.occurrences(*input.trace, input.ordered->units(), blocks, &counts[one.input]);
      }
      const auto one_holds = one.slice->interrupts(counts[one.input], occurrences[one.input]);
      if (!one_holds) {
        holds.reset();
      } else if (!*one_holds) {
        return false;
      }
    }
    return holds;
  }

  // What single orders of the accesses ask for may not be enough for all executions. Then blocks are made smaller,
  // from the whole methods on, as long as they are.
  void find_smallest_blocks() {
    const bool known =
        std::any_of(result_.repairs.begin(), result_.repairs.end(), [](const Repair& repair) {
          return repair.fences.empty() && repair.verified == std::optional(true);
        });
    if (of_events() || known) {
      return;
    }
    SegmentSet all = whole_methods();
    const SmallestBlocks found = smallest_blocks(
        std::move(all), code_,
        [&](const SegmentSet& blocks) { return all_interrupt(blocks) == std::optional(true); });
    if (!found.complete) {
      result_.notes.missing("not all sets of blocks were looked at");
    }
    if (!found.blocks.empty()) {
      add_blocks(found.blocks).verified = true;
    }
  }

  SegmentSet whole_methods() const {
    SegmentSet all;
    for (const ExplainedViolation& one : violations_) {
      for (const UnitId unit : one.units) {
        if (const uint32_t method = method_of(one, unit); method != CodeMap::kNone) {
          all = merged(all, {code_.whole(method)});
        }
      }
    }
    return all;
  }

  // Blocks for the violations that they are enough for, and fences for the others.
  void combine() {
    const bool known =
        std::any_of(result_.repairs.begin(), result_.repairs.end(),
                    [](const Repair& repair) { return repair.verified == std::optional(true); });
    if (of_events() || known || violations_.size() < 2) {
      return;
    }
    const SegmentSet all = whole_methods();
    std::vector<const ExplainedViolation*> blocked;
    std::vector<const ExplainedViolation*> fenced;
    for (const ExplainedViolation& one : violations_) {
      const bool enough = !all.empty() && all_interrupt(all, {&one}) == std::optional(true);
      (enough ? blocked : fenced).push_back(&one);
    }
    if (blocked.empty() || fenced.empty()) {
      return;
    }
    Repairs fences;
    find_fences_around(inputs_, fenced, options_, &fences);
    result_.notes.add(fences.notes);
    const SmallestBlocks blocks = smallest_blocks(all, code_, [&](const SegmentSet& some) {
      return all_interrupt(some, blocked) == std::optional(true);
    });
    if (!blocks.complete) {
      result_.notes.missing("not all sets of blocks were looked at");
    }
    for (const Repair& one : fences.repairs) {
      Repair& both = add_blocks(blocks.blocks);
      both.fences = one.fences;
      both.assumes_times = one.assumes_times;
      both.verified = true;
    }
  }

  uint32_t method_of(const ExplainedViolation& one, UnitId unit) const {
    const ExplainedTrace& input = inputs_[one.input];
    return input.ordered
               ? code_.method(*input.trace, input.ordered->units()[unit], input.unit_events[unit])
               : CodeMap::kNone;
  }

  Repair& add_blocks(const SegmentSet& set) {
    Repair& repair = result_.repairs.emplace_back();
    repair.code = set;
    for (const Segment& block : set) {
      repair.blocks.push_back(place_of(block));
    }
    return repair;
  }

  void find_locks() {
    for (Repair& repair : result_.repairs) {
      for (BlockPlace& place : repair.blocks) {
        const ExplainedTrace& input = inputs_[place.input];
        std::vector<uint32_t> inside;
        for (const uint32_t e : input.unit_events[place.found.unit]) {
          if (place.found.first <= e && e <= place.found.last) {
            inside.push_back(e);
          }
        }
        place.lock = lock_for(*input.trace, inside);
      }
    }
  }

  const std::vector<ViolatingTrace>& violating_;
  const std::vector<PassingTrace>& passing_;
  const RepairOptions& options_;
  CodeMap code_;
  std::vector<ExplainedTrace> inputs_;
  std::vector<ExplainedViolation> violations_;
  Repairs result_;
};

}  // namespace

Repairs find_repairs(const std::vector<ViolatingTrace>& violating,
                     const std::vector<PassingTrace>& passing, const RepairOptions& options) {
  return Search(violating, passing, options).run();
}

}  // namespace tsomon::explain
