#include "offline/schedule.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace tsomon {
namespace {

constexpr uint32_t kNone = Operation::kNone;

class Runner {
 public:
  Runner(const ValueProblem& problem, const MemoryOrder& order)
      : problem_(problem),
        order_(order),
        missing_(problem.operations.size(), 0),
        unread_(problem.operations.size() + problem.locations.size(), 0),
        done_(problem.operations.size(), false),
        memory_(problem.locations.size()) {
    for (uint32_t location = 0; location < memory_.size(); ++location) {
      memory_[location] = problem.initial_store(location);
    }
    for (uint32_t i = 0; i < problem.operations.size(); ++i) {
      order.for_each_successor(i, [&](uint32_t next) { ++missing_[next]; });
      if (order.source(i) != kNone) {
        ++unread_[order.source(i)];
      }
    }
  }

  Schedule run() {
    for (uint32_t i = 0; i < problem_.operations.size(); ++i) {
      if (missing_[i] == 0) {
        make_ready(i);
      }
    }
    while (step()) {
    }
    result_.complete = result_.order.size() == problem_.operations.size();
    if (!result_.complete) {
      name_decision();
    }
    return std::move(result_);
  }

 private:
  void make_ready(uint32_t i) {
    (problem_.operations[i].kind == Operation::Kind::kStore ? stores_ : loads_).push_back(i);
  }

  // What the operation would read now.
  uint32_t visible(uint32_t i) const {
    const uint32_t own = problem_.own_store[i];
    return own != kNone && !done_[own] ? own : memory_[problem_.operations[i].location];
  }

  std::optional<uint64_t> value_of(uint32_t store) const {
    const auto value = order_.value_of(store);
    if (value) {
      return value;
    }
    const auto at = assumed_.find(store);
    return at == assumed_.end() ? std::nullopt : std::optional(at->second);
  }

  bool may_read(uint32_t i) const {
    const Operation& operation = problem_.operations[i];
    if (operation.location == kNone || !operation.is_read() || !operation.read) {
      return true;
    }
    const uint32_t seen = visible(i);
    if (order_.source(i) != kNone) {
      return order_.source(i) == seen;
    }
    const auto value = value_of(seen);
    return !value || value == operation.read;
  }

  bool may_write(uint32_t i) const {
    const Operation& operation = problem_.operations[i];
    if (operation.location == kNone || !operation.is_write()) {
      return true;
    }
    const uint32_t overwritten = memory_[operation.location];
    return unread_[overwritten] == (order_.source(i) == overwritten ? 1U : 0U);
  }

  void perform(uint32_t i) {
    const Operation& operation = problem_.operations[i];
    if (operation.location != kNone) {
      if (operation.is_read() && operation.read) {
        if (order_.source(i) != kNone) {
          --unread_[order_.source(i)];
        } else if (!value_of(visible(i))) {
          assumed_[visible(i)] = *operation.read;
        }
      }
      if (operation.is_write()) {
        memory_[operation.location] = i;
      }
    }
    done_[i] = true;
    result_.order.push_back(i);
    order_.for_each_successor(i, [&](uint32_t next) {
      if (--missing_[next] == 0) {
        make_ready(next);
      }
    });
  }

  // Each list has at most one operation of a thread.
  bool step() {
    for (auto* list : {&loads_, &stores_}) {
      for (size_t at = 0; at < list->size(); ++at) {
        const uint32_t i = (*list)[at];
        if (may_read(i) && may_write(i)) {
          list->erase(list->begin() + static_cast<ptrdiff_t>(at));
          perform(i);
          return true;
        }
      }
    }
    return false;
  }

  void name_decision() {
    for (const uint32_t i : loads_) {
      const Operation& operation = problem_.operations[i];
      if (operation.is_read() && operation.read && operation.location != kNone &&
          order_.source(i) == kNone) {
        result_.load = i;
        return;
      }
    }
    for (const auto* list : {&stores_, &loads_}) {
      for (const uint32_t i : *list) {
        if (!may_write(i)) {
          result_.first = memory_[problem_.operations[i].location];
          result_.second = i;
          return;
        }
      }
    }
  }

  const ValueProblem& problem_;
  const MemoryOrder& order_;
  std::vector<uint32_t> missing_;  // predecessors that have not run
  std::vector<uint32_t> unread_;   // loads that have to read the store and have not run
  std::vector<bool> done_;
  std::vector<uint32_t> memory_;  // store, by location
  std::unordered_map<uint32_t, uint64_t> assumed_;
  std::vector<uint32_t> loads_;  // ready: loads, locked operations and fences
  std::vector<uint32_t> stores_;
  Schedule result_;
};

}  // namespace

Schedule run_schedule(const ValueProblem& problem, const MemoryOrder& order) {
  return Runner(problem, order).run();
}

bool is_execution(const ValueProblem& problem, MemoryModel model,
                  const std::vector<uint32_t>& order) {
  const size_t n = problem.operations.size();
  std::vector<size_t> place(n, n);
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] >= n || place[order[i]] != n) {
      return false;
    }
    place[order[i]] = i;
  }
  if (order.size() != n) {
    return false;
  }
  for (const Edge& edge : problem.order) {
    if (place[edge.from] > place[edge.to]) {
      return false;
    }
  }
  // Of each thread: loads, and what orders like one, wait for all loads before them; stores for
  // everything before them; under SC loads wait for the stores, too.
  for (const auto& members : problem.threads) {
    size_t loads = 0;
    size_t stores = 0;
    for (const uint32_t i : members) {
      const Operation& operation = problem.operations[i];
      const size_t here = place[i] + 1;
      if (here <= loads || ((operation.stores() || model == MemoryModel::kSc) && here <= stores)) {
        return false;
      }
      loads = operation.loads() ? here : loads;
      stores = operation.stores() ? here : stores;
    }
  }
  std::vector<uint32_t> memory(problem.locations.size());
  for (uint32_t location = 0; location < memory.size(); ++location) {
    memory[location] = problem.initial_store(location);
  }
  std::unordered_map<uint32_t, uint64_t> values;  // of stores without one, as they are read
  for (const uint32_t i : order) {
    const Operation& operation = problem.operations[i];
    if (operation.location == kNone) {
      continue;
    }
    if (operation.is_read() && operation.read) {
      const uint32_t own = problem.own_store[i];
      const uint32_t seen =
          own != kNone && place[own] > place[i] ? own : memory[operation.location];
      const auto known = problem.value_of(seen);
      const uint64_t value =
          known ? *known : values.try_emplace(seen, *operation.read).first->second;
      if (value != *operation.read) {
        return false;
      }
    }
    if (operation.is_write()) {
      memory[operation.location] = i;
    }
  }
  return true;
}

}  // namespace tsomon
