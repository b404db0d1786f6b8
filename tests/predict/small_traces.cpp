#include "tests/predict/small_traces.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace tsomon::testing {
namespace {

using predict::Branches;

constexpr uint64_t kFirstLock = 100;
constexpr uint64_t kFirstCondition = 200;
constexpr uint64_t kFirstChannel = 300;
constexpr uint64_t kFirstSemaphore = 400;

bool reads(const Event& e) {
  return e.kind() == EventKind::kRead || e.kind() == EventKind::kReadModifyWrite;
}
bool writes(const Event& e) {
  return e.kind() == EventKind::kWrite || e.kind() == EventKind::kReadModifyWrite;
}

struct Builder {
  Trace trace;

  void add(uint32_t thread, EventKind kind, uint64_t address = 0, uint32_t size = 0) {
    Event event;
    event.size = size & 3U;
    event.thread = thread;
    event.set_kind(kind);
    event.address = address;
    event.location = Event::kNumericLocation | static_cast<uint32_t>(trace.events.size());
    const auto now = static_cast<int64_t>(trace.events.size());
    trace.add(event, now, now);
  }
  void add_count(uint64_t semaphore, uint64_t count) {
    Event event;
    event.set_kind(EventKind::kCount);
    event.address = semaphore;
    event.location = Event::kNumericLocation | static_cast<uint32_t>(trace.events.size());
    const auto now = static_cast<int64_t>(trace.events.size());
    trace.add(event, now, now, {}, count);
  }
};

}  // namespace

Trace random_small_trace(std::mt19937& random, const SmallTraceShape& shape) {
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  Builder builder;
  struct Held {
    uint64_t lock;
    bool shared;
  };
  std::vector<std::vector<Held>> held(shape.threads);
  std::vector<bool> started(shape.threads, !shape.forks);
  started[0] = true;
  std::vector<bool> in_unit(shape.threads);
  int counts[2] = {};
  if (shape.semaphores && below(2) == 0) {
    counts[1] = static_cast<int>(below(3));
    builder.add_count(kFirstSemaphore + 1, static_cast<uint64_t>(counts[1]));
  }
  while (builder.trace.events.size() < shape.events) {
    const uint32_t thread = below(shape.threads);
    if (!started[thread]) {
      builder.add(0, EventKind::kFork, thread);
      started[thread] = true;
      continue;
    }
    if (shape.units && below(in_unit[thread] ? 6 : 2) == 0) {
      builder.add(thread, in_unit[thread] ? EventKind::kUnitEnd : EventKind::kUnitBegin);
      in_unit[thread] = !in_unit[thread];
      continue;
    }
    if (shape.fences && below(10) == 0) {
      builder.add(thread, EventKind::kFence);
      continue;
    }
    if (shape.messages && below(6) == 0) {
      builder.add(thread, below(2) == 0 ? EventKind::kSend : EventKind::kReceive,
                  kFirstChannel + below(2));
      continue;
    }
    if (shape.semaphores && below(3) == 0) {
      const uint32_t which = below(2);
      const bool takes = counts[which] > 0 && below(5) < 3;
      counts[which] += takes ? -1 : 1;
      builder.add(thread, takes ? EventKind::kTake : EventKind::kPost, kFirstSemaphore + which);
      continue;
    }
    auto& mine = held[thread];
    if (shape.waits && below(5) == 0) {
      const uint64_t condition = kFirstCondition + below(2);
      if (mine.empty() || mine.back().shared || below(3) == 0) {
        builder.add(thread, EventKind::kNotify, condition);
      } else {
        const uint64_t mutex = mine.back().lock;
        builder.add(thread, EventKind::kRelease, mutex);
        builder.add(thread, EventKind::kWait, condition);
        builder.add(thread, EventKind::kAcquire, mutex);
      }
      continue;
    }
    const uint32_t what = below(10);
    const uint32_t acquisitions = shape.mostly_locks ? 4 : 3;
    const uint32_t releases = shape.mostly_locks ? 7 : 5;
    if (what < acquisitions && shape.locks > 0) {
      const uint64_t lock = kFirstLock + below(shape.locks);
      const bool shared = shape.reader_locks && below(2) == 0;
      bool free = true;
      for (uint32_t other = 0; other < shape.threads; ++other) {
        for (const Held& section : held[other]) {
          const bool upgrade = shape.upgrades && other == thread && !shared && section.shared;
          free = free &&
                 (section.lock != lock || upgrade || (other != thread && shared && section.shared));
        }
      }
      if (free) {
        if (shape.tries && below(3) == 0) {
          builder.add(thread, EventKind::kTry, lock);
        }
        builder.add(thread, shared ? EventKind::kAcquireShared : EventKind::kAcquire, lock);
        mine.push_back({lock, shared});
      }
    } else if (what < releases && !mine.empty()) {
      builder.add(thread, mine.back().shared ? EventKind::kReleaseShared : EventKind::kRelease,
                  mine.back().lock);
      mine.pop_back();
    } else if (what == releases && shape.branches) {
      builder.add(thread, EventKind::kBranch);
    } else {
      const EventKind kind = shape.exchanges && below(4) == 0 ? EventKind::kReadModifyWrite
                             : below(2) == 0                  ? EventKind::kRead
                                                              : EventKind::kWrite;
      const uint32_t variable = below(shape.variables);
      builder.add(thread, kind, variable, shape.wide ? 1 + below(2) : 0);
      if (shape.exchanges && below(2) == 0) {
        builder.trace.events.back().set_atomic();
      }
    }
  }
  if (shape.forks && shape.threads > 1 && started[1] && below(2) == 0) {
    builder.add(0, EventKind::kJoin, 1);
    builder.add(0, EventKind::kWrite, below(shape.variables));
  }
  return std::move(builder.trace);
}

