// Uses after free and after destruction: known traces, and random ones against everything that the
// rules allow, tried out.
#include "offline/predict/lifetimes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "decoders/std/reader.h"
#include "offline/predict/block_names.h"
#include "offline/predict/races.h"
#include "tests/predict/small_traces.h"
#include "tests/rounds.h"
#include "tso/model/channels.h"

using namespace tsomon;
using namespace tsomon::testing;
using predict::BlockNames;

namespace {

using Pairs = std::set<std::pair<uint32_t, uint32_t>>;

constexpr uint64_t kFirstBlock = 0x10000;
constexpr uint32_t kBlockBytes = 2;
constexpr uint64_t kFirstLock = 0x30000;
constexpr uint64_t kVariable = 0x40000;

Trace named(Trace trace) {
  BlockNames names;
  for (Event& event : trace.events) {
    names.name(&event, trace.write_value(event));
    event.has_hi = event.has_read_value = event.has_write_value = 0;
  }
  return trace;
}

// Which blocks come and go at two places, who accesses them, a variable, locks that may end.
Trace random_trace(std::mt19937& random, uint32_t threads, uint32_t events) {
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  Trace trace;
  const auto add = [&](uint32_t thread, EventKind kind, uint64_t address, uint32_t size) {
    Event event;
    event.thread = thread;
    event.set_kind(kind);
    event.address = address;
    event.size = size & Event::kMaxSize;
    event.location = Event::kNumericLocation | static_cast<uint32_t>(trace.events.size());
    const auto now = static_cast<int64_t>(trace.events.size());
    trace.add(event, now, now);
  };
  bool live[2] = {true, true};  // from before the trace
  int owner[2] = {-1, -1};      // of the locks; -2: it has ended
  while (trace.events.size() < events) {
    const uint32_t thread = below(threads);
    const uint32_t which = below(2);
    const uint64_t block = kFirstBlock + 0x100 * which;
    const uint64_t lock = kFirstLock + 0x100 * which;
    switch (below(9)) {
      case 0:
        add(thread, live[which] ? EventKind::kFree : EventKind::kAllocate, block, kBlockBytes);
        live[which] = !live[which];
        break;
      case 1:
      case 2:
        if (owner[which] == static_cast<int>(thread)) {
          add(thread, EventKind::kRelease, lock, 0);
          owner[which] = -1;
        } else if (owner[which] == -1) {
          add(thread, EventKind::kAcquire, lock, 0);
          owner[which] = static_cast<int>(thread);
        }
        break;
      case 3:
        if (owner[which] == -1 && below(3) == 0) {
          add(thread, EventKind::kDestroy, lock, 0);
          owner[which] = -2;
        }
        break;
      case 4:
        add(thread, below(2) == 0 ? EventKind::kRead : EventKind::kWrite, kVariable, 1);
        break;
      default:
        if (live[which]) {
          add(thread, below(2) == 0 ? EventKind::kRead : EventKind::kWrite, block + below(2), 1);
        }
    }
  }
  return trace;
}

std::string shown(const Trace& trace) {
  std::string text;
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    text += fmt::format("{}: T{} kind {} at {:x}\n", i, event.thread,
                        static_cast<int>(event.kind()), event.address);
  }
  return text;
}

// The rules, of a trace that has its own addresses: every state that can be reached is visited.
class Everything {
 public:
  explicit Everything(const Trace& trace) : trace_(trace) {
    std::map<uint64_t, int> block;
    std::map<std::pair<uint64_t, int>, int> last;
    for (int i = 0; i < size(); ++i) {
      const Event& event = trace.events[static_cast<uint32_t>(i)];
      if (event.thread >= threads_.size()) {
        threads_.resize(event.thread + 1);
      }
      threads_[event.thread].push_back(i);
      if (event.kind() == EventKind::kAllocate) {
        ++block[event.address];
      }
      const uint64_t base = event.address & ~uint64_t{0xFF};
      const int number = block[base];
      block_.push_back(number);
      source_.push_back(-1);
      if (event.kind() == EventKind::kRead) {
        const auto seen = last.find({event.address, number});
        source_.back() = seen == last.end() ? -1 : seen->second;
      } else if (event.kind() == EventKind::kWrite) {
        last[{event.address, number}] = i;
      } else if (event.kind() == EventKind::kFree) {
        last[{base, number}] = last[{base + 1, number}] = i;
      }
    }
  }

