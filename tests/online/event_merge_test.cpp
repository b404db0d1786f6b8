// EventMerge against std::stable_sort of everything that was pushed.
#include "online/stream/event_merge.h"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

using namespace tsomon;

namespace {

struct Twin {
  int64_t lo;
  int64_t hi;
  uint64_t stream;
  uint64_t place;
  bool has_value;
  bool operator==(const Twin&) const = default;
};

Event event_of(const Twin& twin) {
  Event event;
  event.thread = static_cast<ThreadId>(twin.stream);
  event.address = twin.place;
  event.size = 8;
  event.set_kind(EventKind::kWrite);
  return event;
}

void add(EventBlock& block, const Twin& twin) {
  block.add(event_of(twin), twin.lo, twin.hi, {},
            twin.has_value ? std::optional<uint64_t>(twin.place + 7) : std::nullopt);
}

// What came out, with values and ends of intervals read back from the block.
void read_back(const EventBlock& block, std::vector<Twin>& out) {
  for (const Event& event : block.events) {
    const auto value = block.write_value(event);
    if (value) {
      CHECK(*value == event.address + 7);
    }
    out.push_back({block.lo(event), block.hi(event), event.thread, event.address, bool(value)});
  }
}

// Streams of events in the order of `lo`, now and then far apart or at the same time.
std::vector<std::vector<Twin>> random_streams(std::mt19937_64& random) {
  std::vector<std::vector<Twin>> streams(1 + random() % 9);
  const int64_t step = random() % 4 == 0 ? 1 : static_cast<int64_t>(1 + random() % 50);
  for (uint64_t s = 0; s < streams.size(); ++s) {
    auto time = static_cast<int64_t>(random() % 100) - 50;
    const uint64_t count = random() % 60;
    for (uint64_t i = 0; i < count; ++i) {
      time += static_cast<int64_t>(random() % static_cast<uint64_t>(step + 1));
      const int64_t length =
          random() % 5 == 0 ? int64_t{1} << 40 : static_cast<int64_t>(random() % 9);
      streams[s].push_back({time, time + length, s, i, random() % 3 == 0});
    }
  }
  return streams;
}

std::vector<Twin> sorted(const std::vector<std::vector<Twin>>& streams) {
  std::vector<Twin> all;
  for (const auto& stream : streams) {
    all.insert(all.end(), stream.begin(), stream.end());
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Twin& a, const Twin& b) { return a.lo < b.lo; });
  return all;
}

}  // namespace

TEST_CASE("blocks pushed in any order come out as stable_sort orders them") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 3000; ++round) {
    CAPTURE(round);
    const auto streams = random_streams(random);
    EventMerge merge;
    std::vector<EventMerge::Stream> numbers;
    std::vector<size_t> next(streams.size());
    std::vector<bool> closed(streams.size());
    for (size_t s = 0; s < streams.size(); ++s) {
      numbers.push_back(merge.open(s));
    }
    std::vector<Twin> out;
    std::vector<EventLoss> losses;
    EventBlock block;
    const auto drain = [&] {
      for (;;) {
        block.clear();
        if (!merge.next(block, losses, 1 + random() % 40)) {
          break;
        }
        read_back(block, out);
      }
    };
    while (!merge.empty()) {
      // Now and then only what is waited for; nothing may come out before its time.
      size_t s = random() % streams.size();
      if (random() % 2 == 0) {
        if (const auto wanted = merge.waiting_for()) {
          s = static_cast<size_t>(std::find(numbers.begin(), numbers.end(), *wanted) -
                                  numbers.begin());
        }
      }
      if (closed[s]) {
        drain();
        continue;
      }
      EventBlock events = merge.take_block();
      CHECK(events.events.empty());
      for (uint64_t i = random() % 12; i != 0 && next[s] != streams[s].size(); --i) {
        add(events, streams[s][next[s]++]);
      }
      merge.push(numbers[s], std::move(events));
      if (next[s] == streams[s].size()) {
        merge.close(numbers[s]);
        closed[s] = true;
      } else if (random() % 3 == 0) {
        merge.promise(numbers[s], streams[s][next[s]].lo - static_cast<int64_t>(random() % 2));
      }
      if (random() % 2 == 0) {
        drain();
      }
    }
    drain();
    const std::vector<Twin> expected = sorted(streams);
    CHECK(out == expected);
    CHECK(merge.statistics().events == expected.size());
    CHECK(merge.complete());
    CHECK(merge.statistics().held == 0);
  }
}

