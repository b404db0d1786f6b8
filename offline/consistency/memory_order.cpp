#include "offline/consistency/memory_order.h"

#include <algorithm>

#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr size_t kFewEdges = 64;  // are inserted one by one instead of propagating from the start

}  // namespace

MemoryOrder::MemoryOrder(const ValueProblem& problem, MemoryModel model)
    : problem_(problem),
      model_(model),
      width_(2 * problem.threads.size()),
      clocks_(problem.operations.size() * width_, 0),
      next_load_(problem.operations.size(), kNone),
      next_store_(problem.operations.size(), kNone),
      successors_(problem.operations.size()),
      source_(problem.operations.size(), kNone),
      readers_(problem.operations.size() + problem.locations.size()),
      assumed_(problem.operations.size() + problem.locations.size()),
      provided_(problem.locations.size()),
      unknown_values_(problem.locations.size(), false) {
  link_threads();
  index_values();
  for (uint32_t i = 0; i < problem.operations.size(); ++i) {
    if (problem.operations[i].is_read() && problem.operations[i].read &&
        problem.operations[i].location != kNone) {
      undetermined_.push_back(i);
    }
  }
}

size_t MemoryOrder::bytes(const ValueProblem& problem) {
  return problem.operations.size() * (2 * problem.threads.size() * sizeof(uint32_t) + 128);
}

void MemoryOrder::link_threads() {
  for (const auto& members : problem_.threads) {
    uint32_t load = kNone;
    uint32_t store = kNone;
    for (auto at = members.rbegin(); at != members.rend(); ++at) {
      const Operation& operation = problem_.operations[*at];
      if (model_ == MemoryModel::kSc || operation.loads()) {
        next_load_[*at] = load;
      }
      next_store_[*at] = store;
      load = operation.loads() ? *at : load;
      store = operation.stores() ? *at : store;
    }
  }
}

void MemoryOrder::index_values() {
  for (uint32_t location = 0; location < problem_.locations.size(); ++location) {
    auto& values = provided_[location];
    const auto add = [&](uint32_t store) {
      if (const auto value = problem_.value_of(store)) {
        values.push_back({*value, {store, false}});
      } else {
        unknown_values_[location] = true;
      }
    };
    add(problem_.initial_store(location));
    for (const auto& list : problem_.locations[location].writers) {
      std::for_each(list.stores.begin(), list.stores.end(), add);
    }
    std::stable_sort(values.begin(), values.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    size_t kept = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      if (kept > 0 && values[kept - 1].first == values[i].first) {
        values[kept - 1].second.several = true;
      } else {
        values[kept++] = values[i];
      }
    }
    values.resize(kept);
  }
}

bool MemoryOrder::reaches(uint32_t from, uint32_t to) const {
  const Operation& operation = problem_.operations[from];
  return clocks_[entry(to, operation.thread, operation.stores())] > operation.position;
}

std::optional<uint64_t> MemoryOrder::value_of(uint32_t store) const {
  const auto value = problem_.value_of(store);
  return value ? value : assumed_[store];
}

// ---------------------------------------------------------------- closing

void MemoryOrder::add_edge(uint32_t from, uint32_t to) {
  successors_[from].push_back(to);
  if (remember_) {
    edge_trail_.push_back({from, to});
  }
}

void MemoryOrder::raise(size_t entry, uint32_t value) {
  if (remember_) {
    clock_trail_.push_back({entry, clocks_[entry]});
  }
  clocks_[entry] = value;
}

// What comes before `from`, and `from` itself, comes before `to`.
bool MemoryOrder::merge(uint32_t from, uint32_t to) {
  bool changed = false;
  spend(1 + width_);
  const size_t source = static_cast<size_t>(from) * width_;
  const size_t target = static_cast<size_t>(to) * width_;
  const Operation& operation = problem_.operations[from];
  const size_t own = 2 * static_cast<size_t>(operation.thread);
  for (size_t i = 0; i < width_; ++i) {
    uint32_t value = clocks_[source + i];
    if ((i == own && operation.loads()) || (i == own + 1 && operation.stores())) {
      value = std::max(value, operation.position + 1);
    }
    const uint32_t old = clocks_[target + i];
    if (value > old) {
      raise(target + i, value);
      changed = true;
      if ((i & 1) != 0) {
        infer_from(to, static_cast<uint32_t>(i / 2), old);
      }
    }
  }
  return changed;
}

const ValueProblem::ThreadStores* MemoryOrder::writers(uint32_t location, uint32_t thread) const {
  const auto& lists = problem_.locations[location].writers;
  const auto at = std::lower_bound(
      lists.begin(), lists.end(), thread,
      [](const ValueProblem::ThreadStores& list, uint32_t t) { return list.thread < t; });
  return at != lists.end() && at->thread == thread ? &*at : nullptr;
}

