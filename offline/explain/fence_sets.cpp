#include "offline/explain/fence_sets.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "tso/support/result.h"
#include "tso/support/work.h"

namespace tsomon::explain {
namespace {

using Set = std::vector<uint32_t>;

std::vector<bool> bits(const Set& set, size_t size) {
  std::vector<bool> chosen(size, false);
  for (const uint32_t place : set) {
    chosen[place] = true;
  }
  return chosen;
}

// The cheapest set that has a place of every clause and does not hold any of `known`.
class Cheapest {
 public:
  Cheapest(const std::vector<uint64_t>& costs, const std::vector<Set>& clauses,
           const std::vector<Set>& known)
      : costs_(costs), clauses_(clauses), known_(known), state_(costs.size(), State::kOpen) {}

  std::optional<Set> find() {
    search(0);
    return best_;
  }

 private:
  enum class State : uint8_t { kOpen, kIn, kOut };

  bool holds_known() const {
    return std::any_of(known_.begin(), known_.end(), [&](const Set& set) {
      return std::all_of(set.begin(), set.end(),
                         [&](uint32_t place) { return state_[place] == State::kIn; });
    });
  }

  void search(uint64_t cost) {
    spend(clauses_.size() + known_.size() + 1);
    if (cost >= best_cost_ || holds_known()) {
      return;
    }
    const auto open = std::find_if(clauses_.begin(), clauses_.end(), [&](const Set& clause) {
      return std::none_of(clause.begin(), clause.end(),
                          [&](uint32_t place) { return state_[place] == State::kIn; });
    });
    if (open == clauses_.end()) {
      best_cost_ = cost;
      best_.emplace();
      for (uint32_t place = 0; place < state_.size(); ++place) {
        if (state_[place] == State::kIn) {
          best_->push_back(place);
        }
      }
      return;
    }
    Set taken;
    for (const uint32_t place : *open) {
      if (state_[place] != State::kOpen) {
        continue;
      }
      taken.push_back(place);
      state_[place] = State::kIn;
      search(cost + costs_[place]);
      state_[place] = State::kOut;  // without it from now on
    }
    for (const uint32_t place : taken) {
      state_[place] = State::kOpen;
    }
  }

  const std::vector<uint64_t>& costs_;
  const std::vector<Set>& clauses_;
  const std::vector<Set>& known_;
  std::vector<State> state_;
  std::optional<Set> best_;
  uint64_t best_cost_ = std::numeric_limits<uint64_t>::max();
};

class Finder {
 public:
  Finder(const std::vector<uint64_t>& costs, const std::vector<FenceQuestion>& violations,
         const FenceBounds& bounds)
      : costs_(costs), violations_(violations), bounds_(bounds) {}

  FenceSets find() {
    const std::vector<bool> everywhere(costs_.size(), true);
    for (size_t i = 0; i < violations_.size(); ++i) {
      if (!helps(i, everywhere)) {
        return std::move(result_);
      }
    }
    while (!violations_.empty() && result_.sets.size() < bounds_.max_sets) {
      const auto next = Cheapest(costs_, clauses_, result_.sets).find();
      if (!next) {
        return std::move(result_);
      }
      const std::vector<bool> chosen = bits(*next, costs_.size());
      size_t at = 0;
      while (at < violations_.size() && helps(at, chosen)) {
        ++at;
      }
      if (stuck_) {
        return std::move(result_);
      }
      if (at == violations_.size()) {
        result_.sets.push_back(*next);
      } else {
        learn(at, chosen);
      }
    }
    result_.complete = result_.complete && violations_.empty();
    return std::move(result_);
  }

 private:
  // What is not known is taken not to help.
  bool helps(size_t violation, const std::vector<bool>& chosen) {
    if (++result_.questions > bounds_.max_questions) {
      stuck_ = true;
    }
    const Answer answer = stuck_ ? Answer::kUnknown : violations_[violation](chosen);
    result_.complete = result_.complete && answer != Answer::kUnknown;
    return answer == Answer::kYes;
  }

  void learn(size_t violation, std::vector<bool> chosen) {
    Set clause;
    for (uint32_t place = 0; place < costs_.size(); ++place) {
      if (chosen[place]) {
        continue;
      }
      chosen[place] = true;
      if (helps(violation, chosen)) {
        chosen[place] = false;
        clause.push_back(place);
      }
    }
    std::stable_sort(clause.begin(), clause.end(),
                     [&](uint32_t a, uint32_t b) { return costs_[a] < costs_[b]; });
    clauses_.push_back(std::move(clause));
  }

  const std::vector<uint64_t>& costs_;
  const std::vector<FenceQuestion>& violations_;
  FenceBounds bounds_;
  std::vector<Set> clauses_;
  FenceSets result_;
  bool stuck_ = false;
};

}  // namespace

FenceSets try_fence_sets(const std::vector<uint64_t>& costs,
                         const std::vector<FenceQuestion>& violations, const FenceBounds& bounds) {
  TSOMON_CHECK(costs.size() <= kMostTried, "too many places to try all sets of them");
  struct Tried {
    uint64_t cost = 0;
    uint32_t bits = 0;
  };
  std::vector<Tried> all(size_t{1} << costs.size());
  for (uint32_t set = 1; set < all.size(); ++set) {
    all[set].bits = set;
    for (uint32_t place = 0; place < costs.size(); ++place) {
      all[set].cost += (set >> place & 1U) != 0 ? costs[place] : 0;
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Tried& a, const Tried& b) { return a.cost < b.cost; });
  FenceSets result;
  std::vector<uint32_t> helping;
  for (const auto& [cost, set] : all) {
    if (set == 0 || std::any_of(helping.begin(), helping.end(),
                                [&, bits = set](uint32_t part) { return (part & bits) == part; })) {
      continue;
    }
    if (helping.size() == bounds.max_sets || result.questions >= bounds.max_questions) {
      result.complete = helping.size() == bounds.max_sets && result.complete;
      break;
    }
    Set places;
    for (uint32_t place = 0; place < costs.size(); ++place) {
      if ((set >> place & 1U) != 0) {
        places.push_back(place);
      }
    }
    const std::vector<bool> chosen = bits(places, costs.size());
    const bool helps = std::all_of(violations.begin(), violations.end(), [&](const auto& ask) {
      ++result.questions;
      const Answer answer = ask(chosen);
      result.complete = result.complete && answer != Answer::kUnknown;
      return answer == Answer::kYes;
    });
    if (helps) {
      helping.push_back(set);
      result.sets.push_back(std::move(places));
    }
  }
  return result;
}

FenceSets find_fence_sets(const std::vector<uint64_t>& costs,
                          const std::vector<FenceQuestion>& violations, const FenceBounds& bounds) {
  return Finder(costs, violations, bounds).find();
}

}  // namespace tsomon::explain
