#include "offline/predict/validator.h"

#include <algorithm>

#include <fmt/format.h>

#include "offline/predict/block_names.h"
#include "offline/predict/witness.h"
#include "tso/support/work.h"

namespace tsomon::predict {
namespace {

bool may_read(const Event& event) {
  return event.kind() == EventKind::kRead || event.kind() == EventKind::kReadModifyWrite;
}
bool may_write(const Event& event) {
  return event.kind() == EventKind::kWrite || event.kind() == EventKind::kReadModifyWrite ||
         event.kind() == EventKind::kFree;
}
// Of an entry of a witness.
uint32_t event_of(uint32_t entry) { return entry & ~kCommit; }

}  // namespace

Validator::Validator(const Trace& trace, const CellTable& cells, const std::vector<HardEdge>& edges,
                     Branches branches, bool buffers, uint32_t carried)
    : trace_(trace),
      cells_(cells),
      edges_(edges),
      branches_(branches),
      buffers_(buffers),
      carried_(carried),
      semaphores_(trace) {
  last_.assign(cells.size(), kInitial);
  locks_.resize(cells.locations());
  previous_.reserve(size());
  for (uint32_t i = 0; i < size(); ++i) {
    const Event& event = trace.events[i];
    spend(1);
    if (event.thread >= done_.size()) {
      done_.resize(event.thread + 1, kNobody);
      branches_of_.resize(event.thread + 1);
    }
    previous_.push_back(done_[event.thread]);
    done_[event.thread] = i;
    if (event.kind() == EventKind::kBranch && branches == Branches::kAsRecorded) {
      branches_of_[event.thread].push_back(i);
    }
  }
  std::fill(done_.begin(), done_.end(), kNobody);
  ends_.assign(done_.size(), kNobody);
  last_branch_.assign(done_.size(), 0);
  buffer_.resize(done_.size());
  for (const HardEdge& edge : edges) {
    if (edge.if_both) {
      if_both_.emplace(edge.from, edge.to);
    }
  }
  group_writes();
  group_locks();
  find_plain();
}

// What writes to each cell, in the order of the trace.
void Validator::group_writes() {
  first_write_.assign(cells_.size() + 1, 0);
  const auto each = [&](const auto& visit) {
    for (uint32_t i = 0; i < size(); ++i) {
      if (may_write(trace_.events[i])) {
        const CellSpan span = cells_.of_event(i);
        spend(span.count);
        for (uint32_t cell = span.first; cell < span.first + span.count; ++cell) {
          visit(i, cell);
        }
      }
    }
  };
  each([&](uint32_t, uint32_t cell) { ++first_write_[cell + 1]; });
  for (size_t cell = 0; cell < cells_.size(); ++cell) {
    first_write_[cell + 1] += first_write_[cell];
  }
  writes_.resize(first_write_.back());
  std::vector<uint32_t> next(first_write_.begin(), first_write_.end() - 1);
  each([&](uint32_t i, uint32_t cell) { writes_[next[cell]++] = i; });
}

uint32_t Validator::source(uint32_t event, uint32_t cell) const {
  const auto first = writes_.begin() + first_write_[cell];
  const auto after = std::lower_bound(first, writes_.begin() + first_write_[cell + 1], event);
  return after == first ? kInitial : *(after - 1);
}

// What happens to each lock, in the order of the trace.
void Validator::group_locks() {
  first_change_.assign(locks_.size() + 1, 0);
  const auto each = [&](const auto& visit) {
    for (uint32_t i = 0; i < size(); ++i) {
      if (is(trace_.events[i], kinds::kLocks)) {
        visit(i, cells_.lock_of(i));
      }
    }
  };
  each([&](uint32_t, LocationId lock) { ++first_change_[lock + 1]; });
  for (size_t lock = 0; lock < locks_.size(); ++lock) {
    first_change_[lock + 1] += first_change_[lock];
  }
  changes_.resize(first_change_.back());
  free_before_.resize(changes_.size());
  std::vector<uint32_t> next(first_change_.begin(), first_change_.end() - 1);
  each([&](uint32_t i, LocationId id) {
    Lock& lock = locks_[id];
    free_before_[next[id]] = lock.owner == kNobody && lock.readers.empty();
    changes_[next[id]++] = i;
    change(lock, trace_.events[i]);
    spend(1);
  });
  locks_.assign(locks_.size(), Lock());
  known_.resize(locks_.size());
}

std::span<const HardEdge> Validator::edges_to(uint32_t event) const {
  const auto first = std::partition_point(edges_.begin(), edges_.end(),
                                          [&](const HardEdge& edge) { return edge.to < event; });
  auto last = first;
  while (last != edges_.end() && last->to == event) {
    ++last;
  }
  return {first, last};
}

void Validator::find_plain() {
  std::vector<uint32_t> user(cells_.size(), kNobody);
  several_.assign(cells_.size(), false);
  for (uint32_t i = 0; i < size(); ++i) {
    const CellSpan span = cells_.of_event(i);
    spend(1 + span.count);
    for (uint32_t cell = span.first; cell < span.first + span.count; ++cell) {
      several_[cell] = several_[cell] || (user[cell] != kNobody && user[cell] != thread_of(i));
      user[cell] = thread_of(i);
    }
  }
  size_t edge = 0;
  plain_.reserve(size());
  for (uint32_t i = 0; i < size(); ++i) {
    const CellSpan span = cells_.of_event(i);
    for (; edge < edges_.size() && edges_[edge].to < i; ++edge) {
    }
    bool plain = !is(trace_.events[i], kinds::kLocks) && semaphores_.of_event(i) == kNone &&
                 (edge == edges_.size() || edges_[edge].to != i) && if_both_.count(i) == 0;
    for (uint32_t cell = span.first; plain && cell < span.first + span.count; ++cell) {
      plain = !several_[cell];
    }
    plain_.push_back(plain);
  }
}

void Validator::reset() {
  for (const ThreadId thread : used_threads_) {
    done_[thread] = kNobody;
    ends_[thread] = kNobody;
    buffer_[thread].clear();
  }
  forwarded_.clear();
  used_threads_.clear();
  for (const uint32_t cell : touched_) {
    last_[cell] = kInitial;
  }
  touched_.clear();
  for (const LocationId lock : used_locks_) {
    locks_[lock] = Lock();
    known_[lock] = false;
  }
  used_locks_.clear();
  semaphore_counts_.clear();
}

// After what comes before the tail.
int64_t& Validator::count_now(uint32_t semaphore) {
  const auto [count, is_new] = semaphore_counts_.try_emplace(semaphore, 0);
  if (is_new) {
    const Semaphore& mine = semaphores_.all()[semaphore];
    *count = mine.initial;
    for (const Semaphore::Step& step : mine.steps) {
      if (step.event < start_) {
        *count += step.takes ? -1 : 1;
      }
    }
    spend(mine.steps.size());
  }
  return *count;
}

// From where it was free for the last time before the tail.
Validator::Lock& Validator::lock_now(LocationId id) {
  Lock& lock = locks_[id];
  if (known_[id]) {
    return lock;
  }
  known_[id] = true;
  used_locks_.push_back(id);
  const auto first = changes_.begin() + first_change_[id];
  const auto end = std::lower_bound(first, changes_.begin() + first_change_[id + 1], start_);
  auto at = end;
  while (at != first) {
    --at;
    spend(1);
    if (free_before_[static_cast<size_t>(at - changes_.begin())]) {
      break;
    }
  }
  for (; at != end; ++at) {
    change(lock, trace_.events[*at]);
  }
  return lock;
}

void Validator::change(Lock& lock, const Event& event) {
  if (is(event, kinds::kAcquisitions)) {
    acquire(lock, event);
  } else {
    release(lock, event);
  }
}

bool Validator::acquire(Lock& lock, const Event& event) {
  if (lock.owner != kNobody && lock.owner != event.thread) {
    return false;
  }
  const auto mine = std::find_if(lock.readers.begin(), lock.readers.end(),
                                 [&](const auto& entry) { return entry.first == event.thread; });
  // Who holds it already, in whatever mode, acquires it once more.
  const bool shared = event.kind() == EventKind::kAcquireShared;
  if (lock.owner == event.thread) {
    ++(shared ? lock.reads : lock.depth);
    return true;
  }
  if (shared) {
    if (mine != lock.readers.end()) {
      ++mine->second;
    } else {
      lock.readers.emplace_back(event.thread, 1);
    }
    return true;
  }
  if (lock.readers.size() > (mine != lock.readers.end() ? 1U : 0U)) {
    return false;
  }
  lock.owner = event.thread;
  lock.depth = 1;
  lock.reads = mine != lock.readers.end() ? mine->second : 0;
  lock.readers.clear();
  return true;
}

void Validator::release(Lock& lock, const Event& event) {
  if (lock.owner == event.thread) {
    const bool shared = event.kind() == EventKind::kReleaseShared;
    --(shared && lock.reads > 0 ? lock.reads : lock.depth);
    if (lock.depth == 0) {
      lock.owner = kNobody;
      if (lock.reads > 0) {
        lock.readers.emplace_back(event.thread, lock.reads);
      }
      lock.reads = 0;
    }
    return;
  }
  const auto mine = std::find_if(lock.readers.begin(), lock.readers.end(),
                                 [&](const auto& entry) { return entry.first == event.thread; });
  if (mine != lock.readers.end() && --mine->second == 0) {
    lock.readers.erase(mine);
  }
}

// Before the tail, or in what has been replayed of it.
bool Validator::executed(uint32_t event) const {
  if (buffers_ && !committed(event)) {
    return false;
  }
  const uint32_t done = done_[thread_of(event)];
  return event < start_ || (done != kNobody && event <= done);
}

bool Validator::hard_edges_kept(uint32_t event, uint32_t* missing) const {
  for (const HardEdge& edge : edges_to(event)) {
    if (!edge.if_both && !executed(edge.from)) {
      *missing = edge.from;
      return false;
    }
  }
  // What may have happened without the event comes too late after it.
  const auto later = if_both_.equal_range(event);
  return std::none_of(later.first, later.second, [&](const auto& edge) {
    *missing = edge.second;
    return executed(edge.second);
  });
}

bool Validator::next_in_thread(uint32_t event) const {
  if (event >= size() || event < start_) {
    return false;
  }
  const uint32_t previous = previous_[event];
  const uint32_t done = done_[thread_of(event)];
  return done != kNobody ? previous == done : previous == kNobody || previous < start_;
}

std::string Validator::step(uint32_t i, bool bound) {
  const Event& event = trace_.events[i];
  if (uint32_t from = 0; !hard_edges_kept(i, &from)) {
    return fmt::format("event {} comes before event {}, which starts, ends or hands over", i, from);
  }
  if (is(event, kinds::kAcquisitions)) {
    if (!acquire(lock_now(cells_.lock_of(i)), event)) {
      return fmt::format("event {} acquires a lock that another thread holds", i);
    }
  } else if (is(event, kinds::kLocks)) {
    release(lock_now(cells_.lock_of(i)), event);
  }
  if (const uint32_t semaphore = semaphores_.of_event(i); semaphore != kNone) {
    int64_t& count = count_now(semaphore);
    if (event.kind() == EventKind::kTake && count-- == 0) {
      return fmt::format("event {} takes a semaphore whose count is 0", i);
    }
    count += event.kind() == EventKind::kPost ? 1 : 0;
  }
  const CellSpan span = cells_.of_event(i);
  if (may_read(event) && bound) {
    for (uint32_t at = 0; at < span.count; ++at) {
      if (!several_[span.first + at]) {
        continue;  // its thread's order decides; its writes may not have been replayed
      }
      const uint32_t seen = last_[span.first + at];
      const uint32_t source = this->source(i, span.first + at);
      // The last write before the tail is the one that the read saw, if that one is there at all.
      if (seen != source && (seen != kInitial || source >= start_)) {
        return fmt::format("event {} reads another write than it did", i);
      }
    }
  }
  if (may_write(event)) {
    for (uint32_t at = 0; at < span.count; ++at) {
      if (last_[span.first + at] == kInitial) {
        touched_.push_back(span.first + at);
      }
      last_[span.first + at] = i;
    }
  }
  return {};
}

std::string Validator::replay(std::span<const uint32_t> tail, uint32_t start, size_t free_tail) {
  reset();
  start_ = start;
  for (uint32_t i = start; i < carried_; ++i) {
    if (i - start >= tail.size() || tail[i - start] != i) {
      return fmt::format("event {} has happened before the window, and is not at its place", i);
    }
  }
  for (const uint32_t entry : tail) {
    const uint32_t i = event_of(entry);
    if (!entry_exists(entry)) {
      return fmt::format("there is no event {}", i);
    }
    uint32_t& end = ends_[thread_of(i)];
    if (end == kNobody) {
      used_threads_.push_back(thread_of(i));
    }
    end = entry == i ? i : end;
  }
  for (const ThreadId thread : used_threads_) {
    const auto& branches = branches_of_[thread];
    const auto after = std::upper_bound(branches.begin(), branches.end(), ends_[thread]);
    last_branch_[thread] = after == branches.begin() ? 0 : *(after - 1);
  }
  spend(tail.size());
  for (size_t at = 0; at < tail.size(); ++at) {
    const uint32_t i = event_of(tail[at]);
    const ThreadId mine = thread_of(i);
    if (tail[at] == i && !next_in_thread(i)) {
      return fmt::format("event {} comes out of its thread's order", i);
    }
    if (buffers_ || !plain_[i]) {
      const bool bound = at + free_tail < tail.size() &&
                         (branches_ == Branches::kAfterEveryRead ||
                          trace_.events[i].kind() == EventKind::kReadModifyWrite ||
                          (branches_ == Branches::kAsRecorded && last_branch_[mine] > i));
      std::string wrong = buffers_ ? buffered_step(tail[at], bound) : step(i, bound);
      if (!wrong.empty()) {
        return wrong;
      }
      spend(1);
    }
    done_[mine] = tail[at] == i ? i : done_[mine];
  }
  return {};
}

std::string Validator::check_order(std::span<const uint32_t> tail, uint32_t start) {
  return replay(tail, start, 0);
}

bool Validator::conflict(uint32_t a, uint32_t b) const {
  const CellSpan x = cells_.of_event(a);
  const CellSpan y = cells_.of_event(b);
  const Event& first = trace_.events[a];
  const Event& second = trace_.events[b];
  return (may_read(first) || may_write(first)) && (may_read(second) || may_write(second)) &&
         (may_write(first) || may_write(second)) && x.first < y.first + y.count &&
         y.first < x.first + x.count;
}

std::string Validator::check_race(std::span<const uint32_t> tail, uint32_t start) {
  if (tail.size() < 2) {
    return "a race is between two events";
  }
  if (std::string wrong = replay(tail, start, 2); !wrong.empty()) {
    return wrong;
  }
  const uint32_t a = tail[tail.size() - 2];
  const uint32_t b = tail[tail.size() - 1];
  if (a != event_of(a) || b != event_of(b)) {
    return "a race is between two accesses when they are issued";
  }
  if (!conflict(a, b) || thread_of(a) == thread_of(b)) {
    return "the last two events do not conflict";
  }
  // Either may come first: the second one is not held up by the first.
  for (const HardEdge& edge : edges_to(b)) {
    if (edge.from == a) {
      return "the last event waits for the one before it";
    }
  }
  return {};
}

std::string Validator::find_places(std::span<const uint32_t> tail, uint32_t start,
                                   std::span<const uint32_t> events, std::span<size_t> at) const {
  for (size_t i = 0; i < events.size(); ++i) {
    const bool store =
        buffers_ && events[i] < size() && is(trace_.events[events[i]], kinds::kStores);
    const auto found = std::find(tail.begin(), tail.end(), events[i] | (store ? kCommit : 0));
    at[i] = events[i] < start ? events[i] : start + static_cast<size_t>(found - tail.begin());
    if (events[i] >= size() || (events[i] >= start && found == tail.end())) {
      return fmt::format("the reordering does not have event {}", events[i]);
    }
  }
  return {};
}

std::string Validator::check_atomicity(std::span<const uint32_t> tail, uint32_t start,
                                       const std::array<uint32_t, 4>& detour,
                                       const UnitTable& units) {
  std::array<size_t, 4> at{};
  if (std::string wrong = find_places(tail, start, detour, at); !wrong.empty()) {
    return wrong;
  }
  const auto [first, to, from, last] = detour;
  if (at[3] + 1 != start + tail.size() || at[0] > at[1] || at[2] > at[3]) {
    return "the events are not in the order that is claimed";
  }
  if (first == last || thread_of(first) == thread_of(to) || thread_of(to) != thread_of(from) ||
      units.of_event(first) != units.of_event(last) || units.of_event(first) == UnitTable::kNone) {
    return "the events are not of one unit and another thread";
  }
  if (to > from && units.of_event(to) != units.of_event(from)) {
    return "what leads back comes before what led away";
  }
  if (!conflict(first, to) || !conflict(from, last)) {
    return "the events do not conflict";
  }
  const uint32_t before = tail.size() > 1 ? event_of(tail[tail.size() - 2]) : kNobody;
  const bool two_threads = before < size() && thread_of(before) != thread_of(event_of(tail.back()));
  if (std::string wrong = replay(tail, start, two_threads ? 2 : 1); !wrong.empty()) {
    return wrong;
  }
  const bool forwarded = std::any_of(detour.begin(), detour.end(), [&](uint32_t event) {
    return std::find(forwarded_.begin(), forwarded_.end(), event) != forwarded_.end();
  });
  return forwarded ? "a load saw a store that had not been committed" : "";
}

// In a mode that keeps the request waiting.
bool Validator::holds(ThreadId thread, const Event& request, LocationId id) {
  const Lock& lock = lock_now(id);
  return lock.owner == thread ||
         (request.kind() == EventKind::kAcquire &&
          std::any_of(lock.readers.begin(), lock.readers.end(),
                      [&](const auto& entry) { return entry.first == thread; }));
}

std::string Validator::check_deadlock(std::span<const uint32_t> tail,
                                      std::span<const uint32_t> requests, uint32_t start) {
  if (std::string wrong = replay(tail, start, 0); !wrong.empty()) {
    return wrong;
  }
  commit_releases();
  if (requests.size() < 2) {
    return "a deadlock is between two threads or more";
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    const uint32_t request = requests[i];
    const uint32_t other = requests[(i + 1) % requests.size()];
    uint32_t missing = 0;
    if (!next_in_thread(request) || !next_in_thread(other) || !hard_edges_kept(request, &missing)) {
      return fmt::format("event {} is not next in its thread", request);
    }
    const Event& event = trace_.events[request];
    if (!is(event, kinds::kAcquisitions) || thread_of(request) == thread_of(other) ||
        !holds(thread_of(other), event, cells_.lock_of(request))) {
      return fmt::format("event {} does not wait for the thread of event {}", request, other);
    }
  }
  return {};
}

}  // namespace tsomon::predict