uint32_t MemoryOrder::newest_before(const ValueProblem::ThreadStores& list,
                                    uint32_t operation) const {
  const uint32_t bound = clocks_[entry(operation, list.thread, true)];
  const auto at = std::partition_point(list.stores.begin(), list.stores.end(), [&](uint32_t store) {
    return problem_.operations[store].position < bound;
  });
  return at == list.stores.begin() ? kNone : *(at - 1);
}

uint32_t MemoryOrder::oldest_after(const ValueProblem::ThreadStores& list,
                                   uint32_t operation) const {
  const auto at = std::partition_point(list.stores.begin(), list.stores.end(), [&](uint32_t store) {
    return store == operation || !reaches(operation, store);
  });
  return at == list.stores.end() ? kNone : *at;
}

// More stores of `thread` come before the operation than its clock said (`old`).
void MemoryOrder::infer_from(uint32_t operation, uint32_t thread, uint32_t old) {
  const uint32_t location = problem_.operations[operation].location;
  if (location == kNone) {
    return;
  }
  const auto* list = writers(location, thread);
  if (list == nullptr) {
    return;
  }
  const uint32_t newest = newest_before(*list, operation);
  if (newest == kNone || newest == operation || problem_.operations[newest].position < old) {
    return;  // none, or already known
  }
  if (const uint32_t source = source_[operation]; source != kNone && source != newest) {
    pending_.push_back(problem_.is_initial(source) ? Edge{operation, newest}
                                                   : Edge{newest, source});
  }
  if (problem_.operations[operation].is_write()) {
    for (const Reader& reader : readers_[newest]) {
      if (reader.load != operation) {
        pending_.push_back({reader.load, operation});
      }
    }
  }
}

// All that the source of one load implies at present.
void MemoryOrder::infer_source(uint32_t load) {
  const uint32_t source = source_[load];
  const Operation& operation = problem_.operations[load];
  const bool initial = problem_.is_initial(source);
  const auto order = [&](uint32_t from, uint32_t to) {
    if (from != to && !reaches(from, to)) {
      pending_.push_back({from, to});
    }
  };
  const uint32_t own = problem_.own_store[load];
  if (!initial) {
    if (problem_.operations[source].thread != operation.thread) {
      order(source, load);
      if (own != kNone) {
        order(own, source);
      }
    }
  }
  spend(8 * problem_.locations[operation.location].writers.size());
  for (const auto& list : problem_.locations[operation.location].writers) {
    uint32_t after = kNone;
    if (initial) {
      after = list.stores.front() != load ? list.stores.front()
              : list.stores.size() > 1    ? list.stores[1]
                                          : kNone;
    } else {
      if (const uint32_t before = newest_before(list, load);
          before != kNone && before != load && before != source) {
        order(before, source);
      }
      after = oldest_after(list, source);
      if (after == load) {  // the load is locked: what its store precedes follows from that
        after = kNone;
      }
    }
    if (after != kNone) {
      order(load, after);
    }
  }
}

bool MemoryOrder::drain() {
  while (!pending_.empty()) {
    const Edge edge = pending_.back();
    pending_.pop_back();
    if (edge.from == edge.to || reaches(edge.to, edge.from)) {
      failed_ = edge;
      pending_.clear();
      return false;
    }
    if (reaches(edge.from, edge.to)) {
      continue;
    }
    add_edge(edge.from, edge.to);
    merge(edge.from, edge.to);
    work_.push_back(edge.to);
    while (!work_.empty()) {
      const uint32_t operation = work_.back();
      work_.pop_back();
      for_each_successor(operation, [&](uint32_t next) {
        if (merge(operation, next)) {
          work_.push_back(next);
        }
      });
    }
  }
  return true;
}

bool MemoryOrder::insert(uint32_t from, uint32_t to) {
  pending_.push_back({from, to});
  return drain();
}

// As merge(), of what nothing depends on yet: no inference, no trail.
void MemoryOrder::take_over(uint32_t from, uint32_t to) {
  const Operation& operation = problem_.operations[from];
  spend(1 + width_ / 8);
  const uint32_t* source = &clocks_[from * width_];
  uint32_t* target = &clocks_[to * width_];
  for (size_t i = 0; i < width_; ++i) {
    target[i] = std::max(target[i], source[i]);
  }
  uint32_t* own = target + 2 * static_cast<size_t>(operation.thread);
  own[0] = std::max(own[0], operation.loads() ? operation.position + 1 : 0);
  own[1] = std::max(own[1], operation.stores() ? operation.position + 1 : 0);
}

