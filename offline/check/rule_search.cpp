#include "offline/check/rule_search.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr int kMaxExtensions = 32;

}  // namespace

bool RuleSearch::decide(uint32_t rule, bool first) {
  const EitherOrder& chosen = rules_[rule];
  const bool second = priority_[chosen.b.from] < priority_[chosen.b.to];
  const Edge& edge = second == first ? chosen.b : chosen.a;
  return order_.insert(edge.from, edge.to);
}

bool RuleSearch::decide_either(uint32_t rule) {
  const size_t mark = order_.mark();
  if (decide(rule, true)) {
    return true;
  }
  order_.undo(mark);
  return decide(rule, false);
}

Answer RuleSearch::search(uint64_t* steps, uint64_t max_steps) {
  decisions_.clear();
  uint32_t next = 0;
  bool fits = true;
  while (true) {
    if (fits) {
      while (next < rules_.size() && satisfied(rules_[next])) {
        spend(1);
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

std::vector<uint32_t> RuleSearch::extend_lazily(uint64_t* steps) {
  const size_t mark = order_.mark();
  for (int round = 0; round < kMaxExtensions; ++round) {
    std::vector<uint32_t> place = places();
    spend(rules_.size());
    const auto holds = [&](const Edge& edge) { return place[edge.from] < place[edge.to]; };
    bool all = true;
    bool fits = true;
    for (uint32_t rule = 0; rule < rules_.size() && fits; ++rule) {
      if (!holds(rules_[rule].a) && !holds(rules_[rule].b)) {
        all = false;
        ++*steps;
        fits = satisfied(rules_[rule]) || decide_either(rule);
      }
    }
    if (all) {
      return place;
    }
    if (!fits || order_.exhausted()) {
      break;
    }
  }
  order_.undo(mark);
  return {};
}

std::vector<uint32_t> RuleSearch::places() const {
  const uint32_t n = order_.size();
  spend(uint64_t{n} * (1 + n / 32));
  std::vector<uint32_t> missing(n, 0);
  using Entry = std::pair<uint32_t, uint32_t>;  // priority, element
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (uint32_t i = 0; i < n; ++i) {
    missing[i] = order_.count_before(i);
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
