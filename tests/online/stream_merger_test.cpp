// Producers on threads of their own; the result against std::stable_sort.
#include "online/stream/stream_merger.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

using namespace tsomon;

namespace {

#if defined(TSOMON_SANITIZED) || !defined(NDEBUG)
constexpr uint64_t kEvents = 20'000;
#else
constexpr uint64_t kEvents = 200'000;
#endif

constexpr std::chrono::milliseconds kLong{1000};

struct Twin {
  int64_t lo;
  ThreadId thread;
  uint64_t place;
  bool operator==(const Twin&) const = default;
};

Event event_of(ThreadId thread, uint64_t place) {
  Event event;
  event.set_kind(EventKind::kRead);
  event.thread = thread;
  event.address = place;
  event.size = 4;
  return event;
}

std::vector<Twin> random_stream(ThreadId thread, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Twin> stream;
  int64_t time = 0;
  for (uint64_t i = 0; i < kEvents; ++i) {
    time += static_cast<int64_t>(random() % 4);
    stream.push_back({time, thread, i});
  }
  return stream;
}

void drain(StreamMerger& merger, std::vector<Twin>& out) {
  EventBlock block;
  std::vector<EventLoss> losses;
  while (!merger.drained()) {
    block.clear();
    if (!merger.next(block, losses)) {
      merger.wait(kLong);
      continue;
    }
    for (const Event& event : block.events) {
      out.push_back({event.lo, event.thread, event.address});
    }
  }
}

}  // namespace

TEST_CASE("many producers: the order of stable_sort, nothing late, no block too many") {
  for (const ThreadId producers : {1U, 2U, 5U}) {
    for (const size_t block_events : {size_t{1} << 9, size_t{7}}) {
      CAPTURE(producers);
      CAPTURE(block_events);
      StreamMergerOptions options;
      options.block_events = block_events;
      options.max_blocks = 1 << 20;
      StreamMerger merger(options);
      std::vector<std::vector<Twin>> streams;
      for (ThreadId t = 0; t < producers; ++t) {
        streams.push_back(random_stream(t, 10 * producers + t));
      }
      std::vector<std::thread> threads;
      std::vector<StreamMerger::Stream> handles;
      for (ThreadId t = 0; t < producers; ++t) {
        handles.push_back(merger.open());
      }
      for (ThreadId t = 0; t < producers; ++t) {
        threads.emplace_back([stream = std::move(handles[t]), &events = streams[t]]() mutable {
          for (const Twin& event : events) {
            if (event.place % 1000 == 0) {
              stream.advance(event.lo);
            }
            stream.add(event_of(event.thread, event.place), event.lo, event.lo);
          }
        });
      }
      std::vector<Twin> out;
      drain(merger, out);
      for (std::thread& thread : threads) {
        thread.join();
      }
      std::vector<Twin> expected;
      for (const auto& stream : streams) {
        expected.insert(expected.end(), stream.begin(), stream.end());
      }
      std::stable_sort(expected.begin(), expected.end(),
                       [](const Twin& a, const Twin& b) { return a.lo < b.lo; });
      CHECK(out == expected);
      CHECK(merger.complete());
      CHECK(merger.statistics().overtaken == 0);
    }
  }
}

TEST_CASE("streams opened by other streams' threads are not late") {
  StreamMergerOptions options;
  options.block_events = 3;
  StreamMerger merger(options);
  std::atomic<int64_t> clock{0};
  constexpr int kThreads = 40;
  // A chain: every thread opens the stream of the next one in the middle of its own events.
  std::vector<std::thread> threads(kThreads);
  std::function<void(int, StreamMerger::Stream)> work = [&](int number,
                                                            StreamMerger::Stream stream) {
    for (int i = 0; i < 200; ++i) {
      if (i == 100 && number + 1 < kThreads) {
        const auto next = static_cast<size_t>(number) + 1;
        threads[next] = std::thread(work, number + 1, merger.open(clock.load()));
      }
      const int64_t now = clock.fetch_add(1);
      stream.add(event_of(static_cast<ThreadId>(number), static_cast<uint64_t>(i)), now, now);
    }
  };
  threads[0] = std::thread(work, 0, merger.open());
  std::vector<Twin> out;
  drain(merger, out);
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(out.size() == 200 * kThreads);
  CHECK(std::is_sorted(out.begin(), out.end(),
                       [](const Twin& a, const Twin& b) { return a.lo < b.lo; }));
  CHECK(merger.complete());
}

