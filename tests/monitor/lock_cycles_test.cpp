// Cycles through a lock's own location are shown by what the lock guards, where that is possible.
#include "monitor/judge/lock_cycles.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/std/reader.h"
#include "monitor/judge/watch.h"
#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tests/tso/sequences.h"
#include "tso/check/cycle.h"
#include "tso/model/location_table.h"
#include "tso/model/relation.h"
#include "tso/model/units.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

bool is_lock(const ReportedAccess& access) { return (kind_mask(access.kind) & kinds::kLocks) != 0; }

bool through_lock(const ReportedCycle& cycle) {
  return std::any_of(cycle.steps.begin(), cycle.steps.end(), [&](const ReportedStep& step) {
    const ReportedAccess& from = cycle.accesses[step.from];
    const ReportedAccess& to = cycle.accesses[step.to];
    return is_lock(from) && is_lock(to) && from.thread_id != to.thread_id;
  });
}

// What a watch reports after each event; the last of all: at the end.
std::vector<std::vector<ReportedFinding>> reported(const Trace& trace,
                                                   const WatchOptions& options) {
  std::vector<std::vector<ReportedFinding>> found(1);
  Watch watch(trace.symbols, options,
              [&](const ReportedFinding& each) { found.back().push_back(each); });
  EventBlock block;
  for (size_t e = 0; e < trace.events.size(); ++e) {
    block.clear();
    block.append(trace, e, e + 1);
    watch.add(block);
    found.emplace_back();
  }
  watch.finish();
  return found;
}

Trace parsed(std::string_view text) {
  auto trace = read_std_text(text, "test");
  REQUIRE(trace);
  return std::move(*trace);
}

// Whether units of these events have a cycle of orders that are certain and not between events of a
// lock: by all pairs.
bool cycle_of_data_by_hand(const Trace& trace, const std::set<UnitId>& wanted,
                           const UnitTable& units) {
  const LocationTable locations(trace);
  const Relation relation(trace, locations, RelationOptions());
  std::vector<uint32_t> events;
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    if (is(trace.events[e], kinds::kNodes) && wanted.count(units.of_event(e)) != 0) {
      events.push_back(e);
    }
  }
  std::map<UnitId, std::set<UnitId>> after;
  for (const uint32_t e : events) {
    for (const uint32_t f : events) {
      if (e != f && relation.between(e, f) == Order::kBefore &&
          !orders_lock(trace.events[e], trace.events[f])) {
        after[units.of_event(e)].insert(units.of_event(f));
      }
    }
  }
  // The closure of a handful of units.
  for (size_t round = 0; round < wanted.size(); ++round) {
    for (auto& [unit, reached] : after) {
      const std::set<UnitId> known = reached;
      for (const UnitId next : known) {
        if (next != unit) {
          reached.insert(after[next].begin(), after[next].end());
        }
      }
    }
  }
  return std::any_of(after.begin(), after.end(), [&](const auto& each) {
    const auto& [unit, reached] = each;
    return std::any_of(reached.begin(), reached.end(), [&, unit = unit](UnitId next) {
      return next != unit && after[next].count(unit) != 0;
    });
  });
}

}  // namespace

TEST_CASE("a unit that takes its lock twice is reported by the data, when it is over") {
  const Trace trace = parsed(
      "A|begin(move)|\nA|acq(l)|a:1\nA|r(x)|a:2\nA|rel(l)|a:3\n"
      "B|begin(add)|\nB|acq(l)|b:1\nB|r(x)|b:2\nB|w(x)|b:3\nB|rel(l)|b:4\nB|end|\n"
      "A|acq(l)|a:4\nA|begin|\nA|w(x)|a:5\nA|end|\nA|rel(l)|a:6\nA|end|\nA|r(y)|\n");
  const auto found = reported(trace, {});
  for (size_t e = 0; e < found.size(); ++e) {
    CHECK(found[e].size() == (e == 15 ? 1 : 0));  // not at the second acquisition, nor inside
  }
  const ReportedFinding& only = found[15].front();
  CHECK(only.definite());
  CHECK_FALSE(through_lock(only.cycle));
  REQUIRE(only.cycle.steps.size() == 2);
  for (const char* place : {"a:2", "a:5", "b:3"}) {
    CHECK_MESSAGE(only.text().find(place) != std::string::npos, only.text());
  }
  CHECK(only.text().find("acquire") == std::string::npos);
}

