#include "offline/linearizability/search.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "offline/linearizability/cell.h"
#include "offline/linearizability/container.h"
#include "offline/linearizability/failed_configurations.h"
#include "tso/support/none.h"

namespace tsomon::linearizability {
namespace {

// Calls and returns in the order of their positions, linked; 0 is the head and the end.
class Events {
 public:
  struct Event {
    uint32_t op = kNone;
    bool is_return = false;
    uint32_t next = 0;
    uint32_t previous = 0;
  };

  explicit Events(const std::vector<Op>& ops) : call_(ops.size()), return_(ops.size(), 0) {
    std::vector<std::tuple<uint32_t, bool, uint32_t>> order;
    order.reserve(2 * ops.size());
    for (uint32_t i = 0; i < ops.size(); ++i) {
      order.emplace_back(ops[i].call, false, i);
      if (ops[i].ret != kNone) {
        order.emplace_back(ops[i].ret, true, i);
      }
    }
    std::sort(order.begin(), order.end());
    events_.resize(order.size() + 1);
    for (uint32_t i = 0; i < order.size(); ++i) {
      const auto& [position, is_return, op] = order[i];
      events_[i + 1] = {op, is_return, i + 2, i};
      (is_return ? return_ : call_)[op] = i + 1;
    }
    events_.back().next = 0;
    events_[0] = {kNone, false, order.empty() ? 0U : 1U, static_cast<uint32_t>(order.size())};
  }

  uint32_t first() const { return events_[0].next; }
  const Event& at(uint32_t event) const { return events_[event]; }
  uint32_t call(uint32_t op) const { return call_[op]; }

  void lift(uint32_t op) {
    unlink(call_[op]);
    if (return_[op] != 0) {
      unlink(return_[op]);
    }
  }
  // The reverse of the last lift() that has not been reversed.
  void put_back(uint32_t op) {
    if (return_[op] != 0) {
      link(return_[op]);
    }
    link(call_[op]);
  }

 private:
  void unlink(uint32_t event) {
    const Event& gone = events_[event];
    events_[gone.previous].next = gone.next;
    events_[gone.next].previous = gone.previous;
  }
  void link(uint32_t event) {
    const Event& back = events_[event];
    events_[back.previous].next = event;
    events_[back.next].previous = event;
  }

  std::vector<Event> events_;
  std::vector<uint32_t> call_;    // by operation
  std::vector<uint32_t> return_;  // 0: none
};

template <typename State>
class Search {
 public:
  Search(const History& history, const Part& part, const SearchBounds& bounds)
      : ops_(part.ops), bounds_(bounds), events_(part.ops), state_(history, part) {
    std::map<std::tuple<Step, HistoryValue, HistoryValue>, uint32_t> last;
    alike_.assign(ops_.size(), kNone);
    taken_.assign(ops_.size(), false);
    for (uint32_t i = 0; i < ops_.size(); ++i) {
      if (!ops_[i].pending) {
        ++open_;
        continue;
      }
      const auto [at, is_new] = last.try_emplace({ops_[i].step, ops_[i].a, ops_[i].b}, i);
      if (!is_new) {
        alike_[i] = at->second;
        at->second = i;
      }
    }
  }

  SearchResult run() {
    SearchResult result;
    result.answer = find();
    result.work = work_;
    if (result.answer == Answer::kLinearizable) {
      for (const Taken& taken : order_) {
        result.order.push_back(taken.op);
      }
    }
    return result;
  }

 private:
  struct Taken {
    uint32_t op;
    uint32_t last;  // the greatest operation taken up to here
  };

  Answer find() {
    uint32_t event = events_.first();
    int round = 0;  // which operations are looked at
    while (open_ > 0) {
      if (++work_ > bounds_.max_work) {
        return Answer::kBound;
      }
      // With operations open there is a return, so the list does not end before it.
      const Events::Event& at = events_.at(event);
      if (!at.is_return) {
        const bool taken = round_of(at.op) == round && take(at.op);
        round = taken ? 0 : round;
        event = taken ? events_.first() : at.next;
        continue;
      }
      if (round < kLastRound) {
        ++round;
        event = events_.first();
        continue;
      }
      if (!turn_back(&event, &round)) {
        return Answer::kViolation;
      }
      if (failed_.bytes() + state_.bytes() > bounds_.max_bytes) {
        return Answer::kBound;
      }
    }
    return Answer::kLinearizable;
  }