TEST_CASE("memory is bounded: a silent stream is overtaken, producers wait for the consumer") {
  StreamMergerOptions options;
  options.block_events = 16;
  options.max_blocks = 32;
  StreamMerger merger(options);
  StreamMerger::Stream silent = merger.open();
  std::atomic<bool> done{false};
  std::thread busy([&done, stream = merger.open()]() mutable {
    for (int64_t i = 0; i < 100'000; ++i) {
      stream.add(event_of(0, static_cast<uint64_t>(i)), i + 1, i + 1);
    }
    stream.close();
    done = true;
  });
  EventBlock block;
  std::vector<EventLoss> losses;
  uint64_t count = 0;
  while (!done) {
    block.clear();
    if (!merger.next(block, losses)) {
      merger.wait(std::chrono::milliseconds(1));
    }
    count += block.events.size();
    CHECK(merger.blocks() <= 32 + 4);
  }
  block.clear();
  busy.join();
  do {
    count += block.events.size();
    block.clear();
  } while (merger.next(block, losses));
  CHECK(merger.complete());
  CHECK(merger.statistics().overtaken > 0);
  silent.add(event_of(1, 0), 0, 0);
  silent.close();
  std::vector<Twin> rest;
  drain(merger, rest);
  CHECK(count + rest.size() == 100'001);
  CHECK(merger.statistics().late == 1);
  CHECK_FALSE(merger.complete());
}

TEST_CASE("with drop_when_full what finds no room is counted, and nothing else is missing") {
  StreamMergerOptions options;
  options.block_events = 4;
  options.max_blocks = 8;
  options.drop_when_full = true;
  StreamMerger merger(options);
  StreamMerger::Stream stream = merger.open();
  for (int64_t i = 0; i < 1000; ++i) {
    stream.add(event_of(3, static_cast<uint64_t>(i)), i, i);
  }
  EventBlock block;
  std::vector<EventLoss> losses;
  uint64_t count = 0;
  const auto take = [&] {
    while (merger.next(block, losses)) {
      count += block.events.size();
      block.clear();
    }
  };
  take();
  CHECK(count < 1000);
  stream.lost({3, 5});
  stream.add(event_of(3, 1000), 1000, 1000);
  stream.close();
  take();
  CHECK(merger.drained());
  uint64_t lost = 0;
  for (const EventLoss& loss : losses) {
    CHECK(loss.thread == 3);
    lost += loss.events;
  }
  CHECK(count + lost == 1001 + 5);
  CHECK(merger.statistics().lost == lost);
  CHECK_FALSE(merger.complete());
}

TEST_CASE("the memory of blocks goes round") {
  StreamMergerOptions options;
  options.block_events = 8;
  StreamMerger merger(options);
  StreamMerger::Stream stream = merger.open();
  EventBlock block;
  std::vector<EventLoss> losses;
  uint64_t count = 0;
  for (int64_t i = 0; i < 10'000; ++i) {
    stream.add(event_of(0, static_cast<uint64_t>(i)), i, i + (int64_t{1} << 40));
    if (i % 50 == 49) {
      stream.advance(i + 1);
      while (merger.next(block, losses)) {
        count += block.events.size();
        block.clear();
      }
    }
  }
  CHECK(count == 10'000);
  CHECK(merger.blocks() <= 8);
}