TEST_CASE("nothing comes out while a stream may still bring something earlier") {
  EventMerge merge;
  const auto a = merge.open(0);
  const auto b = merge.open(1, 5);
  EventBlock block;
  add(block, {3, 3, 0, 0, false});
  add(block, {5, 5, 0, 1, false});
  add(block, {6, 6, 0, 2, false});
  merge.push(a, std::move(block));
  EventBlock out;
  std::vector<EventLoss> losses;
  CHECK(merge.next(out, losses, 100));
  CHECK(out.events.size() == 2);  // at equal times the lower rank comes first
  CHECK_FALSE(merge.next(out, losses, 100));
  CHECK(merge.waiting_for() == b);
  merge.promise(b, 4);  // an older promise stays
  CHECK_FALSE(merge.next(out, losses, 100));
  merge.promise(b, 7);
  CHECK(merge.next(out, losses, 100));
  CHECK(out.events.size() == 3);
  CHECK(merge.waiting_for() == a);
  merge.close(a);
  CHECK(merge.waiting_for() == b);
  merge.close(b);
  CHECK(merge.empty());
  CHECK_FALSE(merge.waiting_for());
}

TEST_CASE("late events are given out, counted, and stay behind their predecessors") {
  EventMerge merge;
  const auto a = merge.open(0);
  const auto b = merge.open(1);
  EventBlock block;
  add(block, {10, 10, 0, 0, false});
  add(block, {20, 20, 0, 1, false});
  merge.push(a, std::move(block));
  merge.promise(b, 15);
  EventBlock out;
  std::vector<EventLoss> losses;
  CHECK(merge.next(out, losses, 100));
  CHECK(out.events.size() == 1);
  block = EventBlock{};
  add(block, {9, 9, 1, 0, false});  // breaks the promise
  add(block, {30, 30, 1, 1, false});
  add(block, {12, 12, 1, 2, false});  // out of order in its stream
  add(block, {31, 31, 1, 3, false});
  merge.push(b, std::move(block));
  merge.close(b);
  merge.close(a);
  while (merge.next(out, losses, 100)) {
  }
  std::vector<Twin> found;
  read_back(out, found);
  std::vector<int64_t> times;
  times.reserve(found.size());
  for (const Twin& twin : found) {
    times.push_back(twin.lo);
  }
  CHECK(times == std::vector<int64_t>{10, 9, 20, 30, 12, 31});
  CHECK(merge.statistics().late == 2);
  CHECK_FALSE(merge.complete());
}

TEST_CASE("a loss lies between the events around it") {
  EventMerge merge;
  const auto a = merge.open(0);
  EventBlock block;
  add(block, {1, 1, 0, 0, false});
  merge.push(a, std::move(block));
  merge.lose(a, {7, 12});
  block = EventBlock{};
  add(block, {2, 2, 0, 1, false});
  merge.push(a, std::move(block));
  merge.close(a);
  EventBlock out;
  std::vector<EventLoss> losses;
  REQUIRE(merge.next(out, losses, 100));
  CHECK(out.events.size() == 1);
  CHECK(losses.empty());
  out.clear();
  REQUIRE(merge.next(out, losses, 100));
  CHECK(out.events.size() == 1);
  REQUIRE(losses.size() == 1);
  CHECK(losses[0].thread == 7);
  CHECK(merge.statistics().lost == 12);
  CHECK_FALSE(merge.complete());
  CHECK(merge.empty());
}

TEST_CASE("beyond the bound the slowest stream is not waited for") {
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const size_t max_held = 1 + random() % 6;
    EventMerge merge(max_held);
    const auto fast = merge.open(0);
    const auto slow = merge.open(1);
    merge.open(2);  // never says anything
    std::vector<Twin> out;
    std::vector<EventLoss> losses;
    uint64_t pushed = 0;
    const auto drain = [&] {
      EventBlock block;
      while (merge.next(block, losses, 5) || merge.overtake()) {
        read_back(block, out);
        block.clear();
      }
      CHECK(merge.statistics().held <= max_held);
    };
    for (int64_t i = 0; i < 50; ++i) {
      EventBlock block = merge.take_block();
      for (int64_t j = 0; j < 3; ++j) {
        add(block, {10 * i + j, 10 * i + j, 0, pushed++, false});
      }
      merge.push(fast, std::move(block));
      drain();
    }
    CHECK(merge.statistics().overtaken > 0);
    CHECK(merge.statistics().late == 0);  // nothing was late yet
    EventBlock block;
    add(block, {1, 1, 1, 0, false});
    merge.push(slow, std::move(block));
    merge.close(slow);
    merge.close(fast);
    merge.close(2);
    drain();
    CHECK(out.size() == pushed + 1);
    CHECK(merge.statistics().late == 1);
    CHECK_FALSE(merge.complete());
  }
}

TEST_CASE("numbers of closed streams are used again") {
  EventMerge merge;
  std::vector<EventLoss> losses;
  EventBlock out;
  for (uint64_t i = 0; i < 1000; ++i) {
    const auto stream = merge.open(i);
    CHECK(stream < 2);
    EventBlock block = merge.take_block();
    add(block, {static_cast<int64_t>(i), static_cast<int64_t>(i), 0, i, true});
    merge.push(stream, std::move(block));
    merge.close(stream);
    CHECK(merge.next(out, losses, 10));
  }
  CHECK(out.events.size() == 1000);
  CHECK(merge.spare_blocks() <= 2);
}
