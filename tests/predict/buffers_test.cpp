// Predictions under TSO against all executions of small traces.
#include <algorithm>
#include <array>
#include <cstdio>
#include <random>
#include <set>

#include <doctest/doctest.h>

#include "decoders/std/reader.h"
#include "offline/predict/atomicity.h"
#include "offline/predict/deadlocks.h"
#include "offline/predict/races.h"
#include "offline/predict/validator.h"
#include "offline/predict/witness.h"
#include "tests/predict/small_buffers.h"
#include "tests/predict/small_traces.h"
#include "tests/rounds.h"

using namespace tsomon;
using predict::Branches;
using predict::kCommit;
using predict::Query;
using tsomon::testing::NaiveBuffers;
using tsomon::testing::random_small_trace;
using tsomon::testing::small_windows;
using tsomon::testing::SmallTraceShape;
using tsomon::testing::Tally;
using tsomon::testing::text;

namespace {

const int kRounds = rounds(200, 1'000);

template <typename Set>
void add_to(Tally* tally, const Set& found, const Set& all, const Set& exact) {
  tally->feasible += exact.size();
  for (const auto& one : exact) {
    tally->refused += found.count(one) == 0 ? 1 : 0;
  }
  REQUIRE(std::includes(all.begin(), all.end(), found.begin(), found.end()));
}

// The shapes of all tests here.
SmallTraceShape random_shape(std::mt19937& random, uint32_t threads) {
  SmallTraceShape shape;
  shape.threads = threads;
  shape.events = threads == 2 ? 12 : 11;
  shape.variables = 2 + random() % 2;
  shape.locks = random() % 3;
  shape.forks = random() % 4 == 0;
  shape.exchanges = random() % 3 == 0;
  shape.reader_locks = random() % 4 == 0;
  shape.wide = random() % 3 == 0;
  shape.fences = random() % 4 == 0;
  return shape;
}

Branches random_branches(std::mt19937& random) {
  return std::array<Branches, 3>{Branches::kAsRecorded, Branches::kAfterEveryRead,
                                 Branches::kNone}[random() % 3];
}

void print(const char* what, uint32_t threads, const Tally& tally) {
  std::printf("TSO, %u threads: %llu of %llu feasible %s refused\n", threads,
              static_cast<unsigned long long>(tally.refused),
              static_cast<unsigned long long>(tally.feasible), what);
}

}  // namespace

TEST_CASE("races under TSO: nothing that cannot be, and how much is missed") {
  for (const uint32_t threads : {2U, 3U}) {
    std::mt19937 random(threads);
    Tally tally;
    for (int round = 0; round < kRounds; ++round) {
      const Trace trace = random_small_trace(random, random_shape(random, threads));
      const Branches branches = random_branches(random);
      Query query(trace, branches, small_windows(round), true);
      predict::RaceOptions options;
      options.sync_preserving = round % 2 == 0;
      const auto result = predict::predict_races(query, options);
      CAPTURE(text(trace));
      CAPTURE(static_cast<int>(branches));
      REQUIRE(result.invalid == 0);
      const NaiveBuffers naive(trace, branches, true);
      std::set<std::pair<uint32_t, uint32_t>> found;
      for (const auto& race : result.races) {
        found.emplace(race.first, race.second);
        CAPTURE(race.first);
        CAPTURE(race.second);
        auto order = race.witness;
        order.resize(order.size() - 2);
        REQUIRE(naive.allows(order, 0));
      }
      add_to(&tally, found, naive.races(), NaiveBuffers(trace, branches, false).races());
    }
    print("races", threads, tally);
    CHECK(tally.feasible > 100);
    CHECK(tally.refused * 100 <= tally.feasible);
  }
}

TEST_CASE("deadlocks under TSO: nothing that cannot be, and how much is missed") {
  for (const uint32_t threads : {2U, 3U}) {
    std::mt19937 random(10 + threads);
    Tally tally;
    for (int round = 0; round < kRounds; ++round) {
      SmallTraceShape shape = random_shape(random, threads);
      shape.mostly_locks = true;
      shape.locks = threads;
      shape.events = 17;
      shape.exchanges = false;
      const Trace trace = random_small_trace(random, shape);
      const Branches branches = random_branches(random);
      Query query(trace, branches, small_windows(round), true);
      const auto result = predict::predict_deadlocks(query, {round % 2 == 0});
      CAPTURE(text(trace));
      CAPTURE(static_cast<int>(branches));
      REQUIRE(result.invalid == 0);
      const NaiveBuffers naive(trace, branches, true);
      std::set<std::vector<uint32_t>> found;
      for (const auto& deadlock : result.deadlocks) {
        auto requests = deadlock.requests;
        std::sort(requests.begin(), requests.end());
        found.insert(requests);
        REQUIRE(naive.allows(deadlock.witness, 0));
      }
      add_to(&tally, found, naive.deadlocks(), NaiveBuffers(trace, branches, false).deadlocks());
    }
    print("deadlocks", threads, tally);
    CHECK(tally.feasible > 0);
    CHECK(tally.refused * 50 <= tally.feasible);
  }
}

TEST_CASE("atomicity under TSO: nothing that cannot be, and how much is missed") {
  for (const uint32_t threads : {2U, 3U}) {
    std::mt19937 random(20 + threads);
    Tally tally;
    uint64_t late = 0;
    for (int round = 0; round < kRounds; ++round) {
      SmallTraceShape shape = random_shape(random, threads);
      shape.units = true;
      shape.events = threads == 2 ? 13 : 12;
      const Trace trace = random_small_trace(random, shape);
      const Branches branches = random_branches(random);
      const UnitTable units(trace);
      Query query(trace, branches, small_windows(round), true);
      const auto result = predict::predict_atomicity(query, {round % 2 == 0, UINT64_MAX, true});
      CAPTURE(text(trace));
      CAPTURE(static_cast<int>(branches));
      REQUIRE(result.invalid == 0);
      const NaiveBuffers naive(trace, branches, true);
      std::set<uint32_t> found;
      for (const auto& violation : result.violations) {
        found.insert(violation.last);
        CAPTURE(violation.last);
        REQUIRE(naive.allows(violation.witness, 2));
      }
      const auto exact = NaiveBuffers(trace, branches, false).closing(units).news;
      const auto sc = tsomon::testing::NaivePlayer(trace, branches).closing(units).all;
      late += static_cast<uint64_t>(std::count_if(
          found.begin(), found.end(), [&](uint32_t last) { return sc.count(last) == 0; }));
      add_to(&tally, found, naive.closing(units).all, exact);
    }
    print("ends of cycles", threads, tally);
    std::printf("TSO, %u threads: %llu ends of cycles need a store that commits late\n", threads,
                static_cast<unsigned long long>(late));
    CHECK(tally.feasible > 100);
    CHECK(late > 0);
    CHECK(tally.refused * 5 <= tally.feasible);  // also where a store passes the end of its unit
  }
}

namespace {

// Issues and commits at random, of each thread in their order; now and then one is wrong.
std::vector<uint32_t> random_steps(const Trace& trace, uint32_t threads, std::mt19937& random) {
  std::vector<std::vector<uint32_t>> issues(threads);
  std::vector<std::vector<uint32_t>> commits(threads);
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    issues[event.thread].push_back(i);
    if (is(event, kinds::kStores)) {
      commits[event.thread].push_back(i);
    }
  }
  std::vector<size_t> issued(threads);
  std::vector<size_t> committed(threads);
  std::vector<uint32_t> steps;
  const size_t length = 4 + random() % 12;
  uint32_t thread = 0;
  for (size_t tries = 0; steps.size() < length && tries < 100; ++tries) {
    thread = random() % 3 == 0 ? static_cast<uint32_t>(random() % threads) : thread;
    const bool waits = committed[thread] < commits[thread].size() &&
                       (issued[thread] == issues[thread].size() ||
                        commits[thread][committed[thread]] < issues[thread][issued[thread]]);
    if ((waits && random() % 2 == 0) || random() % 40 == 0) {
      if (committed[thread] < commits[thread].size()) {
        steps.push_back(commits[thread][committed[thread]++] | kCommit);
      }
    } else if (issued[thread] < issues[thread].size()) {
      steps.push_back(issues[thread][issued[thread]++]);
    }
  }
  return steps;
}

// The store of a unit may wait until its load is done.
constexpr const char* kStoreBuffering =
    "T1|begin(one)|1\nT1|w(x)|2\nT1|r(y)|3\nT1|end|4\n"
    "T2|begin(other)|5\nT2|w(y)|6\nT2|r(x)|7\nT2|end|8\n";

predict::AtomicityResult violations_in(const std::string& lines, bool buffers) {
  const auto trace = read_std_text(lines, "test");
  REQUIRE(trace.has_value());
  Query query(*trace, resolved(Branches::kAuto, *trace), {}, buffers);
  return predict::predict_atomicity(query);
}

}  // namespace