  // End and use: some state has executed the one, and the other comes next in its thread.
  Pairs uses() {
    Pairs found;
    visit([&](const State& state) {
      for (uint32_t thread = 0; thread < threads_.size(); ++thread) {
        if (state.done[thread] == threads_[thread].size()) {
          continue;
        }
        const int next = threads_[thread][state.done[thread]];
        for (int end = 0; end < size(); ++end) {
          if (event(end).thread != thread && executed(state, end) && is_use(end, next) &&
              block_begun(state, next)) {
            found.emplace(end, next);
          }
        }
      }
    });
    return found;
  }

  // Of an end and a use.
  Pairs lifetime_races() {
    return meetings([&](int a, int b) { return is_use(a, b) || is_use(b, a); });
  }
  Pairs races() {
    return meetings([&](int a, int b) {
      return is_data(a) && is_data(b) && event(a).address == event(b).address &&
             block_[static_cast<size_t>(a)] == block_[static_cast<size_t>(b)] &&
             (event(a).kind() == EventKind::kWrite || event(b).kind() == EventKind::kWrite);
    });
  }

 private:
  template <typename Meet>
  Pairs meetings(const Meet& meet) {
    Pairs found;
    visit([&](const State& state) {
      std::vector<int> next;
      for (uint32_t thread = 0; thread < threads_.size(); ++thread) {
        if (state.done[thread] < threads_[thread].size()) {
          next.push_back(threads_[thread][state.done[thread]]);
        }
      }
      for (const int a : next) {
        for (const int b : next) {
          if (a < b && meet(a, b) && block_begun(state, a) && block_begun(state, b)) {
            found.emplace(a, b);
          }
        }
      }
    });
    return found;
  }

  struct State {
    std::vector<size_t> done;
    std::map<std::pair<uint64_t, int>, int> last;
    std::map<uint64_t, uint32_t> held;
    bool operator<(const State& other) const {
      return std::tie(done, last) < std::tie(other.done, other.last);
    }
  };

  int size() const { return static_cast<int>(trace_.events.size()); }
  const Event& event(int i) const { return trace_.events[static_cast<uint32_t>(i)]; }
  bool is_data(int i) const {
    return event(i).kind() == EventKind::kRead || event(i).kind() == EventKind::kWrite;
  }
  bool executed(const State& state, int i) const {
    const auto& mine = threads_[event(i).thread];
    const size_t place = static_cast<size_t>(std::find(mine.begin(), mine.end(), i) - mine.begin());
    return place < state.done[event(i).thread];
  }
  bool same_block(int a, int b) const {
    return (event(a).address & ~uint64_t{0xFF}) == (event(b).address & ~uint64_t{0xFF}) &&
           block_[static_cast<size_t>(a)] == block_[static_cast<size_t>(b)];
  }
  bool is_use(int end, int use) const {
    if (event(end).kind() == EventKind::kDestroy) {
      return is(event(use), kinds::kLocks) && event(use).address == event(end).address;
    }
    return event(end).kind() == EventKind::kFree && is_data(use) && same_block(end, use);
  }
  // What is done in a block comes after its beginning.
  bool block_begun(const State& state, int i) const {
    for (int begin = 0; begin < size(); ++begin) {
      if (event(begin).kind() == EventKind::kAllocate && same_block(begin, i) &&
          (is_data(i) || event(i).kind() == EventKind::kFree) && !executed(state, begin)) {
        return false;
      }
    }
    return true;
  }

  bool step(State& state, uint32_t thread) const {
    const int i = threads_[thread][state.done[thread]];
    const Event& now = event(i);
    const int number = block_[static_cast<size_t>(i)];
    if (!block_begun(state, i)) {
      return false;
    }
    switch (now.kind()) {
      case EventKind::kRead: {
        const auto seen = state.last.find({now.address, number});
        if ((seen == state.last.end() ? -1 : seen->second) != source_[static_cast<size_t>(i)]) {
          return false;
        }
        break;
      }
      case EventKind::kWrite:
        state.last[{now.address, number}] = i;
        break;
      case EventKind::kFree:
        // The block that got its memory is not there yet.
        for (int next = i + 1; next < size(); ++next) {
          if (event(next).kind() == EventKind::kAllocate && event(next).address == now.address &&
              executed(state, next)) {
            return false;
          }
        }
        state.last[{now.address, number}] = state.last[{now.address + 1, number}] = i;
        break;
      case EventKind::kAcquire:
        if (state.held.count(now.address) != 0 || ended(state, now.address)) {
          return false;
        }
        state.held[now.address] = now.thread;
        break;
      case EventKind::kRelease:
        if (ended(state, now.address)) {
          return false;
        }
        state.held.erase(now.address);
        break;
      default:
        break;
    }
    ++state.done[thread];
    return true;
  }
  bool ended(const State& state, uint64_t lock) const {
    for (int end = 0; end < size(); ++end) {
      if (event(end).kind() == EventKind::kDestroy && event(end).address == lock &&
          executed(state, end)) {
        return true;
      }
    }
    return false;
  }