  // What only looks is taken first, what is pending last.
  static constexpr int kLastRound = 2;
  int round_of(uint32_t op) const {
    return ops_[op].pending ? kLastRound : is_observer(ops_[op].step) ? 0 : 1;
  }

  bool take(uint32_t op) {
    if (is_needless(op) || !state_.apply(ops_[op])) {
      return false;
    }
    events_.lift(op);
    taken_hash_ ^= mix(uint64_t{op} + 1);
    order_.push_back({op, order_.empty() ? op : std::max(op, order_.back().last)});
    taken_[op] = true;
    open_ -= ops_[op].pending ? 0 : 1;
    if (!failed_.empty() && failed_.contains(hash(), [this](const int64_t* words, size_t size) {
          return is_configuration(words, size);
        })) {
      give_back();
      return false;
    }
    return true;
  }

  // Another linearization does without it here.
  bool is_needless(uint32_t op) const {
    if (alike_[op] != kNone && !taken_[alike_[op]]) {
      return true;
    }
    if (ops_[op].pending && !state_.changes(ops_[op])) {
      return true;
    }
    return ops_[op].step == Step::kWrite && !order_.empty() && ops_[order_.back().op].pending;
  }

  void give_back() {
    const uint32_t op = order_.back().op;
    order_.pop_back();
    open_ += ops_[op].pending ? 0 : 1;
    taken_[op] = false;
    taken_hash_ ^= mix(uint64_t{op} + 1);
    events_.put_back(op);
    state_.undo(ops_[op]);
  }

  // The configuration leads nowhere: to the last choice. False: there is none.
  bool turn_back(uint32_t* event, int* round) {
    while (!order_.empty()) {
      remember();
      const uint32_t op = order_.back().op;
      give_back();
      if (!is_observer(ops_[op].step)) {
        *event = events_.at(events_.call(op)).next;
        *round = round_of(op);
        return true;
      }
    }
    return false;
  }

  uint64_t hash() const { return mix(taken_hash_ ^ state_.hash()); }

  // The last operation taken, the number of those before it that were not, these, the state.
  void remember() {
    words_.clear();
    const uint32_t last = order_.back().last;
    words_.push_back(last);
    words_.push_back(0);
    for_missing(last, [this](uint32_t op) {
      words_.push_back(op);
      return true;
    });
    words_[1] = static_cast<int64_t>(words_.size()) - 2;
    state_.save(&words_);
    work_ += words_.size();
    failed_.add(hash(), words_);
  }

  bool is_configuration(const int64_t* words, size_t size) {
    const uint32_t last = order_.back().last;
    const auto missing = static_cast<size_t>(words[1]);
    if (words[0] != last || !state_.equals(words + 2 + missing, size - 2 - missing)) {
      return false;
    }
    size_t seen = 0;
    const bool same =
        for_missing(last, [&](uint32_t op) { return seen < missing && words[2 + seen++] == op; });
    return same && seen == missing;
  }

  // Operations are numbered by their calls, so those missing are the calls before `last`.
  template <typename Function>
  bool for_missing(uint32_t last, const Function& function) {
    for (uint32_t event = events_.first(); event != 0; event = events_.at(event).next) {
      const Events::Event& at = events_.at(event);
      if (at.is_return) {
        continue;
      }
      if (at.op > last) {
        break;
      }
      ++work_;
      if (!function(at.op)) {
        return false;
      }
    }
    return true;
  }

  const std::vector<Op>& ops_;
  SearchBounds bounds_;
  Events events_;
  State state_;
  FailedConfigurations failed_;
  std::vector<uint32_t> alike_;  // the pending operation before that is the same
  std::vector<bool> taken_;
  std::vector<Taken> order_;
  std::vector<int64_t> words_;
  uint64_t taken_hash_ = 0;
  uint64_t open_ = 0;  // returned operations that are not taken
  uint64_t work_ = 0;
};

}  // namespace

SearchResult search(const History& history, const Part& part, const SearchBounds& bounds) {
  if (part.kind == ObjectKind::kPriorityQueue) {
    return Search<PriorityQueue>(history, part, bounds).run();
  }
  if (is_container(part.kind)) {
    return Search<Line>(history, part, bounds).run();
  }
  return Search<Cell>(history, part, bounds).run();
}

}  // namespace tsomon::linearizability
