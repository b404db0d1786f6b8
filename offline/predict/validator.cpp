#include "offline/predict/validator.h"

#include <algorithm>

#include <fmt/format.h>

#include "tso/support/work.h"

namespace tsomon::predict {
namespace {

bool may_read(const Event& event) {
  return event.kind() == EventKind::kRead || event.kind() == EventKind::kReadModifyWrite;
}
bool may_write(const Event& event) {
  return event.kind() == EventKind::kWrite || event.kind() == EventKind::kReadModifyWrite;
}

}  // namespace

Validator::Validator(const Trace& trace, const CellTable& cells, const std::vector<HardEdge>& edges,
                     Branches branches)
    : trace_(trace), cells_(cells), edges_(edges), branches_(branches) {
  const auto n = static_cast<uint32_t>(trace.events.size());
  steps_.resize(n);
  first_source_.assign(n, 0);
  first_edge_.resize(n + 1);
  last_.assign(cells.size(), kInitial);
  locks_.resize(cells.locations());
  std::vector<std::vector<uint32_t>> waiting;  // reads of each thread since its last branch
  uint32_t edge = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const Event& event = trace.events[i];
    spend(1);
    while (edge < edges.size() && edges[edge].to < i) {
      ++edge;
    }
    first_edge_[i] = edge;
    if (event.thread >= done_.size()) {
      done_.resize(event.thread + 1, 0);
      waiting.resize(event.thread + 1);
    }
    steps_[i].thread = event.thread;
    steps_[i].position = done_[event.thread]++;
    const CellSpan span = cells.of_event(i);
    if (may_read(event)) {
      first_source_[i] = static_cast<uint32_t>(sources_.size());
      sources_.insert(sources_.end(), last_.begin() + span.first,
                      last_.begin() + span.first + span.count);
      waiting[event.thread].push_back(i);
    }
    if (may_write(event)) {
      std::fill_n(last_.begin() + span.first, span.count, i);
    }
    if (event.kind() == EventKind::kBranch) {
      for (const uint32_t read : waiting[event.thread]) {
        steps_[read].next_branch = steps_[i].position;
      }
      waiting[event.thread].clear();
    }
  }
  first_edge_[n] = static_cast<uint32_t>(edges.size());
  std::fill(last_.begin(), last_.end(), kInitial);
  ends_.resize(done_.size());
  find_plain();
}

void Validator::find_plain() {
  std::vector<uint32_t> user(cells_.size(), kNobody);
  std::vector<bool> several(cells_.size());
  for (uint32_t i = 0; i < steps_.size(); ++i) {
    const CellSpan span = cells_.of_event(i);
    spend(1 + span.count);
    for (uint32_t cell = span.first; cell < span.first + span.count; ++cell) {
      several[cell] = several[cell] || (user[cell] != kNobody && user[cell] != steps_[i].thread);
      user[cell] = steps_[i].thread;
    }
  }
  for (uint32_t i = 0; i < steps_.size(); ++i) {
    const CellSpan span = cells_.of_event(i);
    bool plain = !is(trace_.events[i], kinds::kLocks) && first_edge_[i] == first_edge_[i + 1];
    for (uint32_t cell = span.first; plain && cell < span.first + span.count; ++cell) {
      plain = !several[cell];
    }
    steps_[i].plain = plain;
  }
}

void Validator::reset() {
  std::fill(done_.begin(), done_.end(), 0);
  std::fill(ends_.begin(), ends_.end(), 0);
  for (const uint32_t cell : touched_) {
    last_[cell] = kInitial;
  }
  touched_.clear();
  for (const LocationId lock : used_locks_) {
    locks_[lock] = Lock();
  }
  used_locks_.clear();
}