  template <typename Visit>
  void visit(const Visit& look) const {
    std::set<State> seen;
    std::vector<State> open(1);
    open.front().done.assign(threads_.size(), 0);
    while (!open.empty()) {
      State state = std::move(open.back());
      open.pop_back();
      if (!seen.insert(state).second) {
        continue;
      }
      look(state);
      for (uint32_t thread = 0; thread < threads_.size(); ++thread) {
        State next = state;
        if (state.done[thread] < threads_[thread].size() && step(next, thread)) {
          open.push_back(std::move(next));
        }
      }
    }
  }

  const Trace& trace_;
  std::vector<std::vector<int>> threads_;
  std::vector<int> block_;   // which one at its place
  std::vector<int> source_;  // of a read
};

Pairs pairs_of(const std::vector<predict::Race>& races) {
  Pairs pairs;
  for (const predict::Race& race : races) {
    pairs.emplace(race.first, race.second);
  }
  return pairs;
}

Pairs pairs_of(const predict::LifetimeResult& result) {
  Pairs pairs;
  for (const auto* const all : {&result.after_free, &result.after_destroy}) {
    for (const predict::UseAfterEnd& use : *all) {
      pairs.emplace(use.end, use.use);
    }
  }
  return pairs;
}

predict::LifetimeResult predicted(const Trace& trace, bool buffers = false) {
  predict::Query query(trace, predict::Branches::kAfterEveryRead, {}, buffers);
  return predict_lifetimes(query, {});
}

predict::RaceResult lifetime_races(const Trace& trace, bool buffers = false) {
  predict::Query query(trace, predict::Branches::kAfterEveryRead, {}, buffers);
  predict::RaceResult races;
  predict_lifetime_races(query, {}, &races);
  return races;
}

predict::LifetimeResult predicted(const std::string& text) {
  auto trace = read_std_text(text, "t");
  REQUIRE(trace);
  return predicted(named(std::move(*trace)));
}

}  // namespace

TEST_CASE(
    "random traces have the uses after an end, and the races, that everything tried out has") {
  std::mt19937 random(20261127);
  uint64_t feasible = 0;
  uint64_t refused = 0;
  uint64_t raced = 0;
  uint64_t ended = 0;
  for (int round = 0; round < rounds(400, 4000); ++round) {
    const uint32_t threads = 2 + (round % 4 == 0 ? 1U : 0U);
    const Trace trace = random_trace(random, threads, 10 + random() % 4);
    CAPTURE(round);
    INFO(shown(trace));
    Everything everything(trace);
    const Pairs there = everything.uses();
    const Trace with_names = named(trace);
    const predict::LifetimeResult result = predicted(with_names);
    REQUIRE(result.invalid == 0);
    const Pairs found = pairs_of(result);
    REQUIRE(std::includes(there.begin(), there.end(), found.begin(), found.end()));
    feasible += there.size();
    refused += there.size() - found.size();
    if (threads == 2) {
      REQUIRE(found == there);
    }
    // Under TSO at least as much.
    const Pairs buffered = pairs_of(predicted(with_names, true));
    REQUIRE(std::includes(buffered.begin(), buffered.end(), found.begin(), found.end()));
    predict::RaceOptions options;
    options.branches = predict::Branches::kAfterEveryRead;
    const Pairs races = pairs_of(predict_races(with_names, options).races);
    const Pairs real = everything.races();
    REQUIRE(std::includes(real.begin(), real.end(), races.begin(), races.end()));
    if (threads == 2) {
      REQUIRE(races == real);
    }
    raced += races.size();
    // The end and the use at once.
    const predict::RaceResult at_once = lifetime_races(with_names);
    REQUIRE(at_once.invalid == 0);
    const Pairs ends = pairs_of(at_once.races);
    const Pairs real_ends = everything.lifetime_races();
    REQUIRE(std::includes(real_ends.begin(), real_ends.end(), ends.begin(), ends.end()));
    if (threads == 2) {
      REQUIRE(ends == real_ends);
    }
    const Pairs late_ends = pairs_of(lifetime_races(with_names, true).races);
    REQUIRE(std::includes(late_ends.begin(), late_ends.end(), ends.begin(), ends.end()));
    ended += ends.size();
  }
  CHECK(feasible > 300);
  CHECK(raced > 100);
  CHECK(ended > 100);
  CHECK(refused * 50 < feasible);
}

