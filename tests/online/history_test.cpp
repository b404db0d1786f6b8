#include "online/stream/history.h"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "tests/tso/mini_trace.h"
#include "tso/model/event.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

std::vector<uint64_t> pending_prefix(const Trace& trace, uint64_t first, uint64_t last) {
  EventHistory history(1000, kinds::kDrains);
  history.add(trace, 0);
  const EventHistory::Slice slice = history.slice(first, last);
  CHECK(slice.all_stores);
  REQUIRE(slice.index.back() == last);
  CHECK(slice.index[slice.pending_prefix] == first);
  return {slice.index.begin(), slice.index.end()};
}

using Indices = std::vector<uint64_t>;

// T2 is not in the slice; its store to x may commit in the middle of it.
TEST_CASE("in front of a slice are the stores that may be in a buffer, of all threads") {
  const Trace trace =
      mini_trace("T0:W(a=1) T0:F T0:W(b=1) T2:W(x=5) T1:R(c) T1:F T1:W(x=1) T0:R(x=5)");
  CHECK(pending_prefix(trace, 6, 7) == Indices{2, 3, 6, 7});
  CHECK(pending_prefix(trace, 1, 7).front() == 0);
}

TEST_CASE("a load that may have read a store behind the slice has no value in it") {
  const Trace happened = mini_trace("T0:R(x=1) T1:W(y=1) T0:R(x=2) T1:W(x=2)");
  Trace trace;
  for (const Event& event : happened.events) {
    const auto at = static_cast<int64_t>(trace.events.size());
    Event bare = event;
    bare.has_hi = bare.has_read_value = bare.has_write_value = 0;
    trace.add(bare, at, at == 2 ? 5 : at, happened.read_value(event), happened.write_value(event));
  }
  EventHistory history(1000, kinds::kDrains);
  history.add(trace, 0);
  const auto value = [&](uint64_t load, uint64_t last) {
    const EventHistory::Slice slice = history.slice(0, last);
    return slice.events.read_value(slice.events.events[load]);
  };
  CHECK(value(0, 2) == 1);
  CHECK(value(2, 2) == std::nullopt);
  CHECK(value(2, 3) == std::nullopt);  // another store may follow
  history.finish();
  CHECK(value(2, 2) == std::nullopt);
  CHECK(value(2, 3) == 2);
}

TEST_CASE("of very many threads with stores in their buffers not all are kept") {
  constexpr uint32_t kThreads = 40'000;
  EventHistory history(1U << 20, kinds::kDrains);
  Trace trace;
  for (uint32_t i = 0; i < 2 * kThreads; ++i) {
    Event store;
    store.set_kind(i < kThreads ? EventKind::kWrite : EventKind::kRead);
    store.thread = i % kThreads;
    store.address = 8 * i;
    store.size = 8;
    trace.add(store, i, i);
  }
  history.add(trace, 0);
  CHECK(history.in_buffers() < 10 * kThreads);
  // What lies further back than is looked is said to be missing.
  const uint64_t last = 2 * kThreads - 1;
  const EventHistory::Slice late = history.slice(last, last);
  CHECK(!late.all_stores);
  CHECK(late.pending_prefix <= EventHistory::kMaxLookBack);
  const EventHistory::Slice early = history.slice(1000, 1001);
  CHECK(early.all_stores);
  CHECK(early.pending_prefix == 1000);
}

TEST_CASE("what begins before all of a slice is over") {
  Trace trace;
  for (int64_t i = 0; i < 10; ++i) {
    Event event;
    event.set_kind(EventKind::kWrite);
    trace.add(event, 10 * i, i == 3 ? 65 : 10 * i);
  }
  EventHistory history(1000, kinds::kDrains);
  history.add(trace, 0);
  CHECK(history.overlapped(0, 2, 100) == 2);
  CHECK(history.overlapped(2, 4, 100) == 6);
  CHECK(history.overlapped(2, 4, 1) == 5);
  CHECK(history.overlapped(2, 4, 0) == 4);
  CHECK(history.overlapped(4, 9, 100) == 9);
}

TEST_CASE(
    "random streams: in front is what was stored since the last drain, or all_stores is off") {
  std::mt19937_64 random(11);
  const auto below = [&](uint64_t bound) { return random() % bound; };
  int complete = 0;
  int long_ago = 0;
  for (int round = 0; round < 20; ++round) {
    const ThreadId threads = static_cast<ThreadId>(1 + below(6));
    const uint64_t count = 1 + below(40'000);
    const uint64_t rare = uint64_t{1} << (2 + below(12));
    const uint64_t wide = below(2) * below(100);
    EventBlock all;
    for (uint64_t i = 0; i < count; ++i) {
      Event event;
      event.thread = static_cast<ThreadId>(below(threads) * below(threads) / threads);
      event.address = below(8);
      event.set_kind(below(rare) == 0                   ? EventKind::kFence
                     : below(4 * rare) == 0             ? EventKind::kJoin
                     : below(rare) < 8 || below(4) == 0 ? EventKind::kWrite
                                                        : EventKind::kBranch);
      all.add(event, static_cast<int64_t>(i), static_cast<int64_t>(i + below(wide + 1)));
    }
    const uint64_t capacity = round % 2 == 0 ? count : 1 + below(count);
    EventHistory history(capacity, kinds::kDrains);
    for (uint64_t i = 0; i < count;) {
      EventBlock block;
      const uint64_t end = std::min(count, i + 1 + below(3000));
      block.append(all, i, end);
      history.add(block, i);
      i = end;
    }
    for (int question = 0; question < 20; ++question) {
      const uint64_t first = history.oldest() + below(count - history.oldest());
      const uint64_t last = first + below(std::min<uint64_t>(count - first, 100));
      Indices expected;
      for (uint64_t i = 0; i < first; ++i) {
        const Event& event = all.events[i];
        if (event.kind() == EventKind::kWrite || event.kind() == EventKind::kFence) {
          expected.push_back(i);
        }
        if (event.kind() != EventKind::kWrite && event.kind() != EventKind::kBranch &&
            all.hi(event) < all.events[first].lo) {
          const uint64_t drained =
              event.kind() == EventKind::kJoin ? event.address : uint64_t{event.thread};
          std::erase_if(expected, [&](uint64_t e) { return all.events[e].thread == drained; });
        }
      }
      const bool reachable =
          expected.empty() || (expected.front() >= history.oldest() &&
                               first - expected.front() <= EventHistory::kMaxLookBack / 2);
      for (uint64_t i = first; i <= last; ++i) {
        expected.push_back(i);
      }
      const EventHistory::Slice slice = history.slice(first, last);
      if (slice.all_stores) {
        REQUIRE(Indices(slice.index.begin(), slice.index.end()) == expected);
        ++complete;
      } else {
        REQUIRE(!reachable);
        ++long_ago;
      }
    }
  }
  CHECK(complete > 100);
  CHECK(long_ago > 1);
}

}  // namespace