TEST_CASE("the validator accepts what the abstract machine does, and nothing else") {
  std::mt19937 random(5);
  uint64_t allowed = 0;
  uint64_t refused = 0;
  for (int round = 0; round < 20 * kRounds; ++round) {
    SmallTraceShape shape = random_shape(random, 2 + random() % 2);
    shape.events = 8;
    const Trace trace = random_small_trace(random, shape);
    const Branches branches = random_branches(random);
    const predict::CellTable cells(trace);
    const auto edges = predict::hard_edges(trace, cells);
    predict::Validator validator(trace, cells, edges, branches, true);
    const NaiveBuffers naive(trace, branches, true);
    const std::vector<uint32_t> steps = random_steps(trace, shape.threads, random);
    const bool valid = naive.allows(steps, 0);
    const std::string wrong = validator.check_order(steps);
    CAPTURE(text(trace));
    CAPTURE(wrong);
    CAPTURE(static_cast<int>(branches));
    std::string order;
    for (const uint32_t entry : steps) {
      order += (entry & kCommit) != 0 ? " commit " : " ";
      order += std::to_string(entry & ~kCommit);
    }
    CAPTURE(order);
    REQUIRE(valid == wrong.empty());
    ++(valid ? allowed : refused);
  }
  CHECK(allowed > 100);
  CHECK(refused > 100);
}

