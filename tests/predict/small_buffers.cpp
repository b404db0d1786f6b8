#include "tests/predict/small_buffers.h"

#include <algorithm>
#include <functional>
#include <map>

#include "offline/predict/witness.h"

namespace tsomon::testing {
namespace {

using predict::Branches;

constexpr uint64_t kBytes = 32;

bool loads(const Event& e) {
  return e.kind() == EventKind::kRead || e.kind() == EventKind::kReadModifyWrite;
}
bool stores(const Event& e) {
  return e.kind() == EventKind::kWrite || e.kind() == EventKind::kReadModifyWrite;
}
bool accesses(const Event& e) { return loads(e) || stores(e); }
uint64_t end_of(const Event& e) { return e.address + std::max<uint64_t>(1, e.size); }
bool overlap(const Event& a, const Event& b) {
  return a.address < end_of(b) && b.address < end_of(a);
}

}  // namespace

NaiveBuffers::NaiveBuffers(const Trace& trace, Branches branches, bool late_releases)
    : trace_(trace), branches_(branches), late_releases_(late_releases) {
  std::vector<int> last(kBytes, -1);
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    const bool names = event.kind() == EventKind::kFork || event.kind() == EventKind::kJoin;
    const size_t threads =
        std::max<size_t>(event.thread, names ? static_cast<size_t>(event.address) : 0) + 1;
    threads_.resize(std::max(threads_.size(), threads));
    stores_.resize(threads_.size());
    place_.push_back(static_cast<uint32_t>(threads_[event.thread].size()));
    threads_[event.thread].push_back(i);
    store_.push_back(static_cast<uint32_t>(stores_[event.thread].size()));
    if (event.kind() == EventKind::kWrite ||
        (late_releases && event.kind() == EventKind::kRelease)) {
      stores_[event.thread].push_back(i);
    }
    source_.emplace_back();
    if (accesses(event)) {
      source_[i].assign(last.begin() + static_cast<ptrdiff_t>(event.address),
                        last.begin() + static_cast<ptrdiff_t>(end_of(event)));
    }
    if (stores(event)) {
      std::fill(last.begin() + static_cast<ptrdiff_t>(event.address),
                last.begin() + static_cast<ptrdiff_t>(end_of(event)), static_cast<int>(i));
    }
  }
}

NaiveBuffers::State NaiveBuffers::start(uint32_t units) const {
  return {std::vector<uint32_t>(threads_.size()),
          std::vector<uint32_t>(threads_.size()),
          std::vector<int>(kBytes, -1),
          std::vector<bool>(threads_.size()),
          std::vector<bool>(trace_.events.size()),
          std::vector<uint64_t>(units)};
}

// Issued and not committed, the oldest first.
std::vector<uint32_t> NaiveBuffers::buffer(const State& state, uint32_t thread) const {
  std::vector<uint32_t> waiting;
  for (uint32_t at = state.committed[thread]; at < stores_[thread].size(); ++at) {
    if (place_[stores_[thread][at]] < state.done[thread]) {
      waiting.push_back(stores_[thread][at]);
    }
  }
  return waiting;
}

int NaiveBuffers::holds(const State& state, uint32_t thread, const Event& lock, EventKind from,
                        EventKind to, bool committed) const {
  int held = 0;
  for (uint32_t at = 0; at < state.done[thread]; ++at) {
    const uint32_t i = threads_[thread][at];
    const Event& past = trace_.events[i];
    const bool waits = committed && late_releases_ && past.kind() == EventKind::kRelease &&
                       store_[i] >= state.committed[thread];
    if (past.address == lock.address && !waits) {
      held += past.kind() == from ? 1 : 0;
      held -= past.kind() == to ? 1 : 0;
    }
  }
  return held;
}