TEST_CASE("what is done to a block is not done to the next one at its place") {
  const auto races = [](const std::string& text) {
    auto trace = read_std_text(text, "t");
    REQUIRE(trace);
    predict::RaceOptions options;
    return predict_races(named(std::move(*trace)), options).races.size();
  };
  CHECK(races("A|w(0x10000+8)|1\nA|free(0x10000=8)|2\nB|alloc(0x10000=8)|3\nB|w(0x10000+8)|4\n") ==
        0);
  CHECK(races("A|w(0x10000+8)|1\nA|free(0x10000=8)|2\nB|w(0x10008+8)|4\n") == 0);
  CHECK(races("A|w(0x10000+8)|1\nB|w(0x10000+8)|4\n") == 1);
  // The allocator orders nothing else.
  CHECK(races("A|w(x)|1\nA|free(0x10000=8)|2\nB|alloc(0x10000=8)|3\nB|w(x)|4\n") == 1);
}

TEST_CASE("a use that happened is one, whatever is ordered") {
  const auto one = predicted("A|free(0x10000=8)|1\nA|r(0x10004+4)|2\n");
  REQUIRE(one.after_free.size() == 1);
  CHECK(one.after_free[0].happened);
  CHECK(one.after_free[0].witness == std::vector<uint32_t>{0, 1});
  CHECK(predicted("A|free(0x10000=8)|1\nA|fork(B)|2\nB|free(0x10000=8)|3\n").after_free.size() ==
        1);
  CHECK(predicted("A|free(0x10000=8)|1\nA|alloc(0x10000=8)|2\nA|r(0x10000+4)|3\n")
            .after_free.empty());
  // What the kernel got back may be anything now.
  CHECK(predicted("A|free(0x10000=1000000)|1\nA|r(0x10004+4)|2\n").after_free.empty());
}

TEST_CASE("locks end by themselves and with their memory") {
  CHECK(predicted("A|acq(m)|1\nA|rel(m)|2\nB|destroy(m)|3\n").after_destroy.size() == 2);
  CHECK(predicted("A|fork(B)|1\nB|acq(m)|2\nB|rel(m)|3\nA|join(B)|4\nA|destroy(m)|5\n")
            .after_destroy.empty());
  CHECK(predicted(
            "A|acq(m)|1\nA|w(x)|2\nA|rel(m)|3\nB|acq(m)|4\nB|r(x)|5\nB|rel(m)|6\nB|destroy(m)|7\n")
            .after_destroy.empty());
}

TEST_CASE("a lock that may be used before it begins is a race, of that lock alone") {
  const auto races = [](const std::string& text) {
    auto trace = read_std_text(text, "t");
    REQUIRE(trace);
    for (Event& event : trace->events) {
      // In text locks have names and no addresses, and none begins: what is sent stands for that.
      if (!is(event, kind_mask(EventKind::kAllocate) | kind_mask(EventKind::kFree) |
                         kind_mask(EventKind::kFork))) {
        event.address = 0x10000 + 8 * event.address;
        event.address |= event.kind() == EventKind::kSend ? kBegins : 0;
      }
    }
    const predict::RaceResult found = lifetime_races(named(std::move(*trace)));
    CHECK(found.invalid == 0);
    return pairs_of(found.races);
  };
  const std::string begins = "A|send(m)|1\n";
  const std::string uses = "B|acq(m)|2\nB|rel(m)|3\n";
  CHECK(races(begins + uses) == Pairs{{0, 1}});
  CHECK(races(uses + begins) == Pairs{{0, 2}});
  CHECK(races(begins + "A|fork(B)|4\n" + uses).empty());
  CHECK(races(begins + "A|acq(m)|2\nA|rel(m)|3\n").empty());
  CHECK(races(begins + "B|acq(n)|2\nB|rel(n)|3\n").empty());
  // Between them it is made once more, or there is another one.
  CHECK(races(begins + begins + uses) == Pairs{{1, 2}});
  CHECK(races(begins + "A|destroy(m)|4\n" + uses).count({0, 2}) == 0);
  CHECK(races(begins + "A|free(0x10000=8)|4\nA|alloc(0x10000=8)|5\n" + uses).count({0, 3}) == 0);
}
