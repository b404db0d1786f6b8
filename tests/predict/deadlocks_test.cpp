// Predicted deadlocks against all reorderings of small traces.
#include "offline/predict/deadlocks.h"

#include <algorithm>
#include <cstdio>
#include <random>
#include <set>

#include <doctest/doctest.h>

#include "decoders/std/reader.h"
#include "tests/predict/same_for_jobs.h"
#include "tests/predict/small_traces.h"
#include "tests/rounds.h"

using namespace tsomon;
using predict::Branches;
using predict::DeadlockResult;
using predict::Query;
using tsomon::testing::NaivePlayer;
using tsomon::testing::random_small_trace;
using tsomon::testing::same_for_jobs;
using tsomon::testing::small_windows;
using tsomon::testing::SmallTraceShape;
using tsomon::testing::Tally;
using tsomon::testing::text;

namespace {

const int kRounds = rounds(300, 6'000);

using Circles = std::set<std::vector<uint32_t>>;

Circles circles_of(const DeadlockResult& result) {
  Circles circles;
  for (const auto& deadlock : result.deadlocks) {
    auto requests = deadlock.requests;
    std::sort(requests.begin(), requests.end());
    circles.insert(requests);
  }
  return circles;
}

Tally compare(uint32_t seed, const SmallTraceShape& shape, Branches branches) {
  std::mt19937 random(seed);
  Tally tally;
  for (int round = 0; round < kRounds; ++round) {
    const Trace trace = random_small_trace(random, shape);
    Query query(trace, branches, small_windows(round));
    const DeadlockResult result = predict::predict_deadlocks(query, {round % 2 == 0});
    REQUIRE(result.invalid == 0);
    const Circles found = circles_of(result);
    NaivePlayer naive(trace, branches);
    Circles all = naive.deadlocks();
    for (const uint32_t wait : naive.lost()) {
      all.insert({wait});
    }
    CAPTURE(text(trace));
    CAPTURE(round);
    REQUIRE(std::includes(all.begin(), all.end(), found.begin(), found.end()));
    tally.feasible += all.size();
    tally.refused += all.size() - found.size();
  }
  return tally;
}

DeadlockResult deadlocks_in(const char* lines) {
  const auto trace = read_std_text(lines, "test");
  REQUIRE(trace.has_value());
  Query query(*trace, resolved(Branches::kAuto, *trace));
  return predict::predict_deadlocks(query);
}

}  // namespace

TEST_CASE("deadlocks: nothing that cannot be, and all of two threads") {
  for (const uint32_t threads : {2U, 3U, 4U}) {
    for (const Branches branches : {Branches::kAsRecorded, Branches::kAfterEveryRead}) {
      SmallTraceShape shape;
      shape.threads = threads;
      shape.events = threads == 2 ? 16 : 18;
      shape.mostly_locks = true;
      shape.locks = threads == 2 ? 2 : 3;
      shape.forks = branches == Branches::kAfterEveryRead;
      shape.messages = shape.forks;
      shape.semaphores = threads != 4 && !shape.forks;
      const Tally tally = compare(10 + threads, shape, branches);
      std::printf("%u threads: %llu of %llu feasible deadlocks refused\n", threads,
                  static_cast<unsigned long long>(tally.refused),
                  static_cast<unsigned long long>(tally.feasible));
      CHECK(tally.feasible > 0);
      if (threads == 2) {
        CHECK(tally.refused == 0);
      }
      CHECK(tally.refused * 50 <= tally.feasible);
    }
  }
}

TEST_CASE("deadlocks of reader locks: nothing that cannot be, and all of two threads") {
  for (const bool upgrades : {false, true}) {
    for (const uint32_t threads : {2U, 3U}) {
      SmallTraceShape shape;
      shape.threads = threads;
      shape.events = 16;
      shape.mostly_locks = true;
      shape.reader_locks = true;
      shape.upgrades = upgrades;
      const Tally tally = compare(40 + threads, shape, Branches::kAsRecorded);
      std::printf("%u threads with reader locks: %llu of %llu feasible deadlocks refused\n",
                  threads, static_cast<unsigned long long>(tally.refused),
                  static_cast<unsigned long long>(tally.feasible));
      CHECK(tally.feasible > 0);
      CHECK(tally.refused * 4 <= tally.feasible);
      CHECK((tally.refused == 0 || threads > 2 || upgrades));
    }
  }
}

TEST_CASE("deadlocks with tries, waits and notifications: nothing that cannot be") {
  for (const uint32_t threads : {2U, 3U}) {
    for (const Branches branches : {Branches::kAsRecorded, Branches::kAfterEveryRead}) {
      SmallTraceShape shape;
      shape.threads = threads;
      shape.events = 13;
      shape.waits = true;
      shape.tries = true;
      shape.forks = branches == Branches::kAsRecorded;
      const Tally tally = compare(60 + threads, shape, branches);
      std::printf("%u threads with waits: %llu of %llu feasible deadlocks refused\n", threads,
                  static_cast<unsigned long long>(tally.refused),
                  static_cast<unsigned long long>(tally.feasible));
      CHECK(tally.feasible > 30);
      CHECK(tally.refused * 10 <= tally.feasible + 20);
    }
  }
}

TEST_CASE("a notification that may come before the wait, and a predicate under the mutex") {
  const char* lost =
      "T1|r(ready)|1\nT1|acq(m)|2\nT1|rel(m)|3\nT1|wait(c)|4\nT1|acq(m)|5\nT1|rel(m)|6\n"
      "T2|w(ready)|7\nT2|notify(c)|8\n";
  const DeadlockResult result = deadlocks_in(lost);
  REQUIRE(result.deadlocks.size() == 1);
  CHECK(result.deadlocks.front().kind == predict::DeadlockKind::kLostNotification);
  CHECK(result.deadlocks.front().requests == std::vector<uint32_t>{3});
  CHECK(result.deadlocks.front().holders == std::vector<uint32_t>{7});
  CHECK(result.deadlocks.front().witness == std::vector<uint32_t>{0, 1, 6, 7});
  // Read under the mutex, the predicate is false only before the notification.
  CHECK(deadlocks_in("T1|acq(m)|2\nT1|r(ready)|1\nT1|rel(m)|3\nT1|wait(c)|4\nT1|acq(m)|5\n"
                     "T1|rel(m)|6\nT2|acq(m)|1\nT2|w(ready)|7\nT2|rel(m)|9\nT2|notify(c)|8\n")
            .deadlocks.empty());
  // A thread that still waits at the end may have nothing to do.
  CHECK(deadlocks_in("T1|r(ready)|1\nT1|acq(m)|2\nT1|rel(m)|3\nT1|wait(c)|4\nT2|w(ready)|7\n"
                     "T2|notify(c)|8\n")
            .deadlocks.empty());
  // A wait that ends by time, and one that is notified again.
  std::string timed = lost;
  timed.insert(timed.find("T1|rel(m)|3"), "T1|try(c)|9\n");
  CHECK(deadlocks_in(timed.c_str()).candidates == 0);
  CHECK(deadlocks_in((std::string(lost) + "T1|w(done)|9\nT2|r(done)|9\nT2|notify(c)|9\n").c_str())
            .deadlocks.size() == 1);  // that one needs the end of the wait
  CHECK(deadlocks_in(
            (std::string("T1|w(done)|9\n") + lost + "T1|fork(T3)|9\nT3|notify(c)|9\n").c_str())
            .deadlocks.size() == 1);
  CHECK(deadlocks_in("T1|acq(m)|2\nT1|rel(m)|3\nT1|wait(c)|4\nT1|acq(m)|5\nT1|rel(m)|6\n"
                     "T2|notify(c)|8\nT1|r(x)|9\nT3|acq(n)|1\nT3|notify(c)|2\n")
            .deadlocks.front()
            .holders.size() == 2);
}

TEST_CASE("a lock that is tried holds, and does not wait") {
  const char* both = "T1|acq(a)|1\nT1|acq(b)|2\nT1|rel(b)|3\nT1|rel(a)|4\n";
  CHECK(deadlocks_in((std::string(both) +
                      "T2|acq(b)|5\nT2|try(a)|6\nT2|acq(a)|6\nT2|rel(a)|7\nT2|rel(b)|8\n")
                         .c_str())
            .candidates == 0);
  CHECK(deadlocks_in((std::string(both) +
                      "T2|try(b)|5\nT2|acq(b)|5\nT2|acq(a)|6\nT2|rel(a)|7\nT2|rel(b)|8\n")
                         .c_str())
            .deadlocks.size() == 1);
}

TEST_CASE("two readers of a lock that both ask for it alone") {
  const char* upgrade =
      "T1|racq(a)|1\nT1|r(x)|2\nT1|acq(a)|3\nT1|w(x)|4\nT1|rel(a)|5\nT1|rrel(a)|6\n"
      "T2|racq(a)|7\nT2|acq(a)|8\nT2|rel(a)|9\nT2|rrel(a)|10\n";
  const DeadlockResult result = deadlocks_in(upgrade);
  REQUIRE(result.deadlocks.size() == 1);
  CHECK(result.deadlocks.front().requests == std::vector<uint32_t>{2, 7});
  CHECK(result.deadlocks.front().holders == std::vector<uint32_t>{6, 0});
  CHECK(result.deadlocks.front().witness.size() == 3);
  // A reader that stays one does not wait.
  CHECK(deadlocks_in("T1|racq(a)|1\nT1|acq(a)|3\nT1|rel(a)|5\nT1|rrel(a)|6\n"
                     "T2|racq(a)|7\nT2|rrel(a)|10\n")
            .candidates == 0);
}

TEST_CASE("deadlocks: the result does not depend on how many threads search") {
  SmallTraceShape shape;
  shape.threads = 5;
  shape.events = 400;
  shape.variables = 40;
  shape.locks = 12;
  shape.mostly_locks = true;
  same_for_jobs<predict::DeadlockOptions>(
      9, shape, Branches::kNone,
      [](Query& query, const predict::DeadlockOptions& options) {
        return predict::predict_deadlocks(query, options);
      },
      [](const DeadlockResult& one, const DeadlockResult& four) {
        REQUIRE(one.deadlocks.size() == four.deadlocks.size());
        for (size_t i = 0; i < one.deadlocks.size(); ++i) {
          CHECK(one.deadlocks[i].requests == four.deadlocks[i].requests);
          CHECK(one.deadlocks[i].holders == four.deadlocks[i].holders);
          CHECK(one.deadlocks[i].witness == four.deadlocks[i].witness);
          CHECK(one.deadlocks[i].brief.tail == four.deadlocks[i].brief.tail);
        }
        return one.deadlocks.size();
      });
}

TEST_CASE("a circle of three threads, and one that a fourth lock keeps apart") {
  const auto circle = [](bool gate) {
    std::string lines;
    const std::string locks = "abca";
    for (size_t i = 0; i < 3; ++i) {
      const std::string outer = gate ? "g" : std::to_string(i);
      for (const std::string& op :
           {"acq(" + outer, std::string("acq(") + locks[i], std::string("acq(") + locks[i + 1],
            std::string("rel(") + locks[i + 1], std::string("rel(") + locks[i], "rel(" + outer}) {
        lines.append("T").append(std::to_string(i)).append("|").append(op).append(")|1\n");
      }
    }
    return lines;
  };
  CHECK(deadlocks_in(circle(true).c_str()).candidates == 0);
  const DeadlockResult result = deadlocks_in(circle(false).c_str());
  REQUIRE(result.deadlocks.size() == 1);
  CHECK(result.deadlocks.front().requests.size() == 3);
}

TEST_CASE("an inversion of two locks, and what keeps it from locking up") {
  const char* inversion =
      "T1|acq(a)|1\nT1|acq(b)|2\nT1|rel(b)|3\nT1|rel(a)|4\n"
      "T2|acq(b)|5\nT2|acq(a)|6\nT2|rel(a)|7\nT2|rel(b)|8\n";
  const DeadlockResult result = deadlocks_in(inversion);
  REQUIRE(result.deadlocks.size() == 1);
  CHECK(result.deadlocks.front().requests == std::vector<uint32_t>{1, 5});
  CHECK(result.deadlocks.front().holders == std::vector<uint32_t>{4, 0});
  CHECK(result.deadlocks.front().witness == std::vector<uint32_t>{0, 4});
  CHECK(deadlocks_in("T1|acq(g)|0\nT1|acq(a)|1\nT1|acq(b)|2\nT1|rel(b)|3\nT1|rel(a)|4\n"
                     "T1|rel(g)|9\nT2|acq(g)|0\nT2|acq(b)|5\nT2|acq(a)|6\nT2|rel(a)|7\n"
                     "T2|rel(b)|8\nT2|rel(g)|9\n")
            .candidates == 0);
  CHECK(deadlocks_in("T1|acq(a)|1\nT1|acq(b)|2\nT1|rel(b)|3\nT1|rel(a)|4\n"
                     "T1|acq(b)|5\nT1|acq(a)|6\nT1|rel(a)|7\nT1|rel(b)|8\nT2|acq(a)|9\n")
            .candidates == 0);
  // The second thread starts when the first one is done.
  CHECK(deadlocks_in("T1|acq(a)|1\nT1|acq(b)|2\nT1|rel(b)|3\nT1|rel(a)|4\nT1|fork(T2)|0\n"
                     "T2|acq(b)|5\nT2|acq(a)|6\nT2|rel(a)|7\nT2|rel(b)|8\n")
            .candidates == 0);
}

TEST_CASE("readers wait for writers only") {
  CHECK(deadlocks_in("T1|racq(a)|1\nT1|acq(b)|2\nT1|rel(b)|3\nT1|rrel(a)|4\n"
                     "T2|acq(b)|5\nT2|racq(a)|6\nT2|rrel(a)|7\nT2|rel(b)|8\n")
            .deadlocks.empty());
  CHECK(deadlocks_in("T1|racq(a)|1\nT1|acq(b)|2\nT1|rel(b)|3\nT1|rrel(a)|4\n"
                     "T2|acq(b)|5\nT2|acq(a)|6\nT2|rel(a)|7\nT2|rel(b)|8\n")
            .deadlocks.size() == 1);
}

TEST_CASE("dining philosophers: a circle of five threads") {
  std::string lines;
  for (int i = 0; i < 5; ++i) {
    const std::string thread = std::to_string(i);
    const std::string left = std::to_string(i);
    const std::string right = std::to_string((i + 1) % 5);
    for (const std::string& op :
         {"acq(f" + left, "acq(f" + right, "rel(f" + right, "rel(f" + left}) {
      lines += thread;
      lines += "|" + op + ")|" + thread + "\n";
    }
  }
  const DeadlockResult result = deadlocks_in(lines.c_str());
  REQUIRE(result.deadlocks.size() == 1);
  CHECK(result.deadlocks.front().requests.size() == 5);
}
