#include "offline/rule_search.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace tsomon {
namespace {

constexpr int kMaxExtensions = 32;

}  // namespace

bool RuleSearch::decide(uint32_t rule, bool first) {
  const EitherOrder& chosen = model_.either[rule];
  const bool second = model_.priority[chosen.b.from] < model_.priority[chosen.b.to];
  const Edge& edge = second == first ? chosen.b : chosen.a;
  return model_.order.insert(edge.from, edge.to);
}

Answer RuleSearch::search(uint64_t* steps, uint64_t max_steps) {
  decisions_.clear();
  uint32_t next = 0;
  bool fits = true;
  while (true) {
    if (fits) {
      while (next < model_.either.size() && satisfied(model_.either[next])) {
        ++next;
      }
      if (next == model_.either.size()) {
        return Answer::kYes;
      }
      if (++*steps > max_steps) {
        return Answer::kUnknown;
      }
      decisions_.push_back({next, model_.order.mark(), true});
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
    model_.order.undo(last.mark);
    last.first = false;
    next = last.rule;
    fits = decide(next, false);
  }
}

Answer RuleSearch::resolve(uint64_t* steps, uint64_t max_steps) {
  const size_t mark = model_.order.mark();
  const Answer answer = search(steps, max_steps);
  if (answer != Answer::kYes) {
    model_.order.undo(mark);
  }
  return answer;
}

std::vector<uint32_t> RuleSearch::extend_lazily(uint64_t* steps) {
  const size_t mark = model_.order.mark();
  for (int round = 0; round < kMaxExtensions; ++round) {
    std::vector<uint32_t> place = places();
    const auto holds = [&](const Edge& edge) { return place[edge.from] < place[edge.to]; };
    bool all = true;
    bool fits = true;
    for (uint32_t rule = 0; rule < model_.either.size() && fits; ++rule) {
      if (!holds(model_.either[rule].a) && !holds(model_.either[rule].b)) {
        all = false;
        ++*steps;
        fits = satisfied(model_.either[rule]) || decide(rule, true);
      }
    }
    if (all) {
      return place;
    }
    if (!fits || model_.order.exhausted()) {
      break;
    }
  }
  model_.order.undo(mark);
  return {};
}

std::vector<uint32_t> RuleSearch::places() const {
  const uint32_t n = model_.order.size();
  std::vector<uint32_t> missing(n, 0);
  using Entry = std::pair<uint32_t, uint32_t>;  // priority, element
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (uint32_t i = 0; i < n; ++i) {
    missing[i] = model_.order.count_before(i);
    if (missing[i] == 1) {  // itself
      ready.emplace(model_.priority[i], i);
    }
  }
  std::vector<uint32_t> place(n, 0);
  for (uint32_t next = 0; !ready.empty(); ++next) {
    const uint32_t i = ready.top().second;
    ready.pop();
    place[i] = next;
    model_.order.for_each_after(i, [&](uint32_t later) {
      if (later != i && --missing[later] == 1) {
        ready.emplace(model_.priority[later], later);
      }
    });
  }
  return place;
}

}  // namespace tsomon
