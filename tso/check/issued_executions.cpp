#include "tso/check/issued_executions.h"

#include <algorithm>
#include <bit>
#include <string>
#include <unordered_set>
#include <utility>

#include "tso/check/definitions.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

using Set = uint64_t;  // of nodes, or of units

constexpr uint8_t kInitial = 0xFF;

class Search {
 public:
  Search(const Relation& issues, const UnitTable& units, const RecordedValues& values,
         const std::vector<UnitId>& among, uint64_t max_states)
      : issues_(issues), values_(values), max_states_(max_states) {
    const Trace& trace = issues.trace();
    std::vector<UnitId> known;
    std::vector<LocationId> locations;
    const auto number = [](auto& all, auto one) {
      const auto at = std::find(all.begin(), all.end(), one);
      all.insert(at, at == all.end() ? 1 : 0, one);
      return static_cast<uint8_t>(std::find(all.begin(), all.end(), one) - all.begin());
    };
    for (uint32_t e = 0; e < trace.events.size(); ++e) {
      const Event& event = trace.events[e];
      if (!is(event, kinds::kNodes)) {
        continue;
      }
      Node node;
      node.event = e;
      const UnitId unit = units.of_event(e);
      node.unit = number(known, unit);
      among_ |= std::binary_search(among.begin(), among.end(), unit) ? bit(node.unit) : 0;
      node.location = issues.locations().of_event(e) == LocationTable::kNone
                          ? kInitial
                          : number(locations, issues.locations().of_event(e));
      nodes_.push_back(node);
    }
    memory_.assign(locations.size(), kInitial);
    locations_ = std::move(locations);
    reach_.assign(known.size(), 0);
  }