TEST_CASE("two units that store and load: only buffers let both load first") {
  // That both see what the other one stores is another matter.
  CHECK(violations_in(kStoreBuffering, false).violations.size() == 1);
  const auto result = violations_in(kStoreBuffering, true);
  REQUIRE(result.violations.size() == 2);
  const auto& violation = result.violations.front();
  // The load of y before the store there commits, the load of x before the store of x commits.
  CHECK(violation.first == 2);
  CHECK(violation.to == 5);
  CHECK(violation.from == 6);
  CHECK(violation.last == 1);
  CHECK(violation.witness == std::vector<uint32_t>{0, 1, 2, 4, 5, 5 | kCommit, 6, 1 | kCommit});
  // A fence in the unit, and its store is there before its load.
  std::string fenced = kStoreBuffering;
  fenced.insert(fenced.find("T1|r(y)"), "T1|fence|9\n");
  CHECK(violations_in(fenced, true).violations.size() == 1);
}

TEST_CASE("a race behind a lock that only buffers allow") {
  // T1 has to be in the section of l last, so that x holds its first value again before that.
  const char* lines =
      "T1|acq(l)|1\nT1|w(x)|2\nT1|r(y)|3\nT1|w(z)|4\nT1|rel(l)|5\n"
      "T3|acq(l)|6\nT3|w(x)|7\nT3|rel(l)|8\n"
      "T2|w(y)|9\nT2|r(x)|10\nT2|w(z)|11\n";
  const auto trace = read_std_text(lines, "test");
  REQUIRE(trace.has_value());
  for (const bool buffers : {false, true}) {
    Query query(*trace, Branches::kAfterEveryRead, {}, buffers);
    const auto result = predict::predict_races(query, {});
    const bool found = std::any_of(result.races.begin(), result.races.end(), [](const auto& race) {
      return race.first == 3 && race.second == 10;
    });
    CHECK(found == buffers);
    CHECK(result.invalid == 0);
  }
}
