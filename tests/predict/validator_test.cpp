// The validator against the definition, on right and on wrong orders.
#include "offline/predict/validator.h"

#include <algorithm>
#include <iterator>
#include <random>

#include <doctest/doctest.h>

#include "decoders/std/reader.h"
#include "offline/predict/witness.h"
#include "tests/predict/small_traces.h"
#include "tests/rounds.h"

using namespace tsomon;
using predict::Branches;
using predict::CellTable;
using predict::Validator;
using tsomon::testing::NaivePlayer;
using tsomon::testing::random_small_trace;
using tsomon::testing::SmallTraceShape;

namespace {

const int kRounds = rounds(1'000, 20'000);

// First events of each thread, the threads taken at random.
std::vector<uint32_t> random_order(const Trace& trace, uint32_t threads, std::mt19937& random) {
  std::vector<std::vector<uint32_t>> rest(threads);
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    rest[trace.events[i].thread].push_back(i);
  }
  for (auto& mine : rest) {
    mine.resize(random() % 4 == 0 ? random() % (mine.size() + 1) : mine.size());
    std::reverse(mine.begin(), mine.end());
  }
  std::vector<uint32_t> order;
  uint32_t thread = 0;
  while (std::any_of(rest.begin(), rest.end(), [](const auto& mine) { return !mine.empty(); })) {
    thread = random() % 3 == 0 ? static_cast<uint32_t>(random() % threads) : thread;
    if (rest[thread].empty()) {
      thread = (thread + 1) % threads;
      continue;
    }
    order.push_back(rest[thread].back());
    rest[thread].pop_back();
  }
  return order;
}

}  // namespace

TEST_CASE("the validator accepts what the definition allows, and nothing else") {
  std::mt19937 random(3);
  uint64_t allowed = 0;
  uint64_t refused = 0;
  for (int round = 0; round < kRounds; ++round) {
    SmallTraceShape shape;
    shape.threads = 2 + static_cast<uint32_t>(random() % 2);
    shape.events = 8;
    shape.forks = random() % 2 == 0;
    shape.messages = random() % 3 == 0;
    shape.semaphores = random() % 3 == 0;
    shape.reader_locks = random() % 2 == 0;
    shape.exchanges = random() % 3 == 0;
    const Trace trace = random_small_trace(random, shape);
    const Branches branches = random() % 3 == 0   ? Branches::kAfterEveryRead
                              : random() % 2 == 0 ? Branches::kAsRecorded
                                                  : Branches::kNone;
    const CellTable cells(trace);
    const auto edges = predict::hard_edges(trace, cells);
    Validator validator(trace, cells, edges, branches);
    const NaivePlayer player(trace, branches);
    for (int again = 0; again < 4; ++again) {
      const auto order = random_order(trace, shape.threads, random);
      const bool expected = player.allows(order);
      REQUIRE(validator.check_order(order).empty() == expected);
      ++(expected ? allowed : refused);
      // The same with a start that is as in the trace.
      const auto start = static_cast<uint32_t>(random() % 5);
      std::vector<uint32_t> tail;
      std::copy_if(order.begin(), order.end(), std::back_inserter(tail),
                   [&](uint32_t event) { return event >= start; });
      const std::vector<uint32_t> whole = predict::Witness{start, tail}.whole();
      REQUIRE(validator.check_order(tail, start).empty() == player.allows(whole));
    }
  }
  CHECK(allowed > 1000);
  CHECK(refused > 1000);
}

TEST_CASE("the validator says what is wrong") {
  Trace trace;
  const auto add = [&](uint32_t thread, EventKind kind, uint64_t address) {
    Event event;
    event.thread = thread;
    event.set_kind(kind);
    event.address = address;
    trace.add(event, 0, 0);
  };
  add(0, EventKind::kAcquire, 9);
  add(0, EventKind::kWrite, 1);
  add(0, EventKind::kRelease, 9);
  add(1, EventKind::kAcquire, 9);
  add(1, EventKind::kRead, 1);
  add(1, EventKind::kRelease, 9);
  const CellTable cells(trace);
  const auto edges = predict::hard_edges(trace, cells);
  Validator validator(trace, cells, edges, Branches::kAfterEveryRead);
  const auto check = [&](std::vector<uint32_t> order) { return validator.check_order(order); };
  CHECK(check({0, 1, 2, 3, 4, 5}).empty());
  CHECK(check({0, 2}) == "event 2 comes out of its thread's order");
  CHECK(check({0, 0}) == "event 0 comes out of its thread's order");
  CHECK(check({0, 3}) == "event 3 acquires a lock that another thread holds");
  CHECK(check({3, 4}) == "event 4 reads another write than it did");
  CHECK(check({6}) == "there is no event 6");
  CHECK(validator.check_race(std::vector<uint32_t>{0, 1}) == "the last two events do not conflict");
}

TEST_CASE("bytes of one thread alone may be in accesses of others' bytes") {
  const auto trace = read_std_text(
      "T1|fork(T2)|1\nT1|w(0x100+4)|2\nT1|r(0x100+8)|3\nT2|r(0x104+4)|4\nT2|w(0x104+4)|5\nT1|w("
      "0x104+4)|6\n",
      "test");
  REQUIRE(trace.has_value());
  const CellTable cells(*trace);
  const auto edges = predict::hard_edges(*trace, cells);
  Validator validator(*trace, cells, edges, Branches::kAfterEveryRead);
  CHECK(validator.check_race(std::vector<uint32_t>{3, 1, 2, 4, 5}, 1).empty());
  CHECK_FALSE(validator.check_race(std::vector<uint32_t>{3, 4, 1, 2, 5}, 1).empty());
}
