#include "offline/check/units_by_thread.h"

#include "tso/support/none.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

// Units that were to come before another one, and had to wait for it themselves: so many, and one
// for each unit.
constexpr uint64_t kMostGivenUp = 1000;

class UnitsByThread {
 public:
  UnitsByThread(const OrderedUnits& in, const AccessIndex& accesses, const Adjacency& before)
      : in_(in),
        accesses_(accesses),
        before_(before),
        state_(before.nodes(), State::kNew),
        passed_(accesses.lists(), 0) {
    if (!in.by_event) {
      sort_stores();
    }
  }

  std::vector<uint32_t> run() {
    order_.reserve(state_.size());
    for (ThreadId thread = 0; thread < in_.relation.threads(); ++thread) {
      for (const uint32_t e : in_.relation.of_thread(thread)) {
        if (is(in_.trace.events[e], kinds::kNodes) && !add(node_of(e))) {
          return {};
        }
      }
    }
    // Units of which nothing is left.
    for (uint32_t node = 0; node < state_.size(); ++node) {
      if (!add(node)) {
        return {};
      }
    }
    return std::move(order_);
  }

 private:
  enum class State : uint8_t { kNew, kOpen, kDone };
  struct Frame {
    uint32_t node;
    bool for_load;  // the one below it can do without
    uint32_t next_before = 0;
    uint32_t next_store = 0;
    bool again = false;  // something was put in front of it since its first store was looked at
  };

  uint32_t node_of(uint32_t e) const { return in_.by_event ? e : in_.units.of_event(e); }

  bool add(uint32_t node) {
    if (state_[node] == State::kNew) {
      push(node, false);
      return settle();
    }
    return true;
  }

  // The stores of each unit.
  void sort_stores() {
    const auto n = static_cast<uint32_t>(in_.trace.events.size());
    spend(4 * uint64_t{n});
    std::vector<Edge> of_unit;
    for (uint32_t e = 0; e < n; ++e) {
      if (writes(e)) {
        of_unit.push_back({node_of(e), e});
      }
    }
    stores_ = Adjacency(state_.size(), of_unit);
  }
  bool writes(uint32_t e) const {
    return accesses_.list_of(e) != AccessIndex::kNone && !in_.relation.only_reads(e);
  }
  uint32_t stores(uint32_t node) const {
    return in_.by_event ? (writes(node) ? 1U : 0U)
                        : static_cast<uint32_t>(stores_.successors(node).size());
  }
  uint32_t store(uint32_t node, uint32_t place) const {
    return in_.by_event ? node : stores_.successors(node)[place];
  }

  void push(uint32_t node, bool for_load) {
    state_[node] = State::kOpen;
    open_.push_back({node, for_load});
  }

  // Until nothing is open. False: the edges have a cycle.
  bool settle() {
    while (!open_.empty()) {
      Frame& top = open_.back();
      spend(1);
      if (top.next_before < before_.successors(top.node).size()) {
        const uint32_t node = before_.successors(top.node)[top.next_before];
        if (state_[node] == State::kOpen && node != top.node) {
          if (!give_up()) {
            return false;
          }
        } else {
          ++top.next_before;
          if (state_[node] == State::kNew) {
            push(node, false);
          }
        }
      } else if (top.next_store < stores(top.node)) {
        const uint32_t node = wanted_before(store(top.node, top.next_store));
        ++top.next_store;
        if (node != kNone && state_[node] == State::kNew) {
          top.again = true;
          push(node, true);
        }
      } else if (top.again) {
        top.again = false;
        top.next_store = 0;
      } else {
        state_[top.node] = State::kDone;
        order_.push_back(top.node);
        open_.pop_back();
      }
    }
    return true;
  }

  // The latest unit that is to come for the sake of a load does not.
  bool give_up() {
    while (!open_.empty()) {
      const Frame top = open_.back();
      open_.pop_back();
      state_[top.node] = State::kNew;
      spend(1);
      ++given_up_;
      if (top.for_load) {
        open_.back().again = false;
        return given_up_ <= kMostGivenUp + state_.size();
      }
    }
    return false;
  }

  // The unit of the last load of another thread that was issued before the store, and whose own
  // store is in the order.
  uint32_t wanted_before(uint32_t w) {
    uint32_t wanted = kNone;
    for_each_conflicting_list(in_.relation, accesses_, w, [&](uint32_t number, ThreadId) {
      if (wanted != kNone || number % 2 == 0) {
        return;
      }
      const auto loads = accesses_.list(number);
      uint32_t& passed = passed_[number];
      while (passed < loads.size() && state_[node_of(loads[passed])] == State::kDone) {
        ++passed;
      }
      for (uint32_t at = passed; at < loads.size(); ++at) {
        spend(1);
        const uint32_t load = loads[at];
        const uint32_t source = in_.relation.source(load);
        if (node_of(load) == node_of(w) || !in_.relation.certainly_before(load, w) ||
            (source != Relation::kNever && state_[node_of(source)] != State::kDone)) {
          break;
        }
        wanted = state_[node_of(load)] == State::kNew ? node_of(load) : kNone;
      }
    });
    return wanted;
  }

  const OrderedUnits& in_;
  const AccessIndex& accesses_;
  const Adjacency& before_;
  std::vector<State> state_;      // by node
  std::vector<uint32_t> passed_;  // by list: so many of its first events are in the order
  Adjacency stores_;
  std::vector<Frame> open_;  // each is to come before the one below it
  std::vector<uint32_t> order_;
  uint64_t given_up_ = 0;
};

}  // namespace

std::vector<uint32_t> units_by_thread(const OrderedUnits& in, const AccessIndex& accesses,
                                      const Adjacency& before) {
  return UnitsByThread(in, accesses, before).run();
}

}  // namespace tsomon
