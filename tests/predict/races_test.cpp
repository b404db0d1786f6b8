// Predicted races against all reorderings of small traces.
#include "offline/predict/races.h"

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
using predict::predict_races;
using predict::Query;
using predict::RaceOptions;
using predict::RaceResult;
using tsomon::testing::NaivePlayer;
using tsomon::testing::random_small_trace;
using tsomon::testing::same_for_jobs;
using tsomon::testing::small_windows;
using tsomon::testing::SmallTraceShape;
using tsomon::testing::Tally;
using tsomon::testing::text;

namespace {

const int kRounds = rounds(300, 3'000);

using Pairs = std::set<std::pair<uint32_t, uint32_t>>;

Pairs pairs_of(const RaceResult& result) {
  Pairs pairs;
  for (const auto& race : result.races) {
    pairs.emplace(race.first, race.second);
  }
  return pairs;
}

// Compares everything that is reported and everything that there is.
Tally compare(uint32_t seed, int rounds, const SmallTraceShape& shape, Branches branches,
              bool sync_preserving) {
  std::mt19937 random(seed);
  Tally tally;
  for (int round = 0; round < rounds; ++round) {
    const Trace trace = random_small_trace(random, shape);
    RaceOptions options;
    options.branches = branches;
    options.sync_preserving = sync_preserving;
    options.windows = small_windows(round);
    const RaceResult result = predict_races(trace, options);
    tally.invalid += result.invalid;
    const Pairs found = pairs_of(result);
    const Pairs all = NaivePlayer(trace, result.branches).races();
    for (const auto& pair : found) {
      CAPTURE(text(trace));
      CAPTURE(pair.first);
      CAPTURE(pair.second);
      REQUIRE(all.count(pair) == 1);
    }
    tally.feasible += all.size();
    tally.refused += all.size() - found.size();
    if (shape.threads == 2 && !shape.exchanges && found != all) {
      for (const auto& pair : all) {
        if (found.count(pair) == 0) {
          CAPTURE(text(trace));
          CAPTURE(pair.first);
          CAPTURE(pair.second);
          REQUIRE(found.count(pair) == 1);
        }
      }
    }
  }
  return tally;
}

Trace parse(const char* lines) {
  auto trace = read_std_text(lines, "test");
  REQUIRE(trace.has_value());
  return *trace;
}

RaceResult races_in(const char* lines, Branches branches = Branches::kAuto) {
  RaceOptions options;
  options.branches = branches;
  return predict_races(parse(lines), options);
}

}  // namespace

TEST_CASE("two threads: exactly the races of all reorderings") {
  SmallTraceShape shape;
  uint32_t seed = 1;
  for (const Branches branches :
       {Branches::kAsRecorded, Branches::kAfterEveryRead, Branches::kNone}) {
    for (const bool sync_preserving : {true, false}) {
      for (const bool forks : {false, true}) {
        shape.forks = forks;
        shape.reader_locks = !forks && !sync_preserving;
        shape.messages = forks && sync_preserving;
        const Tally tally = compare(seed++, kRounds / 2, shape, branches, sync_preserving);
        CHECK(tally.invalid == 0);
        CHECK(tally.refused == 0);
        CHECK(tally.feasible > 0);
      }
    }
  }
}

TEST_CASE("three and four threads: nothing that cannot be, and how much is missed") {
  for (const uint32_t threads : {3U, 4U}) {
    for (const Branches branches : {Branches::kAsRecorded, Branches::kAfterEveryRead}) {
      SmallTraceShape shape;
      shape.threads = threads;
      shape.events = threads == 3 ? 13 : 12;
      Tally sum;
      for (const bool forks : {false, true}) {
        shape.forks = forks;
        shape.messages = forks;
        const Tally tally = compare(100 + threads, kRounds / 2, shape, branches, true);
        CHECK(tally.invalid == 0);
        sum.feasible += tally.feasible;
        sum.refused += tally.refused;
      }
      std::printf("%u threads, branches %s: %llu of %llu feasible races refused\n", threads,
                  branches == Branches::kAsRecorded ? "as recorded" : "after every read",
                  static_cast<unsigned long long>(sum.refused),
                  static_cast<unsigned long long>(sum.feasible));
      CHECK(sum.refused * 100 <= sum.feasible);
    }
  }
}

TEST_CASE("reader locks and atomic exchanges: nothing that cannot be") {
  SmallTraceShape shape;
  shape.threads = 3;
  shape.reader_locks = true;
  shape.exchanges = true;
  shape.variables = 3;
  for (const Branches branches :
       {Branches::kAsRecorded, Branches::kAfterEveryRead, Branches::kNone}) {
    const Tally tally = compare(7, kRounds / 2, shape, branches, true);
    CHECK(tally.invalid == 0);
  }
}

TEST_CASE("atomic accesses race with plain ones, not with one another, byte by byte") {
  const auto count = [](const char* lines) { return races_in(lines).races.size(); };
  CHECK(count("T1|rmw(x)|1\nT2|w(x)|2\n") == 1);
  CHECK(count("T1|rmw(x)|1\nT2|r(x)|2\n") == 1);
  CHECK(count("T1|rmw(x)|1\nT2|rmw(x)|2\n") == 0);
  CHECK(count("-|atomics()|\nT1|w(x=1)|1\nT2|w(x=2)|2\n") == 0);
  CHECK(count("-|atomics()|\nT1|w(x=1)|1\nT2|w(x)|2\n") == 1);
  CHECK(count("T1|w(x=1)|1\nT2|w(x=2)|2\n") == 1);
  // A locked operation on one byte says nothing of the accesses around it.
  const RaceResult wide =
      races_in("T0|rmw(0x10+1)|0\nT1|w(0x10+2)|1\nT2|w(0x10+2)|2\nT3|rmw(0x11+1)|3\n");
  CHECK(wide.races.size() == 5);
}

TEST_CASE("semaphores: nothing that cannot be, and all of two threads") {
  for (const uint32_t threads : {2U, 3U, 4U}) {
    for (const bool sync_preserving : {true, false}) {
      SmallTraceShape shape;
      shape.threads = threads;
      shape.events = threads == 4 ? 13 : 14;
      shape.locks = 1;
      shape.semaphores = true;
      shape.forks = threads == 3;
      const Branches branches = sync_preserving ? Branches::kAsRecorded : Branches::kNone;
      const Tally tally = compare(300 + threads, kRounds / 2, shape, branches, sync_preserving);
      CHECK(tally.invalid == 0);
      CHECK(tally.feasible > 0);
      std::printf("%u threads with semaphores: %llu of %llu feasible races refused\n", threads,
                  static_cast<unsigned long long>(tally.refused),
                  static_cast<unsigned long long>(tally.feasible));
      CHECK(tally.refused * 20 <= tally.feasible);
    }
  }
}

TEST_CASE("a take is bound to the count alone") {
  // Either post may be the one that lets the take go on.
  const char* either =
      "T1|count(s=0)|9\nT1|w(x)|0\nT1|post(s)|1\nT2|post(s)|2\nT3|take(s)|3\nT3|w(x)|4\n";
  CHECK(pairs_of(races_in(either)) == Pairs{{1, 5}});
  // Two takes need both.
  const char* both =
      "T1|count(s=0)|9\nT1|w(x)|0\nT1|post(s)|1\nT2|post(s)|2\nT3|take(s)|3\nT3|take(s)|5\nT3|w(x)|"
      "4\n";
  CHECK(races_in(both).races.empty());
  CHECK(races_in(both).candidates == 0);
  // One that is there at first is enough.
  const char* first = "T1|count(s=1)|9\nT1|w(x)|0\nT1|post(s)|1\nT3|take(s)|3\nT3|w(x)|4\n";
  CHECK(pairs_of(races_in(first)) == Pairs{{1, 4}});
  // Somebody else posts, too: nothing is known but that it went well like that.
  const char* unknown = "T1|w(x)|0\nT1|w(y)|1\nT3|take(s)|3\nT3|w(x)|4\n";
  CHECK(races_in(unknown).races.empty());
  // As a lock.
  const char* lock =
      "T1|count(s=1)|9\nT1|take(s)|0\nT1|w(x)|1\nT1|post(s)|2\nT2|take(s)|3\nT2|w(x)|4\nT2|post(s)|"
      "5\n";
  CHECK(races_in(lock).races.empty());
}

TEST_CASE("an atomic load of what a send is named after receives it") {
  Trace trace = parse("T1|w(y)|0\nT1|send(z)|1\nT2|r(z)|2\nT2|w(y)|3\n");
  RaceOptions options;
  options.branches = Branches::kNone;
  CHECK(predict_races(trace, options).races.size() == 1);
  trace.events[2].set_atomic();
  CHECK(predict_races(trace, options).races.empty());
}

TEST_CASE("what is sent before what is received is no race") {
  const char* lines =
      "T1|w(x)|0\nT1|send(file)|1\nT2|receive(file)|2\nT2|w(x)|3\nT3|receive(other)|4\nT3|w(y)|5\n"
      "T1|send(other)|6\nT1|w(y)|7\n";
  const RaceResult result = races_in(lines);
  REQUIRE(result.races.size() == 1);  // what is received first does not wait for the send
  CHECK(result.races[0].first == 5);
  CHECK(result.races[0].second == 7);
}

TEST_CASE("a race that needs sections in the other order and a read that is free") {
  // The sections of l would have to be exchanged, and e5 would read the initial value.
  const char* free =
      "T2|acq(l)|0\nT2|r(y)|1\nT2|w(x)|2\nT2|rel(l)|3\n"
      "T1|acq(l)|4\nT1|r(x)|5\nT1|w(x)|6\nT1|rel(l)|7\nT1|w(y)|8\n";
  const RaceResult with_free = races_in(free, Branches::kAsRecorded);
  REQUIRE(with_free.races.size() == 1);
  CHECK(with_free.races.front().first == 1);
  CHECK(with_free.races.front().second == 8);
  CHECK(with_free.races.front().tier == predict::Tier::kClosure);
  CHECK(races_in(free, Branches::kAfterEveryRead).races.empty());
  const RaceResult bound = races_in(
      "T2|acq(l)|0\nT2|r(y)|1\nT2|w(x)|2\nT2|rel(l)|3\n"
      "T1|acq(l)|4\nT1|r(x)|5\nT1|branch|9\nT1|w(x)|6\nT1|rel(l)|7\nT1|w(y)|8\n");
  CHECK(bound.branches == Branches::kAsRecorded);
  CHECK(bound.races.empty());
  CHECK(bound.candidates == 0);
}

TEST_CASE("ranges of bytes: a read that two writes made") {
  // The branch after the read of four bytes needs both writes.
  const RaceResult result = races_in(
      "T1|w(0x100+2)|0\nT2|w(0x102+2)|1\nT3|r(0x100+4)|2\nT3|branch|3\nT3|w(0x200+1)|4\n"
      "T1|w(0x200+1)|5\n");
  Pairs expected = {{0, 2}, {1, 2}, {4, 5}};
  CHECK(pairs_of(result) == expected);
}

TEST_CASE("an object that is freed is not the next one at its address") {
  const char* lines =
      "T1|alloc(0x100+8)|0\nT1|w(0x100+8)|1\nT1|free(0x100)|2\n"
      "T2|alloc(0x100+8)|3\nT2|w(0x100+8)|4\nT2|free(0x100)|5\n";
  CHECK(races_in(lines).races.empty());
}

TEST_CASE("a lock that was held when the trace began") {
  CHECK(races_in("T1|w(x)|0\nT1|rel(l)|1\nT2|acq(l)|2\nT2|w(x)|3\nT2|rel(l)|4\n").races.empty());
}

TEST_CASE("a reader's lock that was held when the trace began keeps no reader out") {
  CHECK(races_in("T1|r(x)|0\nT1|rrel(l)|1\nT2|racq(l)|2\nT2|w(x)|3\nT2|rrel(l)|4\n").races.size() ==
        1);
  CHECK(races_in("T1|r(x)|0\nT1|rrel(l)|1\nT2|acq(l)|2\nT2|w(x)|3\nT2|rel(l)|4\n").races.empty());
}

TEST_CASE("a witness in short is that witness") {
  std::mt19937 random(5);
  SmallTraceShape shape;
  shape.threads = 3;
  shape.events = 30;
  int kept = 0;
  for (int round = 0; round < 200; ++round) {
    const Trace trace = random_small_trace(random, shape);
    RaceOptions options;
    const RaceResult whole = predict_races(trace, options);
    options.max_witness_events = 0;
    const RaceResult in_short = predict_races(trace, options);
    REQUIRE(whole.races.size() == in_short.races.size());
    for (size_t i = 0; i < whole.races.size(); ++i) {
      const predict::ShortWitness& brief = in_short.races[i].brief;
      if (brief.tail.empty()) {
        CHECK(in_short.races[i].witness == whole.races[i].witness);
        continue;
      }
      std::vector<uint32_t> order;
      for (uint32_t event = 0; event < trace.events.size(); ++event) {
        const auto last = std::find_if(brief.last.begin(), brief.last.end(), [&](uint32_t other) {
          return trace.events[other].thread == trace.events[event].thread;
        });
        if (last != brief.last.end() && event <= *last) {
          order.push_back(event);
        }
      }
      order.insert(order.end(), brief.tail.begin(), brief.tail.end());
      CHECK(order == whole.races[i].witness);
      ++kept;
    }
  }
  CHECK(kept > 50);
}

TEST_CASE("windows: what is found among the latest events is valid, what is missed is said") {
  std::mt19937 random(6);
  SmallTraceShape shape;
  shape.threads = 3;
  shape.events = 40;
  int missed = 0;
  for (int round = 0; round < 300; ++round) {
    const Trace trace = random_small_trace(random, shape);
    RaceOptions options;
    options.sync_preserving = false;
    const Pairs all = pairs_of(predict_races(trace, options));
    options.windows = {2, 2, 8};
    const RaceResult some = predict_races(trace, options);
    const Pairs found = pairs_of(some);
    CHECK(some.invalid == 0);
    REQUIRE(std::includes(all.begin(), all.end(), found.begin(), found.end()));
    REQUIRE((found == all || some.windowed));
    missed += found == all ? 0 : 1;
  }
  CHECK(missed > 0);
}

TEST_CASE("the result does not depend on how many threads search") {
  SmallTraceShape shape;
  shape.threads = 4;
  shape.events = 3'000;
  shape.variables = 40;
  shape.locks = 3;
  same_for_jobs<RaceOptions>(
      8, shape, Branches::kAsRecorded,
      [](Query& query, const RaceOptions& options) { return predict_races(query, options); },
      [](const RaceResult& one, const RaceResult& four) {
        REQUIRE(one.races.size() == four.races.size());
        for (size_t i = 0; i < one.races.size(); ++i) {
          CHECK(one.races[i].first == four.races[i].first);
          CHECK(one.races[i].second == four.races[i].second);
          CHECK(one.races[i].witness == four.races[i].witness);
          CHECK(one.races[i].brief.tail == four.races[i].brief.tail);
        }
        return one.races.size();
      });
}

TEST_CASE("one report for a pair of source locations") {
  const RaceResult result = races_in("T1|w(x)|a\nT1|w(x)|a\nT2|w(x)|b\nT2|w(x)|b\n");
  CHECK(result.races.size() == 1);
  CHECK(result.candidates == 1);
}

TEST_CASE("work that ends early says so") {
  WorkMeter meter({1, UINT64_MAX});
  const WorkScope scope(&meter);
  std::mt19937 random(1);
  SmallTraceShape shape;
  shape.events = 40'000;
  const RaceResult result = predict_races(random_small_trace(random, shape), {});
  CHECK_FALSE(result.complete());
  CHECK(result.ended == WorkLimit::kWork);
}

TEST_CASE("what a common lock keeps apart costs no work for each pair") {
  std::string lines;
  for (int i = 0; i < 20'000; ++i) {
    const char* const thread = i % 2 == 0 ? "T1" : "T2";
    for (const char* op : {"acq(l)|1", "r(x)|2", "w(x)|3", "rel(l)|4"}) {
      lines += thread;
      lines += "|";
      lines += op;
      lines += "\n";
    }
  }
  WorkMeter meter;
  const WorkScope scope(&meter);
  const RaceResult result = races_in(lines.c_str());
  CHECK(result.candidates == 0);
  CHECK(meter.work() < 20'000'000);
}
