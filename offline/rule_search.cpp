#include "offline/rule_search.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace tsomon {

RuleSearch::RuleSearch(std::vector<ReadsFrom> rules, std::vector<uint32_t> priority,
                       GrowingOrder* order)
    : rules_(std::move(rules)), priority_(std::move(priority)), order_(*order) {
  for (const ReadsFrom& rule : rules_) {
    order_.imply({rule.write, rule.other}, {rule.read, rule.other});
    order_.imply({rule.other, rule.read}, {rule.other, rule.write});
  }
}

bool RuleSearch::decide(uint32_t rule, bool first) {
  const ReadsFrom& chosen = rules_[rule];
  const bool after = priority_[chosen.other] > priority_[chosen.read];
  return after == first ? order_.insert(chosen.read, chosen.other)
                        : order_.insert(chosen.other, chosen.write);
}

Answer RuleSearch::search(uint64_t* steps, uint64_t max_steps) {
  decisions_.clear();
  uint32_t next = 0;
  bool fits = true;
  while (true) {
    if (fits) {
      while (next < rules_.size() && satisfied(rules_[next])) {
        ++next;
      }
      if (next == rules_.size()) {
        return Answer::kYes;
      }
      if (++*steps > max_steps) {
        return Answer::kUnknown;
      }
      decisions_.push_back({next, order_.mark(), true});
      fits = decide(next, true);
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
    next = last.rule;
    fits = decide(next, false);
  }
}

Answer RuleSearch::resolve(uint64_t* steps, uint64_t max_steps) {
  const size_t mark = order_.mark();
  const Answer answer = search(steps, max_steps);
  if (answer != Answer::kYes) {
    order_.undo(mark);
  }
  return answer;
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
