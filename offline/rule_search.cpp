#include "offline/rule_search.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace tsomon {
namespace {

constexpr uint32_t kNone = 0xFFFFFFFFU;
constexpr uint64_t kFirstLimit = 100;  // decisions before the first restart

}  // namespace

RuleSearch::RuleSearch(std::vector<ReadsFrom> rules, std::vector<uint32_t> priority,
                       GrowingOrder* order)
    : rules_(std::move(rules)),
      priority_(std::move(priority)),
      order_(*order),
      failures_(rules_.size(), 0) {
  for (const ReadsFrom& rule : rules_) {
    order_.imply({rule.write, rule.other}, {rule.read, rule.other});
    order_.imply({rule.other, rule.read}, {rule.other, rule.write});
  }
}

uint32_t RuleSearch::choose() const {
  uint32_t best = kNone;
  for (uint32_t i = 0; i < rules_.size(); ++i) {
    if ((best == kNone || failures_[i] > failures_[best]) && !satisfied(rules_[i])) {
      best = i;
    }
  }
  return best;
}

bool RuleSearch::decide(uint32_t rule, bool first) {
  const ReadsFrom& chosen = rules_[rule];
  const bool after = priority_[chosen.other] > priority_[chosen.read];
  const bool fits = after == first ? order_.insert(chosen.read, chosen.other)
                                   : order_.insert(chosen.other, chosen.write);
  failures_[rule] += fits ? 0 : 1;
  return fits;
}

Answer RuleSearch::search(uint64_t* steps, uint64_t limit) {
  decisions_.clear();
  bool fits = true;
  while (true) {
    if (fits) {
      const uint32_t rule = choose();
      if (rule == kNone) {
        return Answer::kYes;
      }
      if (++*steps > limit) {
        return Answer::kUnknown;
      }
      decisions_.push_back({rule, order_.mark(), true});
      fits = decide(rule, true);
      continue;
    }
    while (!decisions_.empty() && !decisions_.back().first) {
      decisions_.pop_back();
    }
    if (decisions_.empty()) {
      return Answer::kNo;
    }
    Decision& last = decisions_.back();
    order_.undo(last.mark);
    last.first = false;
    fits = decide(last.rule, false);
  }
}

Answer RuleSearch::resolve(uint64_t* steps, uint64_t max_steps) {
  const size_t mark = order_.mark();
  for (uint64_t share = kFirstLimit;; share *= 2) {
    const uint64_t limit = std::min(max_steps, *steps + share);
    const Answer answer = search(steps, limit);
    if (answer == Answer::kYes) {
      return answer;
    }
    order_.undo(mark);
    if (answer == Answer::kNo || *steps >= max_steps) {
      return answer;
    }
  }
}

std::vector<uint32_t> RuleSearch::places() const {
  const uint32_t n = order_.size();
  std::vector<uint32_t> missing(n, 0);
  using Entry = std::pair<uint32_t, uint32_t>;  // priority, element
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (uint32_t i = 0; i < n; ++i) {
    order_.for_each_before(i, [&](uint32_t) { ++missing[i]; });
    if (missing[i] == 1) {  // itself
      ready.emplace(priority_[i], i);
    }
  }
  std::vector<uint32_t> place(n, 0);
  for (uint32_t next = 0; !ready.empty(); ++next) {
    const uint32_t i = ready.top().second;
    ready.pop();
    place[i] = next;
    order_.for_each_after(i, [&](uint32_t later) {
      if (later != i && --missing[later] == 1) {
        ready.emplace(priority_[later], later);
      }
    });
  }
  return place;
}

}  // namespace tsomon