TEST_CASE("without data, or without an end, the lock tells") {
  const std::string open =
      "A|begin(move)|\nA|acq(l)|a:1\nA|rel(l)|a:3\n"
      "B|begin(add)|\nB|acq(l)|b:1\nB|rel(l)|b:4\nB|end|\nA|acq(l)|a:4\n";
  for (const std::string& text : {open, open + "A|rel(l)|\nA|end|\n"}) {
    uint64_t findings = 0;
    for (const auto& each : reported(parsed(text), {})) {
      for (const ReportedFinding& found : each) {
        ++findings;
        CHECK(found.definite());
        CHECK(through_lock(found.cycle));
      }
    }
    CHECK(findings == 1);
  }
}

TEST_CASE("a unit that does not end waits for so many events and no more") {
  std::string text =
      "A|begin(move)|\nA|acq(l)|\nA|r(x)|\nA|rel(l)|\nB|acq(l)|\nB|w(x)|\nB|rel(l)|\nA|acq(l)|\n"
      "A|r(x)|\n";
  for (uint64_t i = 0; i < LockCycles::kPatience + 10; ++i) {
    text += "B|r(y)|\n";
  }
  const auto found = reported(parsed(text), {});
  size_t at = 0;
  while (at < found.size() && found[at].empty()) {
    ++at;
  }
  CHECK(at > LockCycles::kPatience);
  CHECK(at + 1 < found.size());
  REQUIRE(at < found.size());
  CHECK_FALSE(through_lock(found[at].front().cycle));
}

TEST_CASE("a cycle of a lock is reported only where its units have none of data") {
  constexpr uint64_t kSeed = 20261125;
  const int kRounds = rounds(2'000, 20'000);
  std::mt19937_64 random(kSeed);
  int of_locks = 0;
  int of_data = 0;
  for (int round = 0; round < kRounds; ++round) {
    RandomTraceOptions made;
    made.threads = 2 + static_cast<uint32_t>(random() % 3);
    made.locations = 1 + static_cast<uint32_t>(random() % 4);
    made.steps = 6 + static_cast<uint32_t>(random() % 40);
    made.units = 25;
    made.locks = 40;
    made.lock_count = 1 + static_cast<uint32_t>(random() % 2);
    made.fences = static_cast<uint32_t>(random() % 2) * 10;
    made.nesting = random() % 2 == 0;
    made.waits = random() % 4 == 0 ? 10 : 0;
    made.intervals = random() % 3 == 0;
    const Trace trace = in_stream_order(random_trace(random, made).trace);
    INFO("seed " << kSeed << " round " << round << "\n" << show(trace));
    const UnitTable units(trace);
    for (const auto& each : reported(trace, {})) {
      for (const ReportedFinding& found : each) {
        if (!found.definite() || !through_lock(found.cycle)) {
          of_data += found.definite() ? 1 : 0;
          continue;
        }
        ++of_locks;
        std::set<UnitId> wanted;
        for (const ReportedStep& step : found.cycle.steps) {
          wanted.insert(units.of_event(static_cast<size_t>(found.cycle.accesses[step.from].index)));
        }
        INFO(found.text());
        REQUIRE_FALSE(cycle_of_data_by_hand(trace, wanted, units));
      }
    }
  }
  MESSAGE(of_data << " definite findings by data, " << of_locks << " by a lock alone");
  CHECK(of_data > kRounds / 20);
  CHECK(of_locks > kRounds / 100);
}