predict::Windows small_windows(int round) {
  return round % 4 < 2 ? predict::Windows{} : predict::Windows{2, 2, 1U << 20};
}

std::string text(const Trace& trace) {
  static constexpr const char* kNames[] = {
      "r",    "w",      "rmw",  "fence",   "acq",     "rel",  "racq", "rrel",  "fork",
      "join", "begin",  "end",  "br",      "wait",    "call", "ret",  "alloc", "free",
      "try",  "notify", "send", "receive", "request", "post", "take", "count", "destroy"};
  std::string all;
  for (const Event& event : trace.events) {
    all += fmt::format("T{}|{}({})\n", event.thread, kNames[static_cast<int>(event.kind())],
                       event.address);
  }
  return all;
}

NaivePlayer::NaivePlayer(const Trace& trace, Branches branches)
    : trace_(trace), branches_(branches) {
  std::map<uint64_t, int> last;
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    threads_.resize(std::max<size_t>(threads_.size(), event.thread + 1));
    if (event.kind() == EventKind::kFork || event.kind() == EventKind::kJoin) {
      threads_.resize(std::max<size_t>(threads_.size(), event.address + 1));
    }
    place_.push_back(static_cast<uint32_t>(threads_[event.thread].size()));
    threads_[event.thread].push_back(i);
    source_.push_back(-1);
    if (reads(event)) {
      source_[i] = last.count(event.address) != 0 ? last[event.address] : -1;
    }
    if (writes(event)) {
      last[event.address] = static_cast<int>(i);
    }
  }
}

NaivePlayer::State NaivePlayer::start() const {
  return {std::vector<uint32_t>(threads_.size(), 0), std::vector<int>(kFirstLock, -1),
          std::vector<bool>(threads_.size())};
}

NaivePlayer::Holds NaivePlayer::holds(const State& state, uint32_t thread, uint64_t lock) const {
  Holds holds;
  for (uint32_t at = 0; at < state.done[thread]; ++at) {
    const Event& past = trace_.events[threads_[thread][at]];
    if (past.address == lock) {
      holds.exclusive += past.kind() == EventKind::kAcquire ? 1 : 0;
      holds.exclusive -= past.kind() == EventKind::kRelease ? 1 : 0;
      holds.shared += past.kind() == EventKind::kAcquireShared ? 1 : 0;
      holds.shared -= past.kind() == EventKind::kReleaseShared ? 1 : 0;
    }
  }
  return holds;
}

// Another thread holds what the event asks for.
bool NaivePlayer::keeps_out(const State& state, uint32_t thread, const Event& event) const {
  const bool asks =
      event.kind() == EventKind::kAcquire || event.kind() == EventKind::kAcquireShared;
  if (!asks || thread == event.thread) {
    return false;
  }
  const Holds theirs = holds(state, thread, event.address);
  return theirs.exclusive > 0 || (theirs.shared > 0 && event.kind() == EventKind::kAcquire);
}