// All clocks from nothing, in topological order; false when the edges have a cycle.
bool MemoryOrder::propagate_all() {
  const auto n = static_cast<uint32_t>(problem_.operations.size());
  std::vector<uint32_t> missing(n, 0);
  for (uint32_t i = 0; i < n; ++i) {
    for_each_successor(i, [&](uint32_t next) { ++missing[next]; });
  }
  std::vector<uint32_t> order;
  order.reserve(n);
  for (uint32_t i = 0; i < n; ++i) {
    if (missing[i] == 0) {
      order.push_back(i);
    }
  }
  for (size_t at = 0; at < order.size(); ++at) {
    const uint32_t operation = order[at];
    for_each_successor(operation, [&](uint32_t next) {
      take_over(operation, next);
      if (--missing[next] == 0) {
        order.push_back(next);
      }
    });
  }
  if (order.size() == n) {
    return true;
  }
  // Every operation that is left has a predecessor that is left: going back closes a cycle.
  std::vector<uint32_t> before(n, kNone);
  uint32_t at = kNone;
  for (uint32_t i = 0; i < n; ++i) {
    if (missing[i] != 0) {
      at = i;
      for_each_successor(i, [&](uint32_t next) { before[next] = i; });
    }
  }
  std::vector<uint32_t> steps;
  std::vector<bool> seen(n, false);
  for (; !seen[at]; at = before[at]) {
    seen[at] = true;
    steps.push_back(at);
  }
  cycle_.assign(std::find(steps.begin(), steps.end(), at), steps.end());
  std::reverse(cycle_.begin(), cycle_.end());
  return false;
}

bool MemoryOrder::settle() {
  for (const Edge& edge : problem_.order) {
    add_edge(edge.from, edge.to);
  }
  // Loads whose value one store alone has.
  std::vector<uint32_t> rest;
  for (const uint32_t load : undetermined_) {
    const Operation& operation = problem_.operations[load];
    const auto& values = provided_[operation.location];
    const auto at = std::lower_bound(
        values.begin(), values.end(), *operation.read,
        [](const auto& provided, uint64_t value) { return provided.first < value; });
    const bool known = at != values.end() && at->first == *operation.read;
    if (unknown_values_[operation.location] || (known && at->second.several)) {
      rest.push_back(load);
    } else if (!known || !remember_source(load, at->second.first)) {
      cycle_ = {load};
      return false;
    }
  }
  undetermined_ = std::move(rest);
  while (true) {
    if (!propagate_all()) {
      return false;
    }
    pending_.clear();
    for (uint32_t i = 0; i < problem_.operations.size(); ++i) {
      if (source_[i] != kNone) {
        infer_source(i);
      }
    }
    if (pending_.size() <= kFewEdges) {
      return drain() && determine();
    }
    for (const Edge& edge : pending_) {
      add_edge(edge.from, edge.to);
    }
  }
}

// ---------------------------------------------------------------- sources

void MemoryOrder::add_reader(uint32_t store, uint32_t load) {
  auto& readers = readers_[store];
  const uint32_t thread = problem_.operations[load].thread;
  const auto at = std::find_if(readers.begin(), readers.end(),
                               [&](const Reader& reader) { return reader.thread == thread; });
  const auto index = static_cast<uint32_t>(at - readers.begin());
  if (at == readers.end()) {
    readers.push_back({thread, load});
    if (remember_) {
      reader_trail_.push_back({store, index, kNone});
    }
  } else if (problem_.operations[at->load].position < problem_.operations[load].position) {
    if (remember_) {
      reader_trail_.push_back({store, index, at->load});
    }
    at->load = load;
  }
}

// Notes the source without what follows; false when the thread itself rules it out.
bool MemoryOrder::remember_source(uint32_t load, uint32_t store) {
  const Operation& operation = problem_.operations[load];
  const uint32_t own = problem_.own_store[load];
  const bool initial = problem_.is_initial(store);
  const bool is_own = !initial && problem_.operations[store].thread == operation.thread;
  if ((initial && own != kNone) || (is_own && store != own)) {
    return false;
  }
  if (!value_of(store)) {
    assumed_[store] = operation.read;
    if (remember_) {
      assumed_trail_.push_back(store);
    }
  } else if (value_of(store) != operation.read) {
    return false;
  }
  source_[load] = store;
  if (remember_) {
    source_trail_.push_back(load);
  }
  add_reader(store, load);
  return true;
}

bool MemoryOrder::set_source(uint32_t load, uint32_t store) {
  if (!remember_source(load, store)) {
    failed_ = {load, load};
    return false;
  }
  infer_source(load);
  return drain();
}