bool NaiveBuffers::keeps_out(const State& state, uint32_t thread, const Event& event,
                             bool committed) const {
  if (!is(event, kinds::kAcquisitions) || thread == event.thread) {
    return false;
  }
  return holds(state, thread, event, EventKind::kAcquire, EventKind::kRelease, committed) > 0 ||
         (event.kind() == EventKind::kAcquire &&
          holds(state, thread, event, EventKind::kAcquireShared, EventKind::kReleaseShared,
                committed) > 0);
}

bool NaiveBuffers::started(const State& state, uint32_t i) const {
  const Event& event = trace_.events[i];
  for (uint32_t other = 0; other < i; ++other) {
    const Event& before = trace_.events[other];
    const bool done = state.done[before.thread] > place_[other];
    const bool starts = before.kind() == EventKind::kFork && before.address == event.thread;
    const bool ends = event.kind() == EventKind::kJoin && before.thread == event.address;
    if ((starts || ends) && !done) {
      return false;
    }
  }
  return true;
}

bool NaiveBuffers::enabled(const State& state, uint32_t i) const {
  const Event& event = trace_.events[i];
  if (!started(state, i)) {
    return false;
  }
  const bool drains =
      is(event, kinds::kDrains) || (!late_releases_ && event.kind() == EventKind::kRelease);
  if (drains && !buffer(state, event.thread).empty()) {
    return false;
  }
  if (event.kind() == EventKind::kJoin &&
      !buffer(state, static_cast<uint32_t>(event.address)).empty()) {
    return false;
  }
  for (uint32_t thread = 0; thread < threads_.size(); ++thread) {
    if (keeps_out(state, thread, event, true)) {
      return false;
    }
  }
  return forwarding(state, i) != -2;
}

// The store that a load is forwarded, -1: none, -2: it waits for one that covers a part of it.
int NaiveBuffers::forwarding(const State& state, uint32_t i) const {
  const Event& event = trace_.events[i];
  if (event.kind() != EventKind::kRead) {
    return -1;
  }
  const auto waiting = buffer(state, event.thread);
  for (auto at = waiting.rbegin(); at != waiting.rend(); ++at) {
    const Event& store = trace_.events[*at];
    if (stores(store) && overlap(store, event)) {
      const bool covers = store.address <= event.address && end_of(event) <= end_of(store);
      return covers ? static_cast<int>(*at) : -2;
    }
  }
  return -1;
}

bool NaiveBuffers::issue(State& state, uint32_t i, bool strays) const {
  const Event& event = trace_.events[i];
  if (state.done[event.thread] != place_[i] || !enabled(state, i)) {
    return false;
  }
  if (loads(event)) {
    const int store = forwarding(state, i);
    bool same = true;
    for (uint64_t byte = event.address; byte < end_of(event); ++byte) {
      same = same && source_[i][byte - event.address] == (store >= 0 ? store : state.memory[byte]);
    }
    if (!same && !strays) {
      if (branches_ == Branches::kAfterEveryRead || event.kind() == EventKind::kReadModifyWrite) {
        return false;
      }
      state.strayed[event.thread] = true;
    }
    state.forwarded[i] = store >= 0;
  }
  if (event.kind() == EventKind::kReadModifyWrite) {
    std::fill(state.memory.begin() + static_cast<ptrdiff_t>(event.address),
              state.memory.begin() + static_cast<ptrdiff_t>(end_of(event)), static_cast<int>(i));
  }
  ++state.done[event.thread];
  return event.kind() != EventKind::kBranch || branches_ != Branches::kAsRecorded ||
         !state.strayed[event.thread];
}

bool NaiveBuffers::commit(State& state, uint32_t thread) const {
  const auto waiting = buffer(state, thread);
  if (waiting.empty()) {
    return false;
  }
  const Event& event = trace_.events[waiting.front()];
  if (stores(event)) {
    std::fill(state.memory.begin() + static_cast<ptrdiff_t>(event.address),
              state.memory.begin() + static_cast<ptrdiff_t>(end_of(event)),
              static_cast<int>(waiting.front()));
  }
  ++state.committed[thread];
  return true;
}