// Forks and ends of threads allow it.
bool NaivePlayer::started(const State& state, uint32_t i) const {
  const Event& event = trace_.events[i];
  for (uint32_t other = 0; other < i; ++other) {
    const Event& before = trace_.events[other];
    const bool done = state.done[before.thread] > place_[other];
    const bool counts = before.kind() == EventKind::kCount && before.address == event.address &&
                        (event.kind() == EventKind::kPost || event.kind() == EventKind::kTake);
    const bool starts = before.kind() == EventKind::kFork && before.address == event.thread;
    const bool ends = event.kind() == EventKind::kJoin && before.thread == event.address;
    const bool arrives = before.kind() == EventKind::kSend && event.kind() == EventKind::kReceive &&
                         before.address == event.address;
    if ((starts || ends || arrives || counts) && !done) {
      return false;
    }
  }
  return true;
}

// Of what has been posted something is left.
bool NaivePlayer::may_take(const State& state, const Event& event) const {
  int64_t count = 0;
  for (uint32_t i = 0; i < trace_.events.size(); ++i) {
    const Event& past = trace_.events[i];
    if (past.address != event.address || state.done[past.thread] <= place_[i]) {
      continue;
    }
    count += past.kind() == EventKind::kPost ? 1 : past.kind() == EventKind::kTake ? -1 : 0;
    if (past.kind() == EventKind::kCount) {
      count += static_cast<int64_t>(trace_.write_value(past).value_or(0));
    }
  }
  return count > 0;
}

// Threads, semaphores and locks allow it; reads are another matter.
bool NaivePlayer::enabled(const State& state, uint32_t i) const {
  const Event& event = trace_.events[i];
  if (!started(state, i) || (event.kind() == EventKind::kTake && !may_take(state, event))) {
    return false;
  }
  for (uint32_t thread = 0; thread < threads_.size(); ++thread) {
    if (keeps_out(state, thread, event)) {
      return false;
    }
  }
  return true;
}

bool NaivePlayer::step(State& state, uint32_t i) const {
  const Event& event = trace_.events[i];
  if (state.done[event.thread] != place_[i] || !enabled(state, i)) {
    return false;
  }
  ++state.done[event.thread];
  if (reads(event) && state.last[event.address] != source_[i]) {
    if (branches_ == Branches::kAfterEveryRead || event.kind() == EventKind::kReadModifyWrite) {
      return false;
    }
    state.strayed[event.thread] = true;
  }
  if (writes(event)) {
    state.last[event.address] = static_cast<int>(i);
  }
  return event.kind() != EventKind::kBranch || branches_ != Branches::kAsRecorded ||
         !state.strayed[event.thread];
}

// Calls visit(state, events that are next in their threads) for all that can be reached.
template <typename Visit>
void NaivePlayer::visit_states(const Visit& visit) const {
  std::set<State> seen;
  std::vector<State> todo = {start()};
  seen.insert(todo.front());
  while (!todo.empty()) {
    const State state = std::move(todo.back());
    todo.pop_back();
    std::vector<uint32_t> next;
    for (uint32_t thread = 0; thread < threads_.size(); ++thread) {
      if (state.done[thread] < threads_[thread].size()) {
        const uint32_t i = threads_[thread][state.done[thread]];
        if (started(state, i)) {
          next.push_back(i);
        }
      }
    }
    visit(state, next);
    for (const uint32_t i : next) {
      State after = state;
      if (step(after, i) && seen.insert(after).second) {
        todo.push_back(std::move(after));
      }
    }
  }
}

std::set<std::pair<uint32_t, uint32_t>> NaivePlayer::races() {
  std::set<std::pair<uint32_t, uint32_t>> found;
  visit_states([&](const State&, const std::vector<uint32_t>& next) {
    for (const uint32_t a : next) {
      for (const uint32_t b : next) {
        const Event& x = trace_.events[a];
        const Event& y = trace_.events[b];
        if (a < b && (reads(x) || writes(x)) && (reads(y) || writes(y)) && x.address == y.address &&
            (writes(x) || writes(y)) && !(x.atomic() && y.atomic())) {
          found.emplace(a, b);
        }
      }
    }
  });
  return found;
}

