// The report of a check does not depend on how many threads made it.
#include <algorithm>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "monitor/judge/stream_check.h"
#include "tests/rounds.h"
#include "tests/tso/random_trace.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(8, 60);

// Candidates that have nothing to do with each other: between two of them all buffers are empty.
Trace candidates(std::mt19937_64& random, int count) {
  RandomTraceOptions made;
  made.threads = 2 + static_cast<uint32_t>(random() % 4);
  made.locations = 2 + static_cast<uint32_t>(random() % 4);
  made.units = 30;
  made.locked = 0;
  made.fences = static_cast<uint32_t>(random() % 2) * 10;
  made.values = random() % 2 == 0;
  made.intervals = random() % 2 == 0;
  Trace all;
  int64_t time = 100;
  for (int i = 0; i < count; ++i) {
    made.steps = 5 + static_cast<uint32_t>(random() % 120);
    const Trace one = random_trace(random, made).trace;
    all.symbols = one.symbols;
    std::vector<uint32_t> depth(made.threads, 0);
    const auto add = [&](const Event& event, int64_t lo, int64_t hi,
                         std::optional<uint64_t> read = {}, std::optional<uint64_t> written = {}) {
      Event own = event;
      own.has_hi = own.has_read_value = own.has_write_value = 0;
      all.add(own, lo, hi, read, written);
    };
    int64_t end = time;
    for (const Event& event : one.events) {
      depth[event.thread] += event.kind() == EventKind::kUnitBegin ? 1 : 0;
      depth[event.thread] -= event.kind() == EventKind::kUnitEnd ? 1 : 0;
      add(event, time + one.lo(event), time + one.hi(event), one.read_value(event),
          one.write_value(event));
      end = std::max(end, time + one.hi(event) + 1);
    }
    for (uint32_t t = 0; t < made.threads; ++t) {
      Event last;
      last.thread = t;
      last.set_kind(EventKind::kUnitEnd);
      for (; depth[t] > 0; --depth[t]) {
        add(last, end, end);
      }
      last.set_kind(EventKind::kFence);
      add(last, end, end);
      ++end;
    }
    time = end + 100;
  }
  return all;
}

std::string judge(const Trace& trace, const CheckOptions& options, size_t block_events) {
  Result<CheckReport> report;
  if (StreamCheck::can_check(options)) {
    StreamCheck check(trace.symbols, options);
    EventBlock block;
    for (size_t first = 0; first < trace.events.size(); first += block_events) {
      block.clear();
      block.append(trace, first, std::min(first + block_events, trace.events.size()));
      check.add(block);
    }
    report = check.finish(true, 0);
  } else {
    report = check_trace(trace, options);
  }
  return report ? report_json("input", trace.symbols, *report).dump() : report.error().to_string();
}

}  // namespace

TEST_CASE("one job and four give the same report") {
  constexpr uint64_t kSeed = 99;
  std::mt19937_64 random(kSeed);
  int violations = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Trace trace = candidates(random, 30);
    CheckOptions options;
    options.property = static_cast<Property>(random() % 3);
    // Bounds that are used up on the way: what a group may cost depends on those before it.
    if (random() % 2 == 0) {
      options.analysis.bounds.max_steps = 50 + random() % 300;
      options.analysis.max_total_steps = 100 + random() % 1000;
    }
    if (random() % 3 == 0) {
      options.analysis.bounds.max_work = 100'000;
      options.analysis.max_total_work = 100'000 + random() % 1'000'000;
    }
    if (random() % 2 == 0) {
      options.history_events = 300 + random() % 600;
    }
    const size_t block = 50 + random() % 1000;
    INFO("seed " << kSeed << " round " << round << " property "
                 << static_cast<int>(options.property));
    options.jobs = 1;
    const std::string alone = judge(trace, options, block);
    options.jobs = 4;
    REQUIRE(judge(trace, options, block) == alone);
    violations += alone.find("\"violations\":0") == std::string::npos ? 1 : 0;
  }
  CHECK(violations > kRounds / 4);
}

TEST_CASE("progress is counted") {
  std::mt19937_64 random(5);
  const Trace trace = candidates(random, 20);
  for (const Property property : {Property::kSerializability, Property::kRobustness}) {
    CheckOptions options;
    Progress progress;
    options.property = property;
    options.progress = &progress;
    judge(trace, options, 100);
    CHECK(progress.events == trace.events.size());
    CHECK(progress.groups > 5);
    CHECK(progress.searched == progress.groups);
  }
}