template <typename Visit>
void NaiveBuffers::visit_states(const Visit& visit) const {
  std::set<State> seen;
  std::vector<State> todo = {start(0)};
  seen.insert(todo.front());
  while (!todo.empty()) {
    const State state = std::move(todo.back());
    todo.pop_back();
    std::vector<uint32_t> next;
    for (uint32_t thread = 0; thread < threads_.size(); ++thread) {
      State after = state;
      if (commit(after, thread) && seen.insert(after).second) {
        todo.push_back(std::move(after));
      }
      if (state.done[thread] < threads_[thread].size() &&
          started(state, threads_[thread][state.done[thread]])) {
        next.push_back(threads_[thread][state.done[thread]]);
      }
    }
    visit(state, next);
    for (const uint32_t i : next) {
      State after = state;
      if (issue(after, i, false) && seen.insert(after).second) {
        todo.push_back(std::move(after));
      }
    }
  }
}

std::set<std::pair<uint32_t, uint32_t>> NaiveBuffers::races() const {
  std::set<std::pair<uint32_t, uint32_t>> found;
  visit_states([&](const State&, const std::vector<uint32_t>& next) {
    for (const uint32_t a : next) {
      for (const uint32_t b : next) {
        const Event& x = trace_.events[a];
        const Event& y = trace_.events[b];
        if (a < b && accesses(x) && accesses(y) && overlap(x, y) && (stores(x) || stores(y)) &&
            !(x.atomic() && y.atomic())) {
          found.emplace(a, b);
        }
      }
    }
  });
  return found;
}

std::set<std::vector<uint32_t>> NaiveBuffers::deadlocks() const {
  std::set<std::vector<uint32_t>> found;
  visit_states([&](const State& state, const std::vector<uint32_t>& next) {
    std::vector<uint32_t> circle;
    const std::function<void()> extend = [&] {
      for (const uint32_t i : next) {
        const uint32_t thread = trace_.events[i].thread;
        if (!circle.empty() && !keeps_out(state, thread, trace_.events[circle.back()], false)) {
          continue;
        }
        if (circle.size() > 1 && i == circle.front()) {
          std::vector<uint32_t> sorted = circle;
          std::sort(sorted.begin(), sorted.end());
          found.insert(sorted);
        } else if (std::find(circle.begin(), circle.end(), i) == circle.end()) {
          circle.push_back(i);
          extend();
          circle.pop_back();
        }
      }
    };
    extend();
  });
  return found;
}

// What the event, a load or the commit of a store that has just happened, comes after.
NaiveBuffers::Earlier NaiveBuffers::order(State& state, uint32_t i, const UnitTable& units) const {
  const Event& event = trace_.events[i];
  const UnitId mine = units.of_event(i);
  Earlier earlier;
  if (mine == UnitTable::kNone) {
    return earlier;
  }
  const std::vector<uint64_t> old = state.after;
  for (uint32_t other = 0; other < trace_.events.size(); ++other) {
    const Event& before = trace_.events[other];
    const UnitId theirs = units.of_event(other);
    if (other == i || state.done[before.thread] <= place_[other] || theirs == UnitTable::kNone ||
        theirs == mine) {
      continue;
    }
    if (before.thread == event.thread) {
      const bool first = place_[other] < place_[i];
      state.after[first ? theirs : mine] |= uint64_t{1} << (first ? mine : theirs);
      continue;
    }
    const bool waits =
        before.kind() == EventKind::kWrite && store_[other] >= state.committed[before.thread];
    if (!accesses(before) || !accesses(event) || !overlap(before, event) || waits ||
        !(stores(before) || stores(event))) {
      continue;
    }
    // It has seen a store of its own that is still to come.
    bool later = false;
    if (state.forwarded[other]) {
      const auto waiting = buffer(state, before.thread);
      later = std::any_of(waiting.begin(), waiting.end(), [&](uint32_t store) {
        return place_[store] < place_[other] && overlap(trace_.events[store], before);
      });
    }
    if (later) {
      state.after[mine] |= uint64_t{1} << theirs;
      continue;
    }
    earlier.all |= uint64_t{1} << theirs;
    earlier.news |= (old[theirs] >> mine & 1) == 0 ? uint64_t{1} << theirs : 0;
    state.after[theirs] |= uint64_t{1} << mine;
  }
  return earlier;
}

