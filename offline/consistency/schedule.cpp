#include "offline/consistency/schedule.h"

#include <algorithm>

#include "tso/support/none.h"
#include "tso/support/work.h"

namespace tsomon {
Schedule::Schedule(const ValueProblem& problem, const MemoryOrder& order)
    : problem_(problem),
      order_(order),
      chains_(2 * problem.threads.size()),
      next_(chains_.size(), 0),
      run_(chains_.size(), 0),
      waiting_(chains_.size()),
      memory_(problem.locations.size()),
      overwriter_(problem.operations.size() + problem.locations.size(), kNone),
      seen_(problem.operations.size(), kNone),
      place_(problem.operations.size(), 0) {
  for (size_t thread = 0; thread < problem.threads.size(); ++thread) {
    for (const uint32_t i : problem.threads[thread]) {
      if (problem.operations[i].loads()) {
        chains_[2 * thread].push_back(i);
      }
      if (problem.operations[i].stores()) {
        chains_[2 * thread + 1].push_back(i);
      }
    }
  }
  for (uint32_t location = 0; location < memory_.size(); ++location) {
    memory_[location] = problem.initial_store(location);
  }
  steps_.reserve(problem.operations.size());
  find_ready();
}

// ---------------------------------------------------------------- what can run

bool Schedule::has_run(uint32_t operation) const {
  const Operation& that = problem_.operations[operation];
  return run_[2 * static_cast<size_t>(that.thread) + (that.loads() ? 0 : 1)] > that.position;
}

uint32_t Schedule::visible(uint32_t operation) const {
  const uint32_t own = problem_.own_store[operation];
  return own != kNone && !has_run(own) ? own : memory_[problem_.operations[operation].location];
}

std::optional<uint64_t> Schedule::value_of(uint32_t store) const {
  if (const auto value = problem_.value_of(store)) {
    return value;
  }
  const auto at = assumed_.find(store);
  return at == assumed_.end() ? order_.value_of(store) : std::optional(at->second.value);
}

bool Schedule::may_read(uint32_t operation) const {
  const Operation& that = problem_.operations[operation];
  if (that.location == kNone || !that.is_read() || !that.read) {
    return true;
  }
  const uint32_t seen = visible(operation);
  const uint32_t source = order_.source(operation);
  if (source != kNone && source != seen) {
    return false;
  }
  const auto value = value_of(seen);
  return !value || value == that.read;
}

bool Schedule::still_read(uint32_t store, uint32_t by_other_than) const {
  const auto& readers = order_.readers(store);
  return std::any_of(readers.begin(), readers.end(), [&](const MemoryOrder::Reader& reader) {
    return reader.load != by_other_than && !has_run(reader.load);
  });
}

bool Schedule::may_write(uint32_t operation) const {
  const Operation& that = problem_.operations[operation];
  return that.location == kNone || !that.is_write() ||
         !still_read(memory_[that.location], operation);
}

// The next operation of a chain is ready, or waits for the first chain that is not far enough.
void Schedule::wait_or_ready(size_t chain, size_t from) {
  if (next_[chain] == chains_[chain].size()) {
    return;
  }
  const uint32_t operation = chains_[chain][next_[chain]];
  const bool store = problem_.operations[operation].kind == Operation::Kind::kStore;
  if ((chain & 1) != 0 && !store) {
    return;  // the chain of loads has it, too
  }
  const uint32_t* clock = order_.clock(operation);
  spend(1 + run_.size() / 4);
  for (size_t other = from; other < run_.size(); ++other) {
    if (clock[other] > run_[other]) {
      waiting_[other].push_back(static_cast<uint32_t>(chain));
      return;
    }
  }
  (store ? stores_ : loads_).push_back({operation, static_cast<uint32_t>(steps_.size())});
}

uint32_t Schedule::ready_since(uint32_t operation) const {
  const uint32_t* clock = order_.clock(operation);
  uint32_t since = 0;
  spend(run_.size());
  for (size_t chain = 0; chain < run_.size(); ++chain) {
    if (clock[chain] != 0) {
      since = std::max(since, place_[problem_.threads[chain / 2][clock[chain] - 1]] + 1);
    }
  }
  return since;
}

// From nothing: the ready operations in the order in which they have become so.
void Schedule::find_ready() {
  loads_.clear();
  stores_.clear();
  for (auto& waiting : waiting_) {
    waiting.clear();
  }
  for (size_t chain = 0; chain < chains_.size(); ++chain) {
    wait_or_ready(chain, 0);
  }
  for (auto* list : {&loads_, &stores_}) {
    for (Ready& ready : *list) {
      ready.since = ready_since(ready.operation);
    }
    std::stable_sort(list->begin(), list->end(),
                     [](const Ready& a, const Ready& b) { return a.since < b.since; });
  }
}

// ---------------------------------------------------------------- forward

// The next operation of the chain has run.
void Schedule::advance(size_t chain) {
  run_[chain] = problem_.operations[chains_[chain][next_[chain]++]].position + 1;
  std::vector<uint32_t> waiting;
  waiting.swap(waiting_[chain]);
  for (const uint32_t other : waiting) {
    wait_or_ready(other, chain);
  }
}

void Schedule::perform(uint32_t operation) {
  const Operation& that = problem_.operations[operation];
  spend(1 + loads_.size() + stores_.size());
  for (auto* list : {&loads_, &stores_}) {
    const auto at = std::find_if(list->begin(), list->end(),
                                 [&](const Ready& ready) { return ready.operation == operation; });
    if (at != list->end()) {
      list->erase(at);
      break;
    }
  }
  const auto step = static_cast<uint32_t>(steps_.size());
  if (that.location != kNone) {
    if (that.is_read()) {
      seen_[operation] = visible(operation);
      if (that.read && !problem_.value_of(seen_[operation])) {
        assumed_.try_emplace(seen_[operation], Assumption{*that.read, step});
      }
    }
    if (that.is_write()) {
      seen_[operation] = memory_[that.location];
      overwriter_[memory_[that.location]] = operation;
      memory_[that.location] = operation;
    }
  }
  place_[operation] = step;
  steps_.push_back(operation);
  const size_t chain = 2 * static_cast<size_t>(that.thread);
  if (that.loads()) {
    advance(chain);
  }
  if (that.stores()) {
    advance(chain + 1);
  }
  if (that.loads()) {
    wait_or_ready(chain, 0);
  }
  if (that.stores()) {
    wait_or_ready(chain + 1, 0);
  }
}

bool Schedule::step_from(std::vector<Ready>* list) {
  for (const Ready& ready : *list) {
    if (may_run(ready.operation)) {
      perform(ready.operation);
      return true;
    }
  }
  return false;
}

bool Schedule::run() {
  while (step_from(&loads_) || step_from(&stores_)) {
  }
  return steps_.size() == problem_.operations.size();
}

Schedule::Stuck Schedule::stuck() const {
  Stuck result;
  for (const Ready& ready : loads_) {
    const Operation& operation = problem_.operations[ready.operation];
    if (operation.is_read() && operation.read && operation.location != kNone &&
        order_.source(ready.operation) == kNone) {
      result.load = ready.operation;
      return result;
    }
  }
  for (const auto* list : {&stores_, &loads_}) {
    for (const Ready& ready : *list) {
      if (!may_write(ready.operation)) {
        result.first = memory_[problem_.operations[ready.operation].location];
        result.second = ready.operation;
        return result;
      }
    }
  }
  return result;
}

// ---------------------------------------------------------------- back

void Schedule::take_back(size_t count) {
  while (steps_.size() > count) {
    const uint32_t operation = steps_.back();
    steps_.pop_back();
    const Operation& that = problem_.operations[operation];
    if (that.location != kNone) {
      if (that.is_write()) {
        memory_[that.location] = seen_[operation];
        overwriter_[seen_[operation]] = kNone;
      }
      const auto at = assumed_.find(seen_[operation]);
      if (at != assumed_.end() && at->second.step == steps_.size()) {
        assumed_.erase(at);
      }
    }
    for (const bool store : {false, true}) {
      if (store ? that.stores() : that.loads()) {
        const size_t chain = 2 * static_cast<size_t>(that.thread) + (store ? 1 : 0);
        const uint32_t next = --next_[chain];
        run_[chain] = next == 0 ? 0 : problem_.operations[chains_[chain][next - 1]].position + 1;
      }
    }
  }
  find_ready();
}

uint32_t Schedule::first_refused(const MemoryOrder::Mark& mark) const {
  auto first = static_cast<uint32_t>(steps_.size());
  const auto refuse = [&](uint32_t step) { first = std::min(first, step); };
  order_.for_each_edge_since(mark, [&](const Edge& edge) {
    if (has_run(edge.to) && (!has_run(edge.from) || place_[edge.from] > place_[edge.to])) {
      refuse(place_[edge.to]);
    }
  });
  order_.for_each_source_since(mark, [&](uint32_t load) {
    const uint32_t source = order_.source(load);
    if (!has_run(load) || seen_[load] != source) {
      if (has_run(load)) {
        refuse(place_[load]);
      }
      if (overwriter_[source] != kNone) {
        refuse(place_[overwriter_[source]]);
      }
    }
    if (const auto at = assumed_.find(source);
        at != assumed_.end() && order_.value_of(source) != at->second.value) {
      refuse(at->second.step);
    }
  });
  return first;
}

void Schedule::follow(const MemoryOrder::Mark& mark) { take_back(first_refused(mark)); }

// ---------------------------------------------------------------- other strategies

void Schedule::run_loads() {
  const auto can_run = [&](const Ready& ready) {
    return problem_.operations[ready.operation].kind != Operation::Kind::kLocked &&
           may_run(ready.operation);
  };
  for (auto at = std::find_if(loads_.begin(), loads_.end(), can_run); at != loads_.end();
       at = std::find_if(loads_.begin(), loads_.end(), can_run)) {
    perform(at->operation);
  }
}

std::vector<uint32_t> Schedule::choices() const {
  std::vector<uint32_t> result;
  for (const auto* list : {&stores_, &loads_}) {
    for (const Ready& ready : *list) {
      if (may_run(ready.operation)) {
        result.push_back(ready.operation);
      }
    }
  }
  return result;
}

void Schedule::append_state(std::vector<uint32_t>* state) const {
  spend(next_.size() + 8 * memory_.size());
  state->insert(state->end(), next_.begin(), next_.end());
  for (const uint32_t store : memory_) {
    // Which store wrote the value does not matter when no load is certain to read that one.
    const uint64_t value = problem_.value_of(store).value_or(0);
    const bool itself = still_read(store, kNone);
    state->push_back(itself ? store : kNone);
    state->push_back(itself ? 0 : static_cast<uint32_t>(value));
    state->push_back(itself ? 0 : static_cast<uint32_t>(value >> 32));
  }
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