bool Validator::acquire(const Event& event, LocationId id) {
  Lock& lock = locks_[id];
  used_locks_.push_back(id);
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

void Validator::release(const Event& event, LocationId id) {
  Lock& lock = locks_[id];
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

std::string Validator::step(uint32_t i, bool bound) {
  const Event& event = trace_.events[i];
  for (uint32_t edge = first_edge_[i]; edge < first_edge_[i + 1]; ++edge) {
    const uint32_t from = edges_[edge].from;
    if (done_[steps_[from].thread] <= steps_[from].position) {
      return fmt::format("event {} comes before event {}, which starts, ends or hands over", i,
                         from);
    }
  }
  if (is(event, kinds::kAcquisitions)) {
    if (!acquire(event, cells_.lock_of(i))) {
      return fmt::format("event {} acquires a lock that another thread holds", i);
    }
  } else if (is(event, kinds::kLocks)) {
    release(event, cells_.lock_of(i));
  }
  const CellSpan span = cells_.of_event(i);
  if (may_read(event) && bound) {
    for (uint32_t at = 0; at < span.count; ++at) {
      if (last_[span.first + at] != sources(i)[at]) {
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

std::string Validator::replay(std::span<const uint32_t> witness, size_t free_tail) {
  reset();
  for (const uint32_t i : witness) {
    if (i >= steps_.size()) {
      return fmt::format("there is no event {}", i);
    }
    ++ends_[steps_[i].thread];
  }
  spend(witness.size());
  for (size_t at = 0; at < witness.size(); ++at) {
    const uint32_t i = witness[at];
    const Step& mine = steps_[i];
    if (mine.position != done_[mine.thread]) {
      return fmt::format("event {} comes out of its thread's order", i);
    }
    if (!mine.plain) {
      const bool bound =
          at + free_tail < witness.size() &&
          (branches_ == Branches::kAfterEveryRead ||
           trace_.events[i].kind() == EventKind::kReadModifyWrite ||
           (branches_ == Branches::kAsRecorded && mine.next_branch < ends_[mine.thread]));
      if (std::string wrong = step(i, bound); !wrong.empty()) {
        return wrong;
      }
      spend(1);
    }
    ++done_[mine.thread];
  }
  return {};
}

std::string Validator::check_order(std::span<const uint32_t> witness) { return replay(witness, 0); }

bool Validator::conflict(uint32_t a, uint32_t b) const {
  const CellSpan x = cells_.of_event(a);
  const CellSpan y = cells_.of_event(b);
  const Event& first = trace_.events[a];
  const Event& second = trace_.events[b];
  return (may_read(first) || may_write(first)) && (may_read(second) || may_write(second)) &&
         (may_write(first) || may_write(second)) && x.first < y.first + y.count &&
         y.first < x.first + x.count;
}

std::string Validator::check_race(std::span<const uint32_t> witness) {
  if (witness.size() < 2) {
    return "a race is between two events";
  }
  if (std::string wrong = replay(witness, 2); !wrong.empty()) {
    return wrong;
  }
  const uint32_t a = witness[witness.size() - 2];
  const uint32_t b = witness[witness.size() - 1];
  if (!conflict(a, b) || steps_[a].thread == steps_[b].thread) {
    return "the last two events do not conflict";
  }
  // Either may come first: the second one is not held up by the first.
  for (uint32_t edge = first_edge_[b]; edge < first_edge_[b + 1]; ++edge) {
    if (edges_[edge].from == a) {
      return "the last event waits for the one before it";
    }
  }
  return {};
}

std::string Validator::check_atomicity(std::span<const uint32_t> witness,
                                       const std::array<uint32_t, 4>& detour,
                                       const UnitTable& units) {
  std::array<size_t, 4> at{};
  for (size_t i = 0; i < detour.size(); ++i) {
    at[i] =
        static_cast<size_t>(std::find(witness.begin(), witness.end(), detour[i]) - witness.begin());
    if (at[i] == witness.size() || detour[i] >= steps_.size()) {
      return fmt::format("the reordering does not have event {}", detour[i]);
    }
  }
  const auto [first, to, from, last] = detour;
  if (at[3] + 1 != witness.size() || at[0] > at[1] || at[2] > at[3]) {
    return "the events are not in the order that is claimed";
  }
  if (first == last || steps_[first].thread == steps_[to].thread ||
      steps_[to].thread != steps_[from].thread || units.of_event(first) != units.of_event(last) ||
      units.of_event(first) == UnitTable::kNone) {
    return "the events are not of one unit and another thread";
  }
  if (steps_[to].position > steps_[from].position && units.of_event(to) != units.of_event(from)) {
    return "what leads back comes before what led away";
  }
  if (!conflict(first, to) || !conflict(from, last)) {
    return "the events do not conflict";
  }
  const bool two_threads =
      steps_[witness[witness.size() - 2]].thread != steps_[witness.back()].thread;
  return replay(witness, two_threads ? 2 : 1);
}

bool Validator::next_in_thread(uint32_t event) const {
  if (event >= steps_.size() || done_[steps_[event].thread] != steps_[event].position) {
    return false;
  }
  for (uint32_t edge = first_edge_[event]; edge < first_edge_[event + 1]; ++edge) {
    const uint32_t from = edges_[edge].from;
    if (done_[steps_[from].thread] <= steps_[from].position) {
      return false;
    }
  }
  return true;
}

// In a mode that keeps the request waiting.
bool Validator::holds(ThreadId thread, const Event& request, LocationId id) const {
  const Lock& lock = locks_[id];
  return lock.owner == thread ||
         (request.kind() == EventKind::kAcquire &&
          std::any_of(lock.readers.begin(), lock.readers.end(),
                      [&](const auto& entry) { return entry.first == thread; }));
}

std::string Validator::check_deadlock(std::span<const uint32_t> witness,
                                      std::span<const uint32_t> requests) {
  if (std::string wrong = replay(witness, 0); !wrong.empty()) {
    return wrong;
  }
  if (requests.size() < 2) {
    return "a deadlock is between two threads or more";
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    const uint32_t request = requests[i];
    const uint32_t other = requests[(i + 1) % requests.size()];
    if (!next_in_thread(request) || !next_in_thread(other)) {
      return fmt::format("event {} is not next in its thread", request);
    }
    const Event& event = trace_.events[request];
    if (!is(event, kinds::kAcquisitions) || steps_[request].thread == steps_[other].thread ||
        !holds(steps_[other].thread, event, cells_.lock_of(request))) {
      return fmt::format("event {} does not wait for the thread of event {}", request, other);
    }
  }
  return {};
}

}  // namespace tsomon::predict