// Adds the events that may happen next and would close a cycle.
void NaiveBuffers::close(const State& state, const UnitTable& units, int other_than,
                         Closing* found) const {
  const auto judge = [&](State& after, uint32_t i) {
    const Earlier earlier = order(after, i, units);
    uint64_t reached = after.after[units.of_event(i)];
    for (size_t again = 0; again < units.size(); ++again) {
      for (UnitId unit = 0; unit < units.size(); ++unit) {
        reached |= (reached >> unit & 1) != 0 ? after.after[unit] : 0;
      }
    }
    if ((reached & earlier.all) != 0) {
      found->all.insert(i);
    }
    if ((reached & earlier.news) != 0) {
      found->news.insert(i);
    }
  };
  for (uint32_t thread = 0; thread < threads_.size(); ++thread) {
    if (static_cast<int>(thread) == other_than) {
      continue;
    }
    const auto waiting = buffer(state, thread);
    if (!waiting.empty() && stores(trace_.events[waiting.front()])) {
      State after = state;
      commit(after, thread);
      judge(after, waiting.front());
    }
    if (state.done[thread] < threads_[thread].size()) {
      const uint32_t i = threads_[thread][state.done[thread]];
      State after = state;
      if (loads(trace_.events[i]) && issue(after, i, true)) {
        judge(after, i);
      }
    }
  }
}

NaiveBuffers::Closing NaiveBuffers::closing(const UnitTable& units) const {
  Closing found;
  std::set<State> seen;
  std::vector<State> todo = {start(units.size())};
  seen.insert(todo.front());
  const auto visit = [&](State&& state) {
    if (seen.insert(state).second) {
      todo.push_back(std::move(state));
    }
  };
  while (!todo.empty()) {
    const State now = std::move(todo.back());
    todo.pop_back();
    close(now, units, -1, &found);
    for (uint32_t thread = 0; thread < threads_.size(); ++thread) {
      const auto waiting = buffer(now, thread);
      State after = now;
      if (commit(after, thread)) {
        order(after, waiting.front(), units);
        visit(std::move(after));
      }
      if (now.done[thread] == threads_[thread].size()) {
        continue;
      }
      const uint32_t i = threads_[thread][now.done[thread]];
      const bool store = trace_.events[i].kind() == EventKind::kWrite;
      after = now;
      if (issue(after, i, false)) {
        if (!store) {
          order(after, i, units);
        }
        visit(std::move(after));
        continue;
      }
      // The one before the last.
      after = now;
      if (loads(trace_.events[i]) && issue(after, i, true)) {
        order(after, i, units);
        close(after, units, static_cast<int>(thread), &found);
      }
    }
  }
  return found;
}

bool NaiveBuffers::allows(const std::vector<uint32_t>& entries, size_t free_tail) const {
  State state = start(0);
  for (size_t at = 0; at < entries.size(); ++at) {
    const uint32_t i = entries[at] & ~predict::kCommit;
    const uint32_t thread = trace_.events[i].thread;
    if (entries[at] != i) {
      const auto waiting = buffer(state, thread);
      if (waiting.empty() || waiting.front() != i || !commit(state, thread)) {
        return false;
      }
    } else if (!issue(state, i, at + free_tail >= entries.size())) {
      return false;
    }
  }
  return true;
}

}  // namespace tsomon::testing
