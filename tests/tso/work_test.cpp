#include "tso/support/work.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "tso/support/ordered_work.h"

using namespace tsomon;

TEST_CASE("outside of scopes nothing is bounded") {
  CHECK(current_meter() == nullptr);
  CHECK(!stop_asked());
  for (int i = 0; i < 100; ++i) {
    spend(UINT64_MAX / 200);
  }
  expect_bytes(UINT64_MAX);
}

TEST_CASE("work ends at its bound, at the same step every time") {
  std::vector<uint64_t> reached;
  for (int round = 0; round < 3; ++round) {
    uint64_t steps = 0;
    const auto limit = within({.max_work = 1'000'000}, [&] {
      for (;; ++steps) {
        spend(3);
      }
    });
    REQUIRE(limit == WorkLimit::kWork);
    CHECK(3 * steps >= 1'000'000);
    CHECK(3 * steps < 1'000'000 + 2 * work_internal::kPortion);
    reached.push_back(steps);
  }
  CHECK(reached[1] == reached[0]);
  CHECK(reached[2] == reached[0]);
  CHECK(current_meter() == nullptr);
}

TEST_CASE("a table that is too large is not made") {
  CHECK(within({.max_bytes = 1000}, [] { expect_bytes(1001); }) == WorkLimit::kMemory);
  CHECK(!within({.max_bytes = 1000}, [] { expect_bytes(1000); }));
}

TEST_CASE("a stop is seen by inner work and by helpers, and by nobody in a pause") {
  StopFlag stop;
  WorkMeter meter({}, &stop);
  const WorkScope scope(&meter);
  CHECK(!within({}, [] { spend(1'000'000); }));
  stop.ask();
  CHECK(stop_asked());
  CHECK(within({}, [] { spend(1'000'000); }) == WorkLimit::kStopped);
  {
    const WorkPause pause;
    spend(1'000'000);
    CHECK(!stop_asked());
  }
  std::atomic<bool> seen{false};
  std::thread([&, outer = current_meter()] {
    const WorkScope helping(outer);
    try {
      spend(1'000'000);
    } catch (const WorkEnded& end) {
      seen = end.limit() == WorkLimit::kStopped;
    }
  }).join();
  CHECK(seen);
}

TEST_CASE("other exceptions pass, and so does the machine's lack of memory") {
  CHECK_THROWS_AS(within({}, [] { throw std::runtime_error("x"); }), std::runtime_error);
  CHECK_THROWS_AS(within({}, [] { throw std::bad_alloc(); }), std::bad_alloc);
  CHECK(current_meter() == nullptr);
}

TEST_CASE("inner work has what outer work has left, and uses it") {
  WorkMeter meter({.max_work = 1'000'000});
  const WorkScope scope(&meter);
  CHECK(!within({}, [] { spend(600'000); }));
  CHECK(meter.work() >= 600'000);
  CHECK(within({}, [] { spend(600'000); }) == WorkLimit::kWork);
  CHECK_THROWS_AS(spend(600'000), WorkEnded);
}

TEST_CASE("budgets grow with the input and do not overflow") {
  const WorkBudget budget{10, 3, UINT64_MAX, 1};
  CHECK(budget.of(4).max_work == 22);
  CHECK(budget.of(UINT64_MAX).max_work == UINT64_MAX);
  CHECK(budget.of(4).max_bytes == UINT64_MAX);
}

TEST_CASE("ordered work hands on what it throws, when it is its turn") {
  for (const unsigned threads : {1U, 3U}) {
    size_t committed = 0;
    const auto run = [&] {
      work_in_order(
          200, threads,
          [](size_t i) {
            std::this_thread::sleep_for(std::chrono::microseconds(100));
            if (i >= 150) {
              throw std::bad_alloc();
            }
            return i;
          },
          [&](size_t, size_t&&) { ++committed; });
    };
    CHECK_THROWS_AS(run(), std::bad_alloc);
    CHECK(committed == 150);
    committed = 0;
    const auto stop = [&] {
      work_in_order(
          200, threads, [](size_t i) { return i; },
          [&](size_t i, size_t&&) {
            ++committed;
            if (i == 100) {
              throw WorkEnded(WorkLimit::kStopped);
            }
          });
    };
    CHECK_THROWS_AS(stop(), WorkEnded);
    CHECK(committed == 101);
  }
}

TEST_CASE("what helpers compute ahead is not counted") {
  for (const unsigned threads : {1U, 3U}) {
    WorkMeter meter({.max_work = 1000});
    const WorkScope scope(&meter);
    uint64_t sum = 0;
    work_in_order(
        100, threads,
        [](size_t i) {
          spend(1'000'000);
          return i;
        },
        [&](size_t, size_t&& i) { sum += i; });
    CHECK(sum == 4950);
    CHECK(meter.work() <= 1000);
  }
}

TEST_CASE("what an input may take grows with what is read of it") {
  CHECK_THROWS_AS(within_input(0, [] { expect_bytes(uint64_t{256} << 20); }), WorkEnded);
  within_input(uint64_t{2} << 20, [] { expect_bytes(uint64_t{256} << 20); });
  within_input(0, [] {
    more_input(uint64_t{2} << 20);
    expect_bytes(uint64_t{256} << 20);
  });
  // The bound holds for a scope inside, however large that scope's own bound is.
  within_input(0, [] {
    CHECK(within({.max_bytes = uint64_t{1} << 40}, [] { expect_bytes(uint64_t{256} << 20); }) ==
          WorkLimit::kMemory);
  });
  more_input(1);
}