std::set<std::vector<uint32_t>> NaivePlayer::deadlocks() {
  std::set<std::vector<uint32_t>> found;
  visit_states([&](const State& state, const std::vector<uint32_t>& next) {
    // Every choice of threads, every order of them.
    std::vector<uint32_t> circle;
    const std::function<void()> extend = [&] {
      for (const uint32_t i : next) {
        const Event& event = trace_.events[i];
        const auto waits_for = [&](uint32_t asking) {
          const uint32_t place = place_[asking];
          const auto& theirs = threads_[trace_.events[asking].thread];
          const bool tried =
              place > 0 && trace_.events[theirs[place - 1]].kind() == EventKind::kTry;
          return !tried && keeps_out(state, event.thread, trace_.events[asking]);
        };
        if (!circle.empty() && !waits_for(circle.back())) {
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

std::set<uint32_t> NaivePlayer::lost() {
  std::set<uint32_t> found;
  for (uint32_t wait = 0; wait < trace_.events.size(); ++wait) {
    if (trace_.events[wait].kind() != EventKind::kWait) {
      continue;
    }
    const uint32_t thread = trace_.events[wait].thread;
    const auto of_wait = [&](uint32_t i) {
      const Event& event = trace_.events[i];
      return event.kind() == EventKind::kNotify && event.thread != thread &&
             event.address == trace_.events[wait].address;
    };
    const auto done = [&](const State& state, uint32_t i) {
      return state.done[trace_.events[i].thread] > place_[i];
    };
    std::set<uint32_t> can_be;
    visit_states([&](const State& state, const std::vector<uint32_t>& next) {
      for (const uint32_t i : next) {
        if (of_wait(i) && state.done[thread] <= place_[wait]) {
          can_be.insert(i);
        }
      }
    });
    visit_states([&](const State& state, const std::vector<uint32_t>&) {
      if (!can_be.empty() && state.done[thread] + 1 == place_[wait] &&
          std::all_of(can_be.begin(), can_be.end(), [&](uint32_t i) { return done(state, i); })) {
        found.insert(wait);
      }
    });
  }
  return found;
}

// And which units come before which: `after[u]` has a bit for each unit that u leads to, at once.
struct NaivePlayer::UnitState {
  State state;
  std::vector<uint64_t> after;
  bool operator<(const UnitState& other) const {
    return std::tie(state, after) < std::tie(other.state, other.after);
  }
};

// The units that the event comes after for a conflict, and whether its unit did not before. Whether
// the event may happen is not asked.
NaivePlayer::Earlier NaivePlayer::play(UnitState& state, uint32_t i, const UnitTable& units) const {
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
    const bool conflict = (reads(before) || writes(before)) && (reads(event) || writes(event)) &&
                          (writes(before) || writes(event)) && before.address == event.address &&
                          before.thread != event.thread;
    if (state.state.done[before.thread] > place_[other] && theirs != UnitTable::kNone &&
        theirs != mine && (before.thread == event.thread || conflict)) {
      const uint64_t there = conflict ? uint64_t{1} << theirs : 0;
      earlier.all |= there;
      earlier.news |= (old[theirs] >> mine & 1) == 0 ? there : 0;
      state.after[theirs] |= uint64_t{1} << mine;
    }
  }
  return earlier;
}

void NaivePlayer::close_all(const UnitState& state, const UnitTable& units, int other_than,
                            Closing* found) const {
  for (uint32_t thread = 0; thread < threads_.size(); ++thread) {
    if (static_cast<int>(thread) == other_than ||
        state.state.done[thread] == threads_[thread].size()) {
      continue;
    }
    const uint32_t i = threads_[thread][state.state.done[thread]];
    const Event& event = trace_.events[i];
    if ((!reads(event) && !writes(event)) || !enabled(state.state, i)) {
      continue;
    }
    UnitState after = state;
    const Earlier earlier = play(after, i, units);
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
  }
}

NaivePlayer::Closing NaivePlayer::closing(const UnitTable& units) {
  Closing found;
  std::set<UnitState> seen;
  std::vector<UnitState> todo = {{start(), std::vector<uint64_t>(units.size())}};
  seen.insert(todo.front());
  while (!todo.empty()) {
    const UnitState now = std::move(todo.back());
    todo.pop_back();
    close_all(now, units, -1, &found);
    for (uint32_t thread = 0; thread < threads_.size(); ++thread) {
      if (now.state.done[thread] == threads_[thread].size()) {
        continue;
      }
      const uint32_t i = threads_[thread][now.state.done[thread]];
      if (!enabled(now.state, i)) {
        continue;
      }
      UnitState after = now;
      play(after, i, units);
      UnitState strayed = after;
      if (step(after.state, i)) {
        if (seen.insert(after).second) {
          todo.push_back(std::move(after));
        }
      } else if (reads(trace_.events[i])) {
        // The one before the last.
        ++strayed.state.done[thread];
        close_all(strayed, units, static_cast<int>(thread), &found);
      }
    }
  }
  return found;
}

bool NaivePlayer::allows(const std::vector<uint32_t>& order) const {
  State state = start();
  return std::all_of(order.begin(), order.end(), [&](uint32_t i) { return step(state, i); });
}

}  // namespace tsomon::testing
