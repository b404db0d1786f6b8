#include "offline/predict/value_order.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "tests/rounds.h"

namespace tsomon {
namespace {

using predict::ValueOrder;

ValueOrder::Item access(ThreadId thread, EventKind kind, int64_t lo, int64_t hi,
                        std::optional<uint64_t> read, std::optional<uint64_t> written,
                        uint64_t line, uint64_t address = 8) {
  ValueOrder::Item item;
  item.event.set_kind(kind);
  item.event.thread = thread;
  item.event.address = address;
  item.event.size = 8;
  item.event.lo = lo;
  item.hi = hi;
  item.read = read;
  item.written = written;
  item.line = line;
  return item;
}

std::vector<ValueOrder::Item> ordered(const std::vector<ValueOrder::Item>& items) {
  ValueOrder order;
  std::vector<ValueOrder::Item> result;
  const auto take = [&] {
    while (const auto item = order.next()) {
      result.push_back(*item);
    }
  };
  for (const ValueOrder::Item& item : items) {
    order.add(item);
    take();
  }
  order.finish();
  take();
  return result;
}

// Events that find another value than the one before them has left; memory is 0 at first.
uint64_t mismatches(const std::vector<ValueOrder::Item>& items) {
  std::map<uint64_t, uint64_t> held;
  uint64_t count = 0;
  for (const ValueOrder::Item& item : items) {
    uint64_t& value = held[item.event.address];
    count += item.read && *item.read != value ? 1 : 0;
    value = item.written ? *item.written : item.read.value_or(value);
  }
  return count;
}

}  // namespace

TEST_CASE("value order: a locked operation comes behind the one whose value it has read") {
  constexpr EventKind kRmw = EventKind::kReadModifyWrite;
  const auto all = ordered({access(0, kRmw, 0, 5, 0, 1, 0), access(1, kRmw, 10, 90, 2, 3, 1),
                            access(0, kRmw, 20, 80, 1, 2, 2), access(0, kRmw, 95, 99, 3, 4, 3)});
  REQUIRE(all.size() == 4);
  CHECK(all[1].line == 2);
  CHECK(all[2].line == 1);
}

TEST_CASE("value order: what a location held at first is what nobody brings") {
  constexpr EventKind kRmw = EventKind::kReadModifyWrite;
  // The one that drops the last of two references began first.
  auto all = ordered({access(1, kRmw, 10, 90, 1, 0, 0), access(2, kRmw, 20, 80, 2, 1, 1)});
  REQUIRE(all.size() == 2);
  CHECK(all[0].line == 1);
  all = ordered({access(1, kRmw, 10, 90, 1, 0, 0), access(2, kRmw, 20, 80, 0, 1, 1)});
  CHECK(all[0].line == 0);  // either may be
  all = ordered({access(1, kRmw, 10, 15, 1, 0, 0), access(2, kRmw, 20, 80, 2, 1, 1)});
  CHECK(all[0].line == 0);  // it was over
}

TEST_CASE("value order: nothing waits for what came certainly later, nor in a circle") {
  constexpr EventKind kRmw = EventKind::kReadModifyWrite;
  auto all = ordered({access(0, kRmw, 0, 5, 0, 1, 0), access(1, kRmw, 10, 15, 2, 3, 1),
                      access(0, kRmw, 20, 80, 1, 2, 2)});
  CHECK(all[1].line == 1);
  all = ordered({access(0, kRmw, 0, 1, 0, 1, 0), access(1, kRmw, 10, 90, 7, 8, 1),
                 access(2, kRmw, 11, 80, 8, 7, 2)});
  CHECK(all.size() == 3);
}

// Sections of a spin lock, and beside them an event that waits for nothing.
TEST_CASE("value order: what must be over goes on by way of a store that brings its value") {
  constexpr EventKind kRmw = EventKind::kReadModifyWrite;
  constexpr EventKind kWrite = EventKind::kWrite;
  const auto all = ordered({access(2, kRmw, 0, 5, 0, 1, 0), access(2, kWrite, 10, 130, {}, 0, 1),
                            access(2, kRmw, 10, 130, 0, 1, 2), access(1, kRmw, 40, 150, 0, 1, 3),
                            access(2, kWrite, 60, 177, {}, 0, 4), access(2, kRmw, 60, 177, 1, 1, 5),
                            access(1, kWrite, 85, 217, {}, 0, 6),
                            access(2, kRmw, 112, 232, 0, 1, 7), access(1, kRmw, 152, 257, 1, 1, 8),
                            access(0, EventKind::kRead, 155, 155, {}, {}, 9, 80)});
  CHECK(all.size() == 10);
  CHECK(mismatches(all) == 0);
}

// The load by which a thread that slept sees that it may go on seems to begin before.
TEST_CASE(
    "value order: of two that find a lock free the one comes first that has to be over first") {
  constexpr EventKind kRmw = EventKind::kReadModifyWrite;
  constexpr EventKind kWrite = EventKind::kWrite;
  // The first thread is preempted inside its operation; nothing says what the word held at first.
  const auto all =
      ordered({access(1, kRmw, 0, 90, 0, 1, 0), access(2, kRmw, 10, 12, 0, 1, 1),
               access(2, kWrite, 14, 18, {}, 0, 2), access(2, kRmw, 20, 22, 0, 1, 3),
               access(2, kWrite, 24, 28, {}, 0, 4), access(1, kWrite, 92, 99, {}, 0, 5),
               access(2, kRmw, 100, 102, 0, 1, 6)});
  CHECK(mismatches(all) == 0);
  REQUIRE(all.size() == 7);
  CHECK(all[4].line == 0);
}

TEST_CASE("value order: a value that comes much later is waited for") {
  constexpr EventKind kRmw = EventKind::kReadModifyWrite;
  constexpr int64_t kEvents = 3 * static_cast<int64_t>(ValueOrder::kLookAhead);
  std::vector<ValueOrder::Item> items = {
      access(0, kRmw, 0, 1, 0, 2, 0),
      access(0, EventKind::kRead, 1, 2 * kEvents, 1, {}, 1),
      access(0, EventKind::kRead, 2, 2 * kEvents, {}, {}, 2, 80),
  };
  for (int64_t time = 2; time < kEvents; ++time) {
    items.push_back(access(1, EventKind::kWrite, time, time, {}, {}, 3, 80));
  }
  items.push_back(access(1, kRmw, kEvents, kEvents, 2, 1, 4));
  const auto all = ordered(items);
  CHECK(all.size() == items.size());
  CHECK(mismatches(all) == 0);
  CHECK(all.back().line == 2);
}

// A thread is preempted inside its first operation, of a counter that nobody has touched before it.
TEST_CASE("value order: what a location held at first is not what comes much later") {
  constexpr EventKind kRmw = EventKind::kReadModifyWrite;
  constexpr int64_t kEvents = 3 * static_cast<int64_t>(ValueOrder::kLookAhead);
  std::vector<ValueOrder::Item> items = {access(0, kRmw, 0, 2 * kEvents, 11, 12, 0)};
  for (int64_t time = 1; time < kEvents; ++time) {
    items.push_back(access(1, EventKind::kWrite, time, time, {}, {}, 1, 80));
    if (time % (kEvents / 10) == 1) {
      const auto count = static_cast<uint64_t>(time / (kEvents / 10));
      items.push_back(access(1, kRmw, time, time, count, count + 1, 2));
    }
  }
  const auto all = ordered(items);
  CHECK(all.size() == items.size());
  CHECK(mismatches(all) == 0);
}

// Two threads are preempted inside their loads: nothing says yet which one comes first.
TEST_CASE("value order: who may have read what comes much later says nothing of the beginning") {
  constexpr EventKind kWrite = EventKind::kWrite;
  constexpr int64_t kEvents = 3 * static_cast<int64_t>(ValueOrder::kLookAhead);
  std::vector<ValueOrder::Item> items = {
      access(0, EventKind::kRead, 0, 2 * kEvents, 0, {}, 0),
      access(1, EventKind::kRead, 1, 2 * kEvents, 7, {}, 1),
  };
  for (int64_t time = 2; time < kEvents; ++time) {
    items.push_back(access(2, kWrite, time, time, {}, {}, 2, 80));
  }
  items.push_back(access(2, kWrite, kEvents, kEvents, {}, 7, 3));
  const auto all = ordered(items);
  CHECK(all.size() == items.size());
  CHECK(mismatches(all) == 0);
}

// Runs that happened, with an interval around each event: the order has the values of the run
// wherever its own steps decide, keeps program order and contradicts no interval.
TEST_CASE("value order: random runs") {
  std::mt19937_64 random(30);
  uint64_t right = 0;
  uint64_t wrong = 0;
  uint64_t wrong_by_begin = 0;
  for (int round = 0; round < rounds(200, 4000); ++round) {
    const uint32_t threads = 2 + random() % 3;
    std::map<uint64_t, uint64_t> memory;
    std::vector<ValueOrder::Item> run;
    std::vector<int64_t> last_lo(threads, -1000);
    uint64_t next = 1;
    for (int64_t time = 0; time < 60; ++time) {
      const auto thread = static_cast<ThreadId>(random() % threads);
      const uint64_t address = 8 * (1 + random() % 2);
      const uint64_t read = memory[address];
      const bool writes = random() % 2 == 0;
      const int64_t lo =
          std::max<int64_t>(last_lo[thread], 10 * time - static_cast<int64_t>(random() % 60));
      last_lo[thread] = lo;
      const int64_t hi = 10 * time + static_cast<int64_t>(random() % 60);
      if (writes) {
        memory[address] = next;
        run.push_back(access(thread, EventKind::kReadModifyWrite, lo, hi, read, next, 0, address));
        ++next;
      } else {
        run.push_back(access(thread, EventKind::kRead, lo, hi, read, {}, 0, address));
      }
    }
    std::stable_sort(run.begin(), run.end(),
                     [](const auto& a, const auto& b) { return a.event.lo < b.event.lo; });
    for (uint64_t i = 0; i < run.size(); ++i) {
      run[i].line = i;
    }
    const auto all = ordered(run);
    REQUIRE(all.size() == run.size());
    std::vector<uint64_t> latest(threads, 0);
    int64_t begun = INT64_MIN;
    for (const ValueOrder::Item& item : all) {
      CHECK(item.hi >= begun);  // nothing that was over before comes behind
      begun = std::max(begun, item.event.lo);
      uint64_t& line = latest[item.event.thread];
      CHECK(line <= item.line);
      line = item.line;
    }
    wrong += mismatches(all);
    wrong_by_begin += mismatches(run);
    right += run.size();
  }
  MESSAGE(wrong << " of " << right << " values are not those of the order, " << wrong_by_begin
                << " by the beginnings alone");
  CHECK(wrong * 10 < wrong_by_begin);
}

}  // namespace tsomon