  void order_nodes(const Reachability& order) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      for (size_t j = 0; j < nodes_.size(); ++j) {
        const uint32_t e = nodes_[i].event;
        const uint32_t f = nodes_[j].event;
        if (i == j) {
          continue;
        }
        const bool in_thread = thread(i) == thread(j);
        if (in_thread ? issues_.position(e) < issues_.position(f) : order.reaches(e, f)) {
          nodes_[j].before |= bit(i);
          nodes_[j].own |= in_thread ? bit(i) : 0;
        }
        // Not of conflicts alone: a thread's start comes before what it does.
        if (in_thread || issues_.conflict(e, f) || issues_.between(e, f) == Order::kBefore) {
          nodes_[j].edges |= bit(i);
        }
      }
    }
  }

  // As the checker of witnesses has it: of sections that end.
  void exclude() {
    const TraceDefinitions definitions(issues_.trace(), issues_.options());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const uint32_t end = definitions.end_of_section(nodes_[i].event);
      const auto release = std::find_if(nodes_.begin(), nodes_.end(),
                                        [&](const Node& node) { return node.event == end; });
      for (size_t j = 0; release != nodes_.end() && j < nodes_.size(); ++j) {
        if (j != i && definitions.end_of_section(nodes_[j].event) != TraceDefinitions::kNone &&
            definitions.conflict(nodes_[i].event, nodes_[j].event)) {
          nodes_[j].sections.emplace_back(static_cast<uint8_t>(i),
                                          static_cast<uint8_t>(release - nodes_.begin()));
        }
      }
    }
  }

  IssuedExecutions run() {
    extend();
    IssuedExecutions found;
    const Answer otherwise = over_ ? Answer::kUnknown : Answer::kNo;
    found.cyclic = cyclic_ ? Answer::kYes : otherwise;
    found.acyclic = acyclic_ ? Answer::kYes : otherwise;
    found.witness = std::move(witness_);
    return found;
  }

 private:
  struct Node {
    uint32_t event = 0;
    uint8_t unit = 0;
    uint8_t location = kInitial;  // none
    Set before = 0;               // issued before it in every execution
    Set own = 0;                  // of these, those of its thread
    // Of an acquisition, those that keep it out until their release has taken effect.
    std::vector<std::pair<uint8_t, uint8_t>> sections;
    Set edges = 0;  // an edge to this one, if they are issued before it
  };

  static Set bit(size_t i) { return Set{1} << i; }
  ThreadId thread(size_t i) const { return issues_.trace().events[nodes_[i].event].thread; }

  // States from which all has been tried are not tried again.
  bool is_new() {
    std::string key;
    const auto put = [&](const void* bytes, size_t size) {
      key.append(static_cast<const char*>(bytes), size);
    };
    put(&issued_, sizeof issued_);
    put(&done_, sizeof done_);
    put(memory_.data(), memory_.size());
    key += cycle_ ? 'c' : ' ';
    if (!cycle_) {
      put(reach_.data(), reach_.size() * sizeof(Set));
    }
    spend(key.size());
    return seen_.insert(std::move(key)).second;
  }

  void extend() {
    if (cyclic_ && (acyclic_ || cycle_)) {
      return;
    }
    if (seen_.size() >= max_states_) {
      over_ = true;
      return;
    }
    if (!is_new()) {
      return;
    }
    const Set all = nodes_.size() == 64 ? ~Set{0} : bit(nodes_.size()) - 1;
    if (issued_ == all && done_ == all) {
      if (cycle_ && !cyclic_) {
        witness_ = steps_;
      }
      (cycle_ ? cyclic_ : acyclic_) = true;
      return;
    }
    // Commits first: what is shown then has as few late ones as can be.
    for (Set waiting = issued_ & ~done_; waiting != 0; waiting &= waiting - 1) {
      const auto i = static_cast<size_t>(std::countr_zero(waiting));
      if ((issued_ & ~done_ & nodes_[i].own) == 0) {
        commit(i);
      }
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if ((issued_ & bit(i)) == 0 && (nodes_[i].before & ~issued_) == 0) {
        issue(i);
      }
    }
  }

  void commit(size_t i) {
    const uint8_t location = nodes_[i].location;
    const uint8_t old = location == kInitial ? kInitial : memory_[location];
    if (location != kInitial) {
      memory_[location] = static_cast<uint8_t>(i);
    }
    done_ |= bit(i);
    steps_.push_back({true, nodes_[i].event});
    extend();
    steps_.pop_back();
    done_ &= ~bit(i);
    if (location != kInitial) {
      memory_[location] = old;
    }
  }

  // The newest store of its thread to the location that waits; kInitial: none.
  uint8_t waiting_store(size_t i) const {
    uint8_t newest = kInitial;
    for (Set waiting = issued_ & ~done_; waiting != 0; waiting &= waiting - 1) {
      const auto j = static_cast<size_t>(std::countr_zero(waiting));
      if (thread(j) == thread(i) && nodes_[j].location == nodes_[i].location) {
        newest = static_cast<uint8_t>(j);  // the greatest number
      }
    }
    return newest;
  }

  bool returns_value(size_t i) const {
    const uint8_t location = nodes_[i].location;
    const auto read = values_.read(nodes_[i].event);
    if (!read || location == kInitial || !values_.usable(locations_[location])) {
      return true;
    }
    const uint8_t own = waiting_store(i);
    const uint8_t from = own != kInitial ? own : memory_[location];
    const auto held = from == kInitial ? values_.initial(locations_[location])
                                       : values_.written(nodes_[from].event);
    return !held || *held == *read;
  }

  void issue(size_t i) {
    const uint32_t e = nodes_[i].event;
    const Set mine = issued_ & ~done_ & nodes_[i].own;
    const uint32_t room = issues_.options().store_buffer;
    const bool store = issues_.is_store(e);
    const bool kept_out =
        std::any_of(nodes_[i].sections.begin(), nodes_[i].sections.end(), [&](const auto& section) {
          return (issued_ & bit(section.first)) != 0 && (done_ & bit(section.second)) == 0;
        });
    if (kept_out || (issues_.drains(e) && mine != 0) || !returns_value(i) ||
        (store && room != 0 && static_cast<uint32_t>(std::popcount(mine)) >= room)) {
      return;
    }
    const std::vector<Set> reach = reach_;
    const bool cycle = cycle_;
    const uint8_t location = nodes_[i].location;
    const bool writes = issues_.trace().events[e].kind() == EventKind::kReadModifyWrite;
    const uint8_t old = writes ? memory_[location] : kInitial;
    for (Set from = issued_ & nodes_[i].edges; from != 0 && !cycle_; from &= from - 1) {
      add_edge(nodes_[static_cast<size_t>(std::countr_zero(from))].unit, nodes_[i].unit);
    }
    issued_ |= bit(i);
    done_ |= store ? 0 : bit(i);
    if (writes) {
      memory_[location] = static_cast<uint8_t>(i);
    }
    steps_.push_back({false, e});
    extend();
    steps_.pop_back();
    if (writes) {
      memory_[location] = old;
    }
    done_ &= ~bit(i);
    issued_ &= ~bit(i);
    reach_ = reach;
    cycle_ = cycle;
  }

  void add_edge(uint8_t from, uint8_t to) {
    if (from == to || (reach_[from] & bit(to)) != 0) {
      return;
    }
    const Set there = reach_[to] | bit(to);
    for (size_t unit = 0; unit < reach_.size(); ++unit) {
      if (unit == from || (reach_[unit] & bit(from)) != 0) {
        reach_[unit] |= there;
        cycle_ = cycle_ || ((reach_[unit] & among_ & bit(unit)) != 0);
      }
    }
  }

  const Relation& issues_;
  const RecordedValues& values_;
  const uint64_t max_states_;
  std::vector<Node> nodes_;
  std::vector<LocationId> locations_;
  Set among_ = 0;
  // The state.
  Set issued_ = 0;
  Set done_ = 0;                 // has taken effect
  std::vector<uint8_t> memory_;  // by location, the node that wrote last
  std::vector<Set> reach_;       // by unit
  bool cycle_ = false;
  std::vector<Step> steps_;
  std::unordered_set<std::string> seen_;
  // What was found.
  bool over_ = false;
  bool cyclic_ = false;
  bool acyclic_ = false;
  std::vector<Step> witness_;
};

}  // namespace

IssuedExecutions issued_executions(const Relation& issues, const UnitTable& units,
                                   const RecordedValues& values, const Reachability& order,
                                   const std::vector<UnitId>& among, bool exclusion,
                                   uint64_t max_states) {
  const Trace& trace = issues.trace();
  const auto nodes = std::count_if(trace.events.begin(), trace.events.end(),
                                   [](const Event& event) { return is(event, kinds::kNodes); });
  const bool hands_over = std::any_of(trace.events.begin(), trace.events.end(),
                                      [](const Event& e) { return is(e, kinds::kHandOvers); });
  if (static_cast<size_t>(nodes) > IssuedExecutions::kMaxNodes || hands_over ||
      trace.pending_prefix != 0 || !trace.complete) {
    return {};
  }
  Search search(issues, units, values, among, max_states);
  search.order_nodes(order);
  if (exclusion) {
    search.exclude();
  }
  return search.run();
}

}  // namespace tsomon
