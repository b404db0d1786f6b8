// Predicted atomicity violations against all reorderings of small traces.
#include "offline/predict/atomicity.h"

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
using predict::AtomicityResult;
using predict::Branches;
using predict::Query;
using tsomon::testing::NaivePlayer;
using tsomon::testing::random_small_trace;
using tsomon::testing::same_for_jobs;
using tsomon::testing::small_windows;
using tsomon::testing::SmallTraceShape;
using tsomon::testing::Tally;
using tsomon::testing::text;

namespace {

const int kRounds = rounds(200, 2'000);

Tally compare(uint32_t seed, const SmallTraceShape& shape, Branches branches) {
  std::mt19937 random(seed);
  Tally tally;
  for (int round = 0; round < kRounds; ++round) {
    const Trace trace = random_small_trace(random, shape);
    Query query(trace, branches, small_windows(round));
    const AtomicityResult result =
        predict::predict_atomicity(query, {round % 2 == 0, UINT64_MAX, true});
    REQUIRE(result.invalid == 0);
    REQUIRE(result.complete());
    std::set<uint32_t> found;
    for (const auto& violation : result.violations) {
      found.insert(violation.last);
    }
    const auto [all, news] = NaivePlayer(trace, branches).closing(UnitTable(trace));
    CAPTURE(text(trace));
    REQUIRE(std::includes(all.begin(), all.end(), found.begin(), found.end()));
    tally.feasible += news.size();
    for (const uint32_t last : news) {
      CAPTURE(last);
      tally.refused += found.count(last) == 0 ? 1 : 0;
      REQUIRE((found.count(last) != 0 || shape.threads > 2 || shape.exchanges));
    }
  }
  return tally;
}

AtomicityResult violations_in(const std::string& lines, Branches branches = Branches::kAuto) {
  const auto trace = read_std_text(lines, "test");
  REQUIRE(trace.has_value());
  Query query(*trace, resolved(branches, *trace));
  return predict::predict_atomicity(query);
}

}  // namespace

TEST_CASE("atomicity: nothing that cannot be, and all of two threads") {
  for (const uint32_t threads : {2U, 3U, 4U}) {
    for (const Branches branches :
         {Branches::kAsRecorded, Branches::kAfterEveryRead, Branches::kNone}) {
      SmallTraceShape shape;
      shape.threads = threads;
      shape.events = threads == 2 ? 16 : 15;
      shape.units = true;
      shape.forks = branches == Branches::kAfterEveryRead;
      shape.messages = branches == Branches::kNone;
      shape.semaphores = branches == Branches::kAsRecorded && threads != 4;
      const Tally tally = compare(20 + threads, shape, branches);
      std::printf("%u threads: %llu of %llu feasible ends of cycles refused\n", threads,
                  static_cast<unsigned long long>(tally.refused),
                  static_cast<unsigned long long>(tally.feasible));
      CHECK(tally.feasible > 60);
      CHECK(tally.refused * 10 <= tally.feasible);
    }
  }
}

TEST_CASE("atomicity: exchanges and reader locks, nothing that cannot be") {
  for (const Branches branches :
       {Branches::kAsRecorded, Branches::kAfterEveryRead, Branches::kNone}) {
    SmallTraceShape shape;
    shape.threads = 2;
    shape.events = 14;
    shape.units = true;
    shape.exchanges = true;
    shape.reader_locks = true;
    CHECK(compare(31, shape, branches).feasible > 0);
  }
}

TEST_CASE("atomicity: the result does not depend on how many threads search") {
  SmallTraceShape shape;
  shape.threads = 4;
  shape.events = 700;
  shape.variables = 40;
  shape.locks = 3;
  shape.units = true;
  same_for_jobs<predict::AtomicityOptions>(
      8, shape, Branches::kAsRecorded,
      [](Query& query, const predict::AtomicityOptions& options) {
        return predict::predict_atomicity(query, options);
      },
      [](const AtomicityResult& one, const AtomicityResult& four) {
        REQUIRE(one.violations.size() == four.violations.size());
        for (size_t i = 0; i < one.violations.size(); ++i) {
          CHECK(one.violations[i].first == four.violations[i].first);
          CHECK(one.violations[i].to == four.violations[i].to);
          CHECK(one.violations[i].from == four.violations[i].from);
          CHECK(one.violations[i].last == four.violations[i].last);
          CHECK(one.violations[i].witness == four.violations[i].witness);
          CHECK(one.violations[i].brief.tail == four.violations[i].brief.tail);
        }
        return one.violations.size();
      });
}

TEST_CASE("the two-access patterns that no serial order explains") {
  for (const std::string first : {"r", "w"}) {
    for (const std::string remote : {"r", "w"}) {
      for (const std::string last : {"r", "w"}) {
        std::string lines = "T1|begin(u)|0\nT1|" + first + "(x)|1\nT1|" + last +
                            "(x)|2\nT1|end|0\nT2|" + remote + "(x)|3\n";
        CAPTURE(lines);
        const bool conflicts = (first == "w" || remote == "w") && (remote == "w" || last == "w");
        const AtomicityResult result = violations_in(lines);
        REQUIRE(result.violations.size() == (conflicts ? 1 : 0));
        if (conflicts) {
          CHECK(result.violations.front().witness == std::vector<uint32_t>{0, 1, 4, 2});
        }
      }
    }
  }
}

TEST_CASE("a lock that is given back within a unit") {
  const auto unit = [](const char* thread, bool let_go) {
    std::string lines;
    for (const std::string op : {"begin(u)|1", "acq(l)|2", "r(x)|3", "rel(l)|4", "acq(l)|5",
                                 "w(x)|6", "rel(l)|7", "end|8"}) {
      if (let_go || (op != "rel(l)|4" && op != "acq(l)|5")) {
        lines += thread + ("|" + op) + "\n";
      }
    }
    return lines;
  };
  // The other thread is known to come later only where its read is bound.
  const std::string buggy = unit("T1", true) + unit("T2", true);
  CHECK(violations_in(buggy, Branches::kNone).violations.size() == 1);
  CHECK(violations_in(buggy, Branches::kAfterEveryRead).violations.empty());
  const std::string writer = unit("T1", true) + "T2|acq(l)|10\nT2|w(x)|11\nT2|rel(l)|12\n";
  const AtomicityResult result = violations_in(writer);
  REQUIRE(result.violations.size() == 1);
  CHECK(result.violations.front().witness == std::vector<uint32_t>{0, 1, 2, 3, 8, 9, 10, 4, 5});
  const std::string held = unit("T1", false) + unit("T2", false) + "T3|acq(l)|10\nT3|w(x)|11\n";
  CHECK(violations_in(held, Branches::kNone).candidates == 0);
}

TEST_CASE("a cycle through two locations, by one unit and by two events") {
  const std::string reader = "T1|begin(u)|0\nT1|r(x)|1\nT1|r(y)|2\nT1|end|0\n";
  const AtomicityResult result =
      violations_in(reader + "T2|begin(v)|0\nT2|w(y)|3\nT2|w(x)|4\nT2|end|0\n");
  REQUIRE(result.violations.size() == 1);
  CHECK(result.violations.front().to == 2);
  CHECK(result.violations.front().from == 1);
  CHECK(violations_in(reader + "T2|w(x)|3\nT2|w(y)|4\n").violations.size() == 1);
  CHECK(violations_in(reader + "T2|w(y)|3\nT2|w(x)|4\n").violations.empty());
}

TEST_CASE("a cycle of three units, no two of which violate anything") {
  const std::string lines =
      "T1|begin(a)|0\nT1|w(x)|1\nT1|w(y)|2\nT1|end|3\n"
      "T2|begin(b)|4\nT2|w(y)|5\nT2|w(z)|6\nT2|end|7\n"
      "T3|begin(c)|8\nT3|w(z)|9\nT3|w(x)|10\nT3|end|11\n";
  const AtomicityResult result = violations_in(lines);
  REQUIRE(result.violations.size() == 1);
  const auto& violation = result.violations.front();
  CHECK(violation.via.size() == 2);
  CHECK(std::set<uint32_t>{violation.first, violation.last, violation.to, violation.from,
                           violation.via[0],
                           violation.via[1]} == std::set<uint32_t>{1, 2, 5, 6, 9, 10});
  CHECK(violation.witness.back() == violation.last);
  // With a lock around two of them they still can; with one around each they cannot.
  std::string locked = lines;
  for (const std::string thread : {"T1", "T2", "T3"}) {
    const size_t begin = locked.find(thread + "|w");
    locked.insert(begin, thread + "|acq(l)|0\n");
    locked.insert(locked.find(thread + "|end"), thread + "|rel(l)|0\n");
    CHECK(violations_in(locked).violations.size() == (thread != "T3" ? 1U : 0U));
  }
}
