#include "offline/predict/model.h"

#include <algorithm>

#include "offline/predict/block_names.h"
#include "offline/predict/model_state.h"
#include "tso/model/channels.h"
#include "tso/support/work.h"

namespace tsomon::predict {
namespace {

bool reads(const Event& event) {
  return event.kind() == EventKind::kRead || event.kind() == EventKind::kReadModifyWrite;
}
bool writes(const Event& event) {
  return event.kind() == EventKind::kWrite || event.kind() == EventKind::kReadModifyWrite ||
         event.kind() == EventKind::kFree;
}

uint32_t thread_count(const Trace& trace) {
  uint32_t count = 1;
  for (const Event& event : trace.events) {
    count = std::max(count, event.thread + 1);
  }
  return count;
}

}  // namespace

Model::Model(const Trace& trace, const CellTable& cells, const std::vector<HardEdge>& edges,
             Branches branches, bool buffers)
    : trace_(trace), cells_(cells), edges_(edges), branches_(branches), buffers_(buffers) {
  const auto events = static_cast<uint32_t>(trace.events.size());
  shared_ = find_shared();
  find_locks();
  by_thread_.resize(number(thread_count(trace)));
  split_.resize(buffers ? events : 0);
  events_.resize(threads());
  held_.resize(threads());
  helds_.emplace_back();
  lock_sets_.emplace_back();
  reserve();
  cell_states_.resize(cells.size());
  last_reads_.resize(cells.size());
  rows_.assign(threads(), 0);

  const SemaphoreTable semaphores(trace);
  for (const Semaphore& semaphore : semaphores.all()) {
    counters_.emplace_back().initial = semaphore.initial;
  }
  std::vector<bool> has_edge(events);
  for (const HardEdge& edge : edges) {
    has_edge[edge.from] = true;
    has_edge[edge.to] = true;
  }
  FlatMap<uint32_t, NodeId> node_of;  // of the sources of edges
  std::vector<std::pair<NodeId, NodeId>> hard;
  std::vector<ThreadState> states(threads());
  for (uint32_t thread = 0; thread < threads(); ++thread) {
    states[thread].thread = thread;
  }
  size_t edge = 0;
  for (uint32_t i = 0; i < events; ++i) {
    const Event& event = trace.events[i];
    spend(4);
    ThreadState& state = states[number(event.thread)];
    events_[state.thread].push_back(i);
    const bool store = buffers_ && event.kind() == EventKind::kWrite;
    NodeId commit = kNone;
    if (buffers_) {
      commit =
          event.kind() == EventKind::kRead ? covered_in_part_by(i, state) : drained_by(i, states);
    }
    const bool upgrades = upgrade(i, state) && !tried(i, state);
    const bool lock = lock_operation(i, state);
    note_condition(i, state);
    note_ignored(event, state);
    const CellSpan span = is(event, kinds::kLocks) ? CellSpan{} : cells.of_event(i);
    const uint32_t counter =
        semaphores.empty() || event.kind() == EventKind::kCount ? kNone : semaphores.of_event(i);
    bool keep = lock || upgrades || counter != kNone || event.kind() == EventKind::kNotify ||
                has_edge[i] || commit != kNone || limits_lock(event) ||
                (event.kind() == EventKind::kBranch && branches_ == Branches::kAsRecorded &&
                 !state.unbound_reads.empty());
    for (uint32_t cell = span.first; !keep && cell < span.first + span.count; ++cell) {
      keep = shared_[cell];
    }
    if (!keep) {
      if (store) {
        note_store(i, state, kNone);
      }
      continue;
    }
    const auto id = static_cast<NodeId>(nodes_.size());
    for (; edge < edges.size() && edges[edge].to <= i; ++edge) {
      const NodeId from = *node_of.find(edges[edge].from);
      if (edges[edge].if_both) {
        if_both_.emplace_back(id, from);
        hard.emplace_back(from, id);
        continue;
      }
      hard.emplace_back(from, id);
      learn(state, id, from);
    }
    if (commit != kNone) {
      hard.emplace_back(commit, id);
      learn(state, id, commit);
    }
    if (has_edge[i]) {
      node_of.try_emplace(i, store ? id + 1 : id);
    }
    if (upgrades) {
      upgrades_.push_back(id);
    }
    if (event.kind() == EventKind::kNotify) {
      notifications_[{event.address, event.size}].push_back(id);
    }
    if (counter != kNone) {
      note_step(id, state.thread, counter, event.kind() == EventKind::kTake);
    }
    add(i, state, lock);
    if (store) {
      hard.emplace_back(id, id + 1);
      note_store(i, state, add_commit(i, states[state.thread + 1]));
    }
  }
  group();
  spend(hard.size());
  std::sort(hard.begin(), hard.end());
  first_hard_.assign(nodes_.size() + 1, 0);
  for (const auto& [from, to] : hard) {
    ++first_hard_[from + 1];
    hard_.push_back(to);
  }
  for (size_t i = 0; i < nodes_.size(); ++i) {
    first_hard_[i + 1] += first_hard_[i];
  }
}

// The end of a lock, or of memory that a lock lies in, or the beginning of a lock.
bool Model::limits_lock(const Event& event) const {
  if (event.kind() != EventKind::kFree) {
    return event.kind() == EventKind::kDestroy || lock_begins(event);
  }
  const auto at = std::lower_bound(locks_.begin(), locks_.end(), event.address);
  return BlockNames::has_locks(event.address) && at != locks_.end() &&
         *at - event.address < block_bytes(trace_, event);
}

void Model::find_locks() {
  for (const Event& event : trace_.events) {
    if (event.size == 0 && is(event, kinds::kLocks | kind_mask(EventKind::kNotify))) {
      locks_.push_back(event.address);
    }
  }
  spend(trace_.events.size());
  std::sort(locks_.begin(), locks_.end());
  locks_.erase(std::unique(locks_.begin(), locks_.end()), locks_.end());
}

std::vector<bool> Model::find_shared() {
  std::vector<uint32_t> first(cells_.size(), kNone);
  std::vector<bool> several(cells_.size());
  std::vector<bool> written(cells_.size());
  for (uint32_t i = 0; i < trace_.events.size(); ++i) {
    const Event& event = trace_.events[i];
    if (!reads(event) && !writes(event)) {
      continue;
    }
    const CellSpan span = cells_.of_event(i);
    spend(1 + span.count);
    for (uint32_t cell = span.first; cell < span.first + span.count; ++cell) {
      if (first[cell] == kNone) {
        first[cell] = event.thread;
      }
      several[cell] = several[cell] || first[cell] != event.thread;
      written[cell] = written[cell] || writes(event);
    }
  }
  for (uint32_t cell = 0; cell < cells_.size(); ++cell) {
    several[cell] = several[cell] && written[cell];
  }
  return several;
}

// The acquisition or wait does not block.
bool Model::tried(uint32_t i, const ThreadState& state) const {
  const Event& event = trace_.events[i];
  return state.tried != kNone && trace_.events[state.tried].address == event.address &&
         trace_.events[state.tried].size == event.size;
}

// Tries and waits, which are no nodes.
void Model::note_condition(uint32_t i, ThreadState& state) {
  const Event& event = trace_.events[i];
  if (event.kind() == EventKind::kTry) {
    state.tried = i;
    return;
  }
  if (event.kind() == EventKind::kReceive && event.address == kCancellation) {
    state.waiting = kNone;  // it ends without a notification
  }
  if (event.kind() == EventKind::kWait && state.released != kNone && !tried(i, state)) {
    state.waiting = static_cast<uint32_t>(waits_.size());
    waits_.push_back({i, state.released, kNone});
  }
  if (is(event, kinds::kAcquisitions | kind_mask(EventKind::kWait)) && tried(i, state)) {
    state.tried = kNone;
  }
}

void Model::note_step(NodeId id, uint32_t thread, uint32_t number, bool takes) {
  Counter& counter = counters_[number];
  auto mine = std::find_if(counter.threads.begin(), counter.threads.end(),
                           [&](const Counter::Mine& one) { return one.thread == thread; });
  if (mine == counter.threads.end()) {
    mine = counter.threads.insert(mine, {thread, {}, {}});
  }
  (takes ? mine->takes : mine->posts).push_back(id);
  const int64_t before = counter.steps.empty()
                             ? counter.initial
                             : counter.steps.back().before + (counter.steps.back().takes ? -1 : 1);
  counter.steps.push_back({id, takes, before});
  counter_of_.try_emplace(id, number);
  spend(counter.threads.size());
}

std::span<const NodeId> Model::notifications_of(const Event& event) const {
  const auto found = notifications_.find({event.address, event.size});
  return found == notifications_.end() ? std::span<const NodeId>() : found->second;
}

bool Model::upgrade(uint32_t i, const ThreadState& state) const {
  return trace_.events[i].kind() == EventKind::kAcquire &&
         std::any_of(state.locks.begin(), state.locks.end(), [&](const ThreadState::Lock& mine) {
           return mine.lock == cells_.lock_of(i) && sections_[mine.section].shared;
         });
}

// Whether it begins or ends an outermost section.
bool Model::lock_operation(uint32_t i, ThreadState& state) {
  const Event& event = trace_.events[i];
  if (!is(event, kinds::kLocks)) {
    return false;
  }
  const uint32_t lock = cells_.lock_of(i);
  const auto held = std::find_if(state.locks.begin(), state.locks.end(),
                                 [&](const ThreadState::Lock& mine) { return mine.lock == lock; });
  if (is(event, kinds::kAcquisitions)) {
    if (held != state.locks.end()) {
      ++held->depth;
      return false;
    }
    const auto section = static_cast<uint32_t>(sections_.size());
    sections_.push_back({lock, state.thread, kNone, kNone,
                         event.kind() == EventKind::kAcquireShared, tried(i, state)});
    state.locks.push_back({lock, 1, section});
    state.section = section;
    return true;
  }
  if (held == state.locks.end() || --held->depth > 0) {
    return false;
  }
  state.section = held->section;
  state.locks.erase(held);
  return true;
}

// The clock of the thread contains the source and what that one needs.
void Model::learn(ThreadState& state, NodeId id, NodeId source) {
  const Node& from = nodes_[source];
  const size_t k = threads();
  if (from.thread == state.thread || row(state.clock)[from.thread] > from.position) {
    return;
  }
  if (state.owned_by != id) {
    const size_t old = static_cast<size_t>(state.clock) * k;
    const size_t made = rows_.size();
    rows_.resize(made + k);
    std::copy_n(rows_.begin() + static_cast<ptrdiff_t>(old), k,
                rows_.begin() + static_cast<ptrdiff_t>(made));
    state.clock = static_cast<uint32_t>(made / k);
    state.owned_by = id;
  }
  spend(k / 8 + 1);
  uint32_t* const clock = rows_.data() + static_cast<size_t>(state.clock) * k;
  const uint32_t* const other = rows_.data() + static_cast<size_t>(needed_[source]) * k;
  for (size_t thread = 0; thread < k; ++thread) {
    clock[thread] = std::max(clock[thread], other[thread]);
  }
  clock[from.thread] = std::max(clock[from.thread], from.position + 1);
}

void Model::note_ignored(const Event& event, ThreadState& state) {
  if (event.kind() != EventKind::kSend || event.address < kIgnored) {
    return;
  }
  if (says_ignored(event.address)) {
    state.ignored = event.address & 3U;
  } else if (says_benign(event.address)) {
    benign_.emplace_back(benign_address(event.address), benign_size(event.address));
  }
}

bool Model::benign(uint32_t cell) const {
  const uint64_t address = cells_.address_of(cell);
  return std::any_of(benign_.begin(), benign_.end(),
                     [&](const auto& range) { return address - range.first < range.second; });
}

void Model::put_node(uint32_t i, ThreadState& state, bool reads, bool writes) {
  const auto id = static_cast<NodeId>(nodes_.size());
  std::vector<NodeId>& mine = by_thread_[state.thread];
  Node node;
  node.event = i;
  node.thread = state.thread & 0x3FFFFFFFU;
  node.position = static_cast<uint32_t>(mine.size());
  node.first_use = static_cast<uint32_t>(uses_.size());
  node.reads = reads ? 1 : 0;
  node.writes = writes ? 1 : 0;
  node.held = state.held;
  if (reads && (branches_ == Branches::kAfterEveryRead ||
                trace_.events[i].kind() == EventKind::kReadModifyWrite)) {
    node.bound_or_section = node.position + 1;
  }
  if ((state.ignored & ((reads ? 1U : 0U) | (writes ? 2U : 0U))) != 0) {
    unreported_.resize(id + 1);
    unreported_[id] = true;
  }
  nodes_.push_back(node);
  mine.push_back(id);
  before_.push_back(state.clock);
}

void Model::add(uint32_t i, ThreadState& state, bool lock) {
  const Event& event = trace_.events[i];
  const auto id = static_cast<NodeId>(nodes_.size());
  const bool issue = buffers_ && event.kind() == EventKind::kWrite;
  put_node(i, state, reads(event), writes(event) && !issue);
  Node& node = nodes_.back();
  // What is before the node has been learnt; what it needs may be more.
  state.owned_by = kNone;
  add_uses(id, issue || is(event, kinds::kLocks) ? CellSpan{} : cells_.of_event(i), state);
  if (event.kind() == EventKind::kBranch && branches_ == Branches::kAsRecorded) {
    for (const NodeId read : state.unbound_reads) {
      nodes_[read].bound_or_section = node.position + 1;
      for (const Use& use : uses(read)) {
        if (use.source != kNone && !forwards(uses_[use.source].node, read)) {
          learn(state, id, uses_[use.source].node);
        }
      }
      for (const CommitFirst& first : commits_first(read)) {
        learn(state, id, first.commit);
      }
    }
    state.unbound_reads.clear();
  }
  needed_.push_back(state.clock);
  state.owned_by = kNone;
  if (lock) {
    Section& section = sections_[state.section];
    nodes_[id].bound_or_section = state.section;
    if (section.acquire == kNone) {
      section.acquire = id;
      if (state.waiting != kNone) {
        waits_[state.waiting].acquire = id;
        state.waiting = kNone;
      }
    } else {
      section.release = id;
      state.released = id;
    }
    note_held(state.thread, state);
  }
}

void Model::add_uses(NodeId id, CellSpan span, ThreadState& state) {
  const Node node = nodes_[id];
  const uint32_t first = node.first_use;
  const uint32_t set = helds_[node.held].set;
  for (uint32_t cell = span.first; cell < span.first + span.count; ++cell) {
    if (shared_[cell]) {
      CellState& here = cell_states_[cell];
      uses_.push_back({cell, id, node.reads != 0 ? here.last_write : kNone});
      here.set = here.set == kNone || here.set == set ? set : set_of_both(here.set, set);
    }
  }
  spend(span.count);
  const auto last = static_cast<uint32_t>(uses_.size());
  for (uint32_t use = first; use < last; ++use) {
    if (uses_[use].source != kNone && bound_at_once(id) &&
        !forwards(uses_[uses_[use].source].node, id)) {
      learn(state, id, uses_[uses_[use].source].node);
    }
  }
  if (buffers_ && node.reads != 0) {
    note_load(id, span, state);
  }
  for (uint32_t use = first; node.writes != 0 && use < last; ++use) {
    const uint32_t cell = uses_[use].cell;
    uint32_t& before = cell_states_[cell].last_write;
    if (before != kNone && !last_reads_[cell]) {
      uses_[before].source = use;
    }
    before = use;
    last_reads_[cell] = node.reads != 0;
  }
  if (first != last && node.reads != 0 && branches_ == Branches::kAsRecorded &&
      node.bound_at() == kNone) {
    state.unbound_reads.push_back(id);
  }
}

// What was noted in the order of the trace, by cell, lock or write.
void Model::group() {
  const auto each_use = [&](const auto& visit) {
    for (uint32_t use = 0; use < uses_.size(); ++use) {
      visit(nodes_[uses_[use].node], uses_[use], use);
    }
  };
  const auto cells = cells_.size();
  accesses_ = GroupedLists(cells, threads(), uses_.size(), [&](const auto& add) {
    each_use([&](const Node& node, const Use& use, uint32_t number) {
      add(node.thread, use.cell, number);
    });
  });
  writes_ = GroupedLists(cells, threads(), uses_.size(), [&](const auto& add) {
    each_use([&](const Node& node, const Use& use, uint32_t number) {
      if (node.writes != 0) {
        add(node.thread, use.cell, number);
      }
    });
  });
  const size_t sections = sections_.size();
  lock_sections_ = GroupedLists(cells_.locations(), threads(), sections, [&](const auto& add) {
    for (uint32_t section = 0; section < sections_.size(); ++section) {
      add(sections_[section].thread, sections_[section].lock, section);
    }
  });
  spend(10 * uint64_t{nodes_.size()});
  common_set_.reserve(cells);
  for (const CellState& state : cell_states_) {
    common_set_.push_back(state.set);
  }
  cell_states_ = {};
  last_reads_ = {};
  next_sets_ = {};
  both_sets_ = {};
  set_numbers_.clear();
  last_own_ = {};
}

// The events of each thread, and so at most its nodes.
void Model::reserve() {
  std::vector<uint32_t> counts(threads());
  size_t stores = 0;
  for (const Event& event : trace_.events) {
    ++counts[number(event.thread)];
    if (buffers_ && event.kind() == EventKind::kWrite) {
      ++counts[number(event.thread) + 1];
      ++stores;
    }
  }
  for (uint32_t thread = 0; thread < threads(); ++thread) {
    events_[thread].reserve(counts[thread]);
  }
  // Most events are nodes. What is reserved and not used takes no memory of the machine.
  nodes_.reserve(trace_.events.size() + stores);
  uses_.reserve(trace_.events.size());
  before_.reserve(trace_.events.size() + stores);
  needed_.reserve(trace_.events.size() + stores);
}

// The number of the set when a section begins or ends.
uint32_t Model::set_after(uint32_t set, const Section& section, bool acquired) {
  const uint64_t change = (uint64_t{set} << 33) | (uint64_t{section.lock} << 2) |
                          (section.shared ? 2U : 0U) | (acquired ? 1U : 0U);
  const auto [known, is_new] = next_sets_.try_emplace(change, 0);
  if (!is_new) {
    return *known;
  }
  LockSet after = lock_sets_[set];
  const std::pair<uint32_t, bool> entry{section.lock, section.shared};
  if (acquired) {
    after.insert(std::upper_bound(after.begin(), after.end(), entry), entry);
  } else {
    after.erase(std::find(after.begin(), after.end(), entry));
  }
  return *known = set_number(std::move(after));
}

uint32_t Model::set_number(LockSet&& set) {
  const auto same = set_numbers_.try_emplace(set, static_cast<uint32_t>(lock_sets_.size()));
  if (same.second) {
    lock_sets_.push_back(std::move(set));
  }
  return same.first->second;
}

uint32_t Model::set_of_both(uint32_t one, uint32_t other) {
  const auto [known, is_new] = both_sets_.try_emplace((uint64_t{one} << 32) | other, 0);
  if (!is_new) {
    return *known;
  }
  LockSet both;
  for (const auto& [lock, shared] : lock_sets_[one]) {
    const auto is_it = [wanted = lock](const auto& entry) { return entry.first == wanted; };
    const LockSet& others = lock_sets_[other];
    if (const auto at = std::find_if(others.begin(), others.end(), is_it); at != others.end()) {
      both.emplace_back(lock, shared || at->second);
    }
  }
  spend(8 + lock_sets_[one].size() * lock_sets_[other].size());
  return *known = set_number(std::move(both));
}

void Model::note_held(uint32_t thread, ThreadState& state) {
  const Section& section = sections_[state.section];
  Held held;
  held.from = static_cast<uint32_t>(by_thread_[thread].size());
  held.first = static_cast<uint32_t>(held_pool_.size());
  for (const ThreadState::Lock& lock : state.locks) {
    held_pool_.push_back(lock.section);
  }
  held.last = static_cast<uint32_t>(held_pool_.size());
  held.set = set_after(helds_[state.held].set, section, section.release == kNone);
  state.held = static_cast<uint32_t>(helds_.size());
  held_[thread].push_back(state.held);
  helds_.push_back(held);
}

std::span<const uint32_t> Model::held(uint32_t thread, uint32_t count) const {
  const auto& changes = held_[thread];
  const auto after = std::partition_point(
      changes.begin(), changes.end(), [&](uint32_t held) { return helds_[held].from <= count; });
  if (after == changes.begin()) {
    return {};
  }
  const Held& held = helds_[*(after - 1)];
  return {held_pool_.data() + held.first, held_pool_.data() + held.last};
}

std::span<const uint32_t> Model::held(NodeId id) const {
  const Held& held = helds_[nodes_[id].held];
  return {held_pool_.data() + held.first, held_pool_.data() + held.last};
}

uint32_t Model::end_of_value(uint32_t cell, uint32_t write_use) const {
  uint32_t next = kNone;
  if (write_use != kNone && nodes_[uses_[write_use].node].reads == 0) {
    next = uses_[write_use].source;
  } else {
    for (const ThreadList& list : writes_.of(cell)) {
      const auto after = write_use == kNone
                             ? list.items.begin()
                             : std::upper_bound(list.items.begin(), list.items.end(), write_use);
      next = after == list.items.end() ? next : std::min(next, *after);
    }
  }
  // A read-modify-write sees it as well.
  return next != kNone && nodes_[uses_[next].node].reads != 0 ? next + 1 : next;
}

uint32_t Model::place(NodeId id) const {
  const auto events = events_of(nodes_[id].thread);
  return static_cast<uint32_t>(std::lower_bound(events.begin(), events.end(), nodes_[id].event) -
                               events.begin());
}

bool Model::always_before(NodeId a, NodeId b) const {
  const Node& first = nodes_[a];
  const Node& second = nodes_[b];
  return first.thread == second.thread ? first.position < second.position
                                       : before(b)[first.thread] > first.position;
}

bool Model::before_seen(NodeId a, NodeId seen) const {
  const Node& first = nodes_[a];
  const Node& second = nodes_[seen];
  return first.thread == second.thread ? first.position < second.position
                                       : needed(seen)[first.thread] > first.position;
}

uint32_t Model::last_section(const ThreadList& list, uint32_t count, bool shared) const {
  auto at = std::partition_point(list.items.begin(), list.items.end(), [&](uint32_t section) {
    return nodes_[sections_[section].acquire].position < count;
  });
  while (at != list.items.begin()) {
    --at;
    if (!shared || !sections_[*at].shared) {
      return *at;
    }
    spend(1);
  }
  return kNone;
}

uint32_t Model::last_use(const ThreadList& list, uint32_t count) const {
  const auto at = std::partition_point(list.items.begin(), list.items.end(), [&](uint32_t use) {
    return nodes_[uses_[use].node].position < count;
  });
  return at == list.items.begin() ? kNone : *(at - 1);
}

uint32_t Model::last_bound(const ThreadList& list, uint32_t count) const {
  auto at = std::partition_point(list.items.begin(), list.items.end(), [&](uint32_t use) {
    return nodes_[uses_[use].node].position < count;
  });
  while (at != list.items.begin()) {
    const NodeId read = uses_[*--at].node;
    if (nodes_[read].bound_at() <= count) {
      return read;
    }
    spend(1);
  }
  return kNone;
}

}  // namespace tsomon::predict