bool MemoryOrder::possible(uint32_t load, uint32_t store) const {
  const Operation& operation = problem_.operations[load];
  if (store == load) {
    return false;
  }
  if (const auto value = value_of(store); value && value != operation.read) {
    return false;
  }
  const uint32_t own = problem_.own_store[load];
  const auto& lists = problem_.locations[operation.location].writers;
  if (problem_.is_initial(store)) {
    return own == kNone && std::none_of(lists.begin(), lists.end(), [&](const auto& list) {
             const uint32_t before = newest_before(list, load);
             return before != kNone && before != load;
           });
  }
  if (problem_.operations[store].thread == operation.thread) {
    if (store != own) {
      return false;
    }
  } else if (reaches(load, store) || (own != kNone && reaches(store, own))) {
    return false;
  }
  return std::none_of(lists.begin(), lists.end(), [&](const auto& list) {
    const uint32_t before = newest_before(list, load);
    return before != kNone && before != load && before != store && reaches(store, before);
  });
}

std::vector<uint32_t> MemoryOrder::candidates(uint32_t load, size_t limit) const {
  std::vector<uint32_t> found;
  const Operation& operation = problem_.operations[load];
  const auto consider = [&](uint32_t store) {
    if (found.size() < limit && possible(load, store)) {
      found.push_back(store);
    }
  };
  consider(problem_.initial_store(operation.location));
  for (const auto& list : problem_.locations[operation.location].writers) {
    if (found.size() >= limit) {
      break;
    }
    // Older ones are overwritten, later ones come after the load.
    const uint32_t first = newest_before(list, load);
    auto at = first == kNone ? list.stores.begin()
                             : std::lower_bound(list.stores.begin(), list.stores.end(), first);
    const bool own = list.thread == operation.thread;
    for (; at != list.stores.end() && found.size() < limit; ++at) {
      if (own ? *at >= load : reaches(load, *at)) {
        break;
      }
      consider(*at);
    }
  }
  return found;
}

bool MemoryOrder::determine() {
  for (bool changed = true; changed;) {
    changed = false;
    remaining_.clear();
    for (size_t i = 0; i < undetermined_.size(); ++i) {
      const uint32_t load = undetermined_[i];
      if (source_[load] != kNone) {
        continue;
      }
      const auto found = candidates(load, 2);
      if (found.empty()) {
        failed_ = {load, load};
        return false;
      }
      if (found.size() == 1) {
        if (!set_source(load, found.front())) {
          return false;
        }
        changed = true;
      } else {
        remaining_.push_back(load);
      }
    }
    undetermined_.swap(remaining_);
  }
  return true;
}

// ---------------------------------------------------------------- undo

MemoryOrder::Mark MemoryOrder::mark() {
  remember_ = true;
  return {clock_trail_.size(),  edge_trail_.size(),    source_trail_.size(),
          reader_trail_.size(), assumed_trail_.size(), undetermined_};
}

void MemoryOrder::undo(const Mark& mark) {
  pending_.clear();
  work_.clear();
  for (; clock_trail_.size() > mark.clocks; clock_trail_.pop_back()) {
    clocks_[clock_trail_.back().entry] = clock_trail_.back().old;
  }
  for (; edge_trail_.size() > mark.edges; edge_trail_.pop_back()) {
    successors_[edge_trail_.back().from].pop_back();
  }
  for (; source_trail_.size() > mark.sources; source_trail_.pop_back()) {
    source_[source_trail_.back()] = kNone;
  }
  for (; reader_trail_.size() > mark.readers; reader_trail_.pop_back()) {
    const ReaderChange& change = reader_trail_.back();
    if (change.old == kNone) {
      readers_[change.store].pop_back();
    } else {
      readers_[change.store][change.index].load = change.old;
    }
  }
  for (; assumed_trail_.size() > mark.assumed; assumed_trail_.pop_back()) {
    assumed_[assumed_trail_.back()].reset();
  }
  undetermined_ = mark.undetermined;
}

// ---------------------------------------------------------------- explanation

std::vector<uint32_t> MemoryOrder::path(uint32_t from, uint32_t to) const {
  std::vector<uint32_t> before(problem_.operations.size(), kNone);
  std::vector<uint32_t> queue = {from};
  before[from] = from;
  for (size_t at = 0; at < queue.size() && before[to] == kNone; ++at) {
    for_each_successor(queue[at], [&](uint32_t next) {
      if (before[next] == kNone) {
        before[next] = queue[at];
        queue.push_back(next);
      }
    });
  }
  std::vector<uint32_t> result;
  for (uint32_t at = to; at != kNone; at = before[at]) {
    result.push_back(at);
    if (at == from) {
      break;
    }
  }
  std::reverse(result.begin(), result.end());
  return result;
}

std::vector<uint32_t> MemoryOrder::contradiction() const {
  if (!cycle_.empty() || failed_.from == kNone) {
    return cycle_;
  }
  return failed_.from == failed_.to ? std::vector<uint32_t>{failed_.from}
                                    : path(failed_.to, failed_.from);
}

}  // namespace tsomon
