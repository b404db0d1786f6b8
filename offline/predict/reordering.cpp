#include "offline/predict/reordering.h"

#include <algorithm>

#include "tso/support/work.h"

namespace tsomon::predict {

Reordering::Reordering(const Model& model)
    : model_(model), last_use_(model.cell_count(), kNone), inside_(model.lock_count()) {}

// Of what comes before the node, without its own thread.
const uint32_t* Reordering::clock(NodeId id) const {
  if (id >= first_) {
    const uint32_t changed = changed_[local(id)];
    if (changed != kNone) {
      return clocks_.data() + static_cast<size_t>(changed) * model_.threads();
    }
  }
  return (model_.bound_at_once(id) ? model_.needed(id) : model_.before(id)).data();
}

// How many nodes of the thread come before the node.
uint32_t Reordering::known(NodeId id, uint32_t thread) const {
  const Node& node = model_.node(id);
  return thread == node.thread ? node.position : clock(id)[thread];
}

bool Reordering::ordered(NodeId a, NodeId b) const {
  return known(b, model_.node(a).thread) > model_.node(a).position;
}

void Reordering::clear() {
  nodes_.clear();
  order_.clear();
  clocks_.clear();
  first_edge_.clear();
  edges_.clear();
  queue_ = {};
}

// Its nodes, in the order of the trace.
void Reordering::choose_window(NodeId first) {
  first_ = first;
  base_.assign(counts_.size(), 0);
  offset_.assign(counts_.size(), 0);
  uint32_t total = 0;
  NodeId end = first;
  for (uint32_t thread = 0; thread < counts_.size(); ++thread) {
    const auto& mine = model_.of_thread(thread);
    const auto last = mine.begin() + counts_[thread];
    base_[thread] =
        static_cast<uint32_t>(std::lower_bound(mine.begin(), last, first) - mine.begin());
    offset_[thread] = total - base_[thread];
    total += counts_[thread] - base_[thread];
    if (base_[thread] < counts_[thread]) {
      end = std::max(end, *(last - 1) + 1);
    }
  }
  spend(total + counts_.size());
  changed_.assign(total, kNone);
  queued_.assign(total, false);
  nodes_.reserve(total);
  constexpr uint32_t kSparse = 10;  // sorting is cheaper than looking at all nodes
  if (total < (end - first) / kSparse) {
    for (uint32_t thread = 0; thread < counts_.size(); ++thread) {
      const auto& mine = model_.of_thread(thread);
      nodes_.insert(nodes_.end(), mine.begin() + base_[thread], mine.begin() + counts_[thread]);
    }
    spend(kSparse * total);
    std::sort(nodes_.begin(), nodes_.end());
    return;
  }
  for (NodeId id = first; id < end; ++id) {
    if (in_set(id)) {
      nodes_.push_back(id);
    }
  }
}

void Reordering::enqueue(NodeId id) {
  const uint32_t at = local(id);
  if (!queued_[at]) {
    queued_[at] = true;
    queue_.push(id);
  }
}

// The clock of `to` contains `from` and its clock. False: `to` would come before itself.
bool Reordering::join(NodeId to, NodeId from) {
  const Node& target = model_.node(to);
  const Node& source = model_.node(from);
  const uint32_t k = model_.threads();
  spend(k / 4 + 1);
  if (known(from, target.thread) > target.position || from == to) {
    return false;
  }
  bool news = source.thread != target.thread && clock(to)[source.thread] <= source.position;
  const uint32_t* other = clock(from);
  const uint32_t* mine = clock(to);
  for (uint32_t thread = 0; !news && thread < k; ++thread) {
    news = other[thread] > mine[thread] && thread != target.thread && thread != source.thread;
  }
  if (!news) {
    return true;
  }
  if (changed_[local(to)] == kNone) {
    const size_t made = clocks_.size();
    const uint32_t* const base = clock(to);
    std::vector<uint32_t> copy(base, base + k);
    clocks_.insert(clocks_.end(), copy.begin(), copy.end());
    changed_[local(to)] = static_cast<uint32_t>(made / k);
    other = clock(from);
  }
  uint32_t* const target_clock = clocks_.data() + static_cast<size_t>(changed_[local(to)]) * k;
  for (uint32_t thread = 0; thread < k; ++thread) {
    if (thread != source.thread) {
      target_clock[thread] = std::max(target_clock[thread], other[thread]);
    }
  }
  if (source.thread != target.thread) {
    target_clock[source.thread] = std::max(target_clock[source.thread], source.position + 1);
  }
  enqueue(to);
  return true;
}

bool Reordering::add(NodeId from, NodeId to) {
  if (from == to || ordered(to, from)) {
    return false;
  }
  if (ordered(from, to)) {
    return true;
  }
  if (to < first_) {
    return true;  // the place of that one is not looked for
  }
  if (from < first_) {
    return join(to, from);
  }
  const auto [first, is_new] = first_edge_.try_emplace(from, kNone);
  edges_.push_back({to, *first});
  *first = static_cast<uint32_t>(edges_.size() - 1);
  return join(to, from);
}

// To whatever is recorded as coming right after the node.
bool Reordering::propagate(NodeId id) {
  const Node& node = model_.node(id);
  const auto& mine = model_.of_thread(node.thread);
  if (node.position + 1 < counts_[node.thread] && !join(mine[node.position + 1], id)) {
    return false;
  }
  for (const NodeId to : model_.hard_from(id)) {
    if (in_set(to) && !join(to, id)) {
      return false;
    }
  }
  if (node.writes) {
    const auto uses = model_.uses(id);
    for (uint32_t use = node.first_use; use < node.first_use + uses.size(); ++use) {
      const bool kept = model_.each_readers(model_.use(use).cell, use, [&](const ThreadList& list) {
        for (const uint32_t reader : list.items) {
          const NodeId read = model_.use(reader).node;
          if (!in_set(read)) {
            break;
          }
          if (bound(read) && !model_.forwards(id, read) && !join(read, id)) {
            return false;
          }
        }
        return true;
      });
      if (!kept) {
        return false;
      }
    }
  }
  if (const uint32_t* const first = first_edge_.find(id)) {
    for (uint32_t edge = *first; edge != kNone; edge = edges_[edge].next) {
      if (!join(edges_[edge].to, id)) {
        return false;
      }
    }
  }
  return true;
}

bool Reordering::close() {
  while (!queue_.empty()) {
    const NodeId id = queue_.top();
    queue_.pop();
    const uint32_t at = local(id);
    queued_[at] = false;
    spend(4);
    // A clock of the model is closed under what is recorded there.
    if (changed_[at] != kNone && !propagate(id)) {
      return false;
    }
    if (!apply_rules(id)) {
      return false;
    }
  }
  return true;
}

bool Reordering::apply_rules(NodeId id) {
  const Node& node = model_.node(id);
  for (const Use& use : model_.uses(id)) {
    if (node.reads && bound(id) && !read_rule(id, use)) {
      return false;
    }
    if (node.writes && !write_rule(id, use)) {
      return false;
    }
  }
  return node.section() == kNone || model_.sections()[node.section()].release != id ||
         lock_rule(id);
}

bool Reordering::read_rule(NodeId id, const Use& use) {
  if (use.source != kNone && !in_set(model_.use(use.source).node)) {
    return true;  // it stays in the buffer, from which it was forwarded
  }
  for (const ThreadList& list : model_.writes_of(use.cell)) {
    spend(2);
    const uint32_t last = model_.last_use(list, known(id, list.thread));
    if (last == kNone || last == use.source) {
      continue;
    }
    if (use.source == kNone || !add(model_.use(last).node, model_.use(use.source).node)) {
      return false;
    }
  }
  return true;
}

bool Reordering::write_rule(NodeId id, const Use& use) {
  for (const ThreadList& list : model_.writes_of(use.cell)) {
    spend(2);
    const uint32_t last = model_.last_use(list, known(id, list.thread));
    if (last != kNone && !readers_first(use.cell, last, id)) {
      return false;
    }
  }
  return readers_first(use.cell, kNone, id);
}

// Who reads what the write, or nobody, has left in the cell.
bool Reordering::readers_first(uint32_t cell, uint32_t seen, NodeId write) {
  return model_.each_readers(cell, seen, [&](const ThreadList& list) {
    spend(2);
    const NodeId read = model_.last_bound(list, counts_[list.thread]);
    return read == kNone || read == write || add(read, write);
  });
}

bool Reordering::lock_rule(NodeId release) {
  const Section& mine = model_.sections()[model_.node(release).section()];
  for (const ThreadList& list : model_.sections_of(mine.lock)) {
    spend(2);
    if (list.thread == mine.thread) {
      continue;
    }
    const uint32_t last = model_.last_section(list, known(release, list.thread), mine.shared);
    if (last == kNone) {
      continue;
    }
    const NodeId other = model_.sections()[last].release;
    if (other == kNone || !in_set(other) || !add(other, mine.acquire)) {
      return false;
    }
  }
  return true;
}

bool Reordering::open_sections_last() {
  for (uint32_t thread = 0; thread < counts_.size(); ++thread) {
    for (const uint32_t section : model_.held(thread, counts_[thread])) {
      const Section& mine = model_.sections()[section];
      for (const ThreadList& list : model_.sections_of(mine.lock)) {
        spend(2);
        if (list.thread == thread) {
          continue;
        }
        const uint32_t last = model_.last_section(list, counts_[list.thread], mine.shared);
        if (last == kNone) {
          continue;
        }
        const NodeId release = model_.sections()[last].release;
        if (release == kNone || !in_set(release) || !add(release, mine.acquire)) {
          return false;
        }
      }
    }
  }
  return true;
}

bool Reordering::begin(std::span<const Pair> asked) {
  for (const NodeId id : nodes_) {
    // Reads that a later branch binds: their clocks do not have it.
    if (model_.node(id).reads && bound(id) && !model_.bound_at_once(id)) {
      for (const Use& use : model_.uses(id)) {
        if (use.source != kNone && !model_.forwards(model_.use(use.source).node, id) &&
            !join(id, model_.use(use.source).node)) {
          return false;
        }
      }
    }
    enqueue(id);
  }
  const auto commits = model_.commits_first();
  for (auto at = std::partition_point(commits.begin(), commits.end(),
                                      [&](const auto& entry) { return entry.read < first_; });
       at != commits.end() && !nodes_.empty() && at->read <= nodes_.back(); ++at) {
    spend(1);
    if (in_set(at->read) && bound(at->read) && !add(at->commit, at->read)) {
      return false;
    }
  }
  const auto if_both = model_.if_both();
  for (auto at = std::partition_point(if_both.begin(), if_both.end(),
                                      [&](const auto& pair) { return pair.first < first_; });
       at != if_both.end() && !nodes_.empty() && at->first <= nodes_.back(); ++at) {
    spend(1);
    if (in_set(at->first) && in_set(at->second) && !add(at->second, at->first)) {
      return false;
    }
  }
  for (const Pair& pair : asked) {
    if (!add(pair.from, pair.to)) {
      return false;
    }
  }
  return open_sections_last() && close();
}

// What comes before the window stays there.
bool Reordering::fix_start() {
  std::vector<uint32_t> cells;
  for (const NodeId id : nodes_) {
    if (!model_.node(id).writes) {
      continue;
    }
    for (const Use& use : model_.uses(id)) {
      if (last_use_[use.cell] == kNone) {
        last_use_[use.cell] = 0;
        cells.push_back(use.cell);
      }
    }
  }
  spend(nodes_.size());
  for (const uint32_t cell : cells) {
    last_use_[cell] = kNone;
  }
  return std::all_of(cells.begin(), cells.end(),
                     [&](uint32_t cell) { return first_writes_last(cell); }) &&
         [&] {
           for (uint32_t thread = 0; thread < counts_.size(); ++thread) {
             if (!first_sections_end(thread)) {
               return false;
             }
           }
           return close();
         }();
}

// Whoever reads what the cell held before the window reads it before the window's writes.
bool Reordering::first_writes_last(uint32_t cell) {
  const auto writers = model_.writes_of(cell);
  uint32_t source = kNone;
  for (const ThreadList& list : writers) {
    const uint32_t last = model_.last_use(list, base_[list.thread]);
    if (last != kNone && (source == kNone || source < last)) {
      source = last;  // uses ascend with nodes
    }
  }
  return model_.each_readers(cell, source, [&](const ThreadList& list) {
    spend(2);
    const NodeId read = model_.last_bound(list, counts_[list.thread]);
    return read == kNone || read < first_ || before_writes(read, cell);
  });
}

// Those of the window, but for later ones of its own thread.
bool Reordering::before_writes(NodeId read, uint32_t cell) {
  const uint32_t thread = model_.node(read).thread;
  for (const ThreadList& writes : model_.writes_of(cell)) {
    spend(2);
    const auto first =
        std::partition_point(writes.items.begin(), writes.items.end(),
                             [&](uint32_t use) { return model_.use(use).node < first_; });
    if (first == writes.items.end()) {
      continue;
    }
    const NodeId write = model_.use(*first).node;
    if (write != read && in_set(write) && (writes.thread != thread || write < read) &&
        !add(read, write)) {
      return false;
    }
  }
  return true;
}

// Sections that are open before the window end before those of other threads begin there.
bool Reordering::first_sections_end(uint32_t thread) {
  for (const uint32_t section : model_.held(thread, base_[thread])) {
    const Section& mine = model_.sections()[section];
    for (const ThreadList& list : model_.sections_of(mine.lock)) {
      spend(2);
      if (list.thread == thread) {
        continue;
      }
      auto at = std::partition_point(list.items.begin(), list.items.end(), [&](uint32_t other) {
        return model_.sections()[other].acquire < first_;
      });
      while (at != list.items.end() && !mine.excludes(model_.sections()[*at])) {
        spend(1);
        ++at;
      }
      if (at == list.items.end() || !in_set(model_.sections()[*at].acquire)) {
        continue;
      }
      if (mine.release == kNone || !in_set(mine.release) ||
          !add(mine.release, model_.sections()[*at].acquire)) {
        return false;
      }
    }
  }
  return true;
}

// The order of the trace as far as the clocks allow.
std::vector<NodeId> Reordering::linear() const {
  std::vector<NodeId> order;
  order.reserve(nodes_.size());
  std::vector<uint32_t> done = base_;
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> waiting(counts_.size());
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  // Its next node is ready, or it waits for another thread to get so far.
  const auto look = [&](uint32_t thread) {
    if (done[thread] >= counts_[thread]) {
      return;
    }
    const NodeId next = model_.of_thread(thread)[done[thread]];
    const uint32_t* const needed = clock(next);
    spend(counts_.size() / 4 + 1);
    for (uint32_t other = 0; other < counts_.size(); ++other) {
      if (other != thread && needed[other] > done[other]) {
        waiting[other].emplace_back(needed[other], thread);
        return;
      }
    }
    ready.push(next);
  };
  for (uint32_t thread = 0; thread < counts_.size(); ++thread) {
    look(thread);
  }
  while (!ready.empty()) {
    const NodeId id = ready.top();
    ready.pop();
    order.push_back(id);
    const uint32_t thread = model_.node(id).thread;
    const uint32_t now = ++done[thread];
    look(thread);
    auto& wait = waiting[thread];
    for (size_t i = 0; i < wait.size();) {
      if (wait[i].first <= now) {
        const uint32_t woken = wait[i].second;
        wait[i] = wait.back();
        wait.pop_back();
        look(woken);
      } else {
        ++i;
      }
    }
  }
  return order;
}

// Sections that overlap when the node acquires: the one that begins first in the trace ends first.
void Reordering::broken_locks(NodeId id, std::vector<Pair>* pairs) {
  const Section& mine = model_.sections()[model_.node(id).section()];
  std::vector<uint32_t>& inside = inside_[mine.lock];
  if (mine.release == id) {
    std::erase(inside, model_.node(id).section());
    return;
  }
  for (const uint32_t other : inside) {
    const Section& rival = model_.sections()[other];
    if (!rival.excludes(mine)) {
      continue;
    }
    const bool rival_first =
        rival.acquire < mine.acquire || mine.release == kNone || !in_set(mine.release);
    if (rival_first && rival.release != kNone && in_set(rival.release)) {
      pairs->push_back({rival.release, mine.acquire});
    } else if (mine.release != kNone && in_set(mine.release)) {
      pairs->push_back({mine.release, rival.acquire});
    }
  }
  inside.push_back(model_.node(id).section());
}

// When the window begins: what comes before is as in the trace.
int64_t Reordering::count_at_start(const Counter& counter) const {
  const auto at =
      std::partition_point(counter.steps.begin(), counter.steps.end(),
                           [&](const Counter::Step& step) { return step.node < first_; });
  if (at != counter.steps.end()) {
    return at->before;
  }
  return counter.steps.empty()
             ? counter.initial
             : counter.steps.back().before + (counter.steps.back().takes ? -1 : 1);
}

// A take that finds the count 0. Some post has to come before it: the first one that can.
void Reordering::broken_count(NodeId id, const std::vector<uint32_t>& done,
                              std::vector<Pair>* pairs) {
  const uint32_t number = model_.counter_of(id);
  if (number == kNone) {
    return;
  }
  const Counter& counter = model_.counters()[number];
  Counting& mine = counting_[number];
  if (!model_.takes(id)) {
    if (std::erase(mine.early, id) == 0) {
      ++mine.count;
    }
    return;
  }
  if (mine.count > 0) {
    --mine.count;
    return;
  }
  NodeId first = kNone;
  for (const Counter::Mine& one : counter.threads) {
    spend(2);
    auto post = std::partition_point(one.posts.begin(), one.posts.end(), [&](NodeId node) {
      return model_.node(node).position < done[one.thread];
    });
    while (post != one.posts.end() &&
           std::find(mine.early.begin(), mine.early.end(), *post) != mine.early.end()) {
      ++post;
    }
    if (post != one.posts.end() && in_set(*post) && !ordered(id, *post)) {
      first = std::min(first, *post);
    }
  }
  if (first == kNone) {
    pairs->push_back({id, id});  // there is no order
    return;
  }
  mine.early.push_back(first);
  pairs->push_back({first, id});
}

// The store that the read saw is one of its own that has not been committed.
bool Reordering::in_buffer(uint32_t source, NodeId read, const std::vector<uint32_t>& done) const {
  if (source == kNone || !model_.forwards(model_.use(source).node, read)) {
    return false;
  }
  const Node& commit = model_.node(model_.use(source).node);
  return commit.position >= done[commit.thread];
}

// Orders that would mend what the linear order breaks.
std::vector<Reordering::Pair> Reordering::broken(const std::vector<NodeId>& order) {
  std::vector<Pair> pairs;
  std::vector<uint32_t> done = base_;
  counting_.assign(model_.counters().size(), {});
  for (size_t i = 0; i < counting_.size(); ++i) {
    counting_[i].count = count_at_start(model_.counters()[i]);
  }
  for (const NodeId id : order) {
    const Node& node = model_.node(id);
    spend(2);
    ++done[node.thread];
    broken_count(id, done, &pairs);
    const auto uses = model_.uses(id);
    for (uint32_t at = 0; node.reads && bound(id) && at < uses.size(); ++at) {
      const uint32_t seen = last_use_[uses[at].cell];
      const uint32_t source = uses[at].source;
      if (seen == source || seen == kNone || in_buffer(source, id, done)) {
        continue;
      }
      const NodeId write = model_.use(seen).node;
      if (source != kNone && inside(model_.use(source).node) && write < model_.use(source).node) {
        pairs.push_back({write, model_.use(source).node});
      } else {
        pairs.push_back({id, write});
      }
    }
    for (uint32_t at = 0; node.writes && at < uses.size(); ++at) {
      last_use_[uses[at].cell] = node.first_use + at;
    }
    if (node.section() != kNone) {
      broken_locks(id, &pairs);
    }
  }
  for (const NodeId id : order) {
    for (const Use& use : model_.uses(id)) {
      last_use_[use.cell] = kNone;
    }
    if (model_.node(id).section() != kNone) {
      inside_[model_.sections()[model_.node(id).section()].lock].clear();
    }
  }
  return pairs;
}

Reordering::Answer Reordering::look(const std::vector<uint32_t>& counts,
                                    std::span<const Pair> asked, NodeId first, bool fixed) {
  clear();
  counts_ = counts;
  choose_window(first);
  if (!begin(asked)) {
    return Answer::kNone;
  }
  if (!fixed) {
    return Answer::kOther;
  }
  if (first > 0 && !fix_start()) {
    return Answer::kOther;
  }
  return mend() ? Answer::kOrder : first > 0 ? Answer::kOther : Answer::kNone;
}

// Chooses what is not forced until a linear order breaks nothing.
bool Reordering::mend() {
  for (;;) {
    order_ = linear();
    const std::vector<Pair> pairs = broken(order_);
    if (pairs.empty()) {
      return order_.size() == nodes_.size();
    }
    bool changed = false;
    for (const Pair& pair : pairs) {
      // An earlier choice may have decided it, this way or the other.
      if (ordered(pair.from, pair.to) || ordered(pair.to, pair.from)) {
        continue;
      }
      changed = true;
      if (!add(pair.from, pair.to) || !close()) {
        return false;
      }
    }
    if (!changed) {
      return false;
    }
  }
}

}  // namespace tsomon::predict
