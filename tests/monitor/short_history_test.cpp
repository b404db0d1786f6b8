// What a check and a watch say with a history of a few events, against the whole trace and against
// all of its executions: they may know less, and nothing else.
#include <algorithm>
#include <optional>
#include <random>
#include <tuple>

#include <doctest/doctest.h>

#include "monitor/findings/event_count.h"
#include "monitor/judge/check.h"
#include "monitor/judge/stream_check.h"
#include "monitor/judge/watch.h"
#include "tests/rounds.h"
#include "tests/tso/executions.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/plain_units.h"
#include "tests/tso/random_trace.h"
#include "tests/tso/sequences.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(1'500, 30'000);

constexpr uint64_t kMaxSteps = 20'000;  // of executions that are enumerated for one trace

CheckReport streamed(const Trace& trace, const CheckOptions& options, size_t block_events) {
  StreamCheck check(trace.symbols, options);
  EventBlock block;
  for (size_t first = 0; first < trace.events.size(); first += block_events) {
    block.clear();
    block.append(trace, first, std::min(first + block_events, trace.events.size()));
    check.add(block);
  }
  auto report = check.finish(trace.complete, trace.lost_events);
  REQUIRE_MESSAGE(report.has_value(), report.error().to_string());
  return *report;
}

WatchSummary watched(const Trace& trace, const WatchOptions& options, size_t block_events) {
  Watch watch(trace.symbols, options, [](const ReportedFinding&) {});
  EventBlock block;
  for (size_t first = 0; first < trace.events.size(); first += block_events) {
    block.clear();
    block.append(trace, first, std::min(first + block_events, trace.events.size()));
    watch.add(block);
  }
  watch.finish();
  return watch.summary();
}

struct Asked {
  RandomTraceOptions made;
  CheckOptions check;
  WatchOptions watch;
  size_t block_events = 1;
};

Asked random_question(std::mt19937_64& random) {
  Asked asked;
  RandomTraceOptions& made = asked.made;
  made.threads = 2 + static_cast<uint32_t>(random() % 3);
  made.locations = 1 + static_cast<uint32_t>(random() % 4);
  made.steps = random() % 2 == 0 ? 4 + static_cast<uint32_t>(random() % 5)
                                 : 6 + static_cast<uint32_t>(random() % 60);
  made.units = 20 + static_cast<uint32_t>(random() % 3) * 10;
  made.waits = random() % 3 == 0 ? 0 : 10 + static_cast<uint32_t>(random() % 2) * 15;
  made.locked = static_cast<uint32_t>(random() % 2) * 15;
  made.fences = static_cast<uint32_t>(random() % 3) * 10;
  made.locks = random() % 3 == 0 ? 30 : 0;
  made.lock_count = 1 + static_cast<uint32_t>(random() % 2);
  made.store_buffer = random() % 4 == 0 ? 1 + static_cast<uint32_t>(random() % 2) : 0;
  made.nesting = random() % 2 == 0;
  made.intervals = random() % 2 == 0;
  made.mixed_sizes = random() % 3 == 0;
  made.threads_start = random() % 5 == 0;
  // Of mixed sizes a part of the trace may have values that can be compared where the whole has
  // not.
  made.values = !made.mixed_sizes && random() % 2 == 0;
  constexpr Property kProperties[] = {Property::kSerializability, Property::kScSerializability,
                                      Property::kAtomicSets};
  asked.check.property = kProperties[random() % 3];
  asked.check.history_events = 2 + random() % 63;
  asked.check.analysis.relation.store_buffer = made.store_buffer;
  asked.watch.detector.policy =
      asked.check.property == Property::kAtomicSets          ? DetectorPolicy::kAtomicSets
      : asked.check.property == Property::kScSerializability ? DetectorPolicy::kSc
                                                             : DetectorPolicy::kTso;
  asked.watch.detector.relation.store_buffer = made.store_buffer;
  asked.watch.detector.history_events = asked.check.history_events;
  if (asked.check.property == Property::kScSerializability) {
    asked.watch.analysis.property = Property::kScSerializability;
  }
  asked.block_events = 1 + random() % 7;
  return asked;
}

}  // namespace

TEST_CASE("short histories know less than the whole trace, and nothing else") {
  constexpr uint64_t kSeed = 2511;
  std::mt19937_64 random(kSeed);
  int verdicts[4] = {};
  int less = 0;
  int executions_seen = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Asked asked = random_question(random);
    const Trace trace = in_stream_order(random_trace(random, asked.made).trace);
    INFO("seed " << kSeed << " round " << round << " property "
                 << static_cast<int>(asked.check.property) << " history "
                 << asked.check.history_events << " store buffer " << asked.made.store_buffer
                 << "\n"
                 << show(trace));
    const auto whole = check_trace(trace, asked.check);
    REQUIRE(whole.has_value());
    const CheckReport stream = streamed(trace, asked.check, asked.block_events);
    const WatchSummary watch = watched(trace, asked.watch, asked.block_events);
    std::optional<Verdict> truth;
    if (asked.check.property == Property::kSerializability && asked.made.steps < 9) {
      truth = Executions(trace, asked.check.analysis.relation)
                  .verdict(Property::kSerializability, asked.made.values, kMaxSteps);
      executions_seen += truth ? 1 : 0;
    }
    for (const auto& [judged, complete, gaps] :
         {std::tuple(stream.verdict(), stream.complete(), stream.notes.size()),
          std::tuple(watch.verdict(), watch.complete(), watch.notes.size())}) {
      const Verdict verdict = judged;
      CAPTURE(static_cast<int>(verdict));
      REQUIRE((complete || gaps > 0));
      for (const std::optional<Verdict> other : {std::optional(whole->verdict()), truth}) {
        if (other && *other != Verdict::kInconclusive) {
          REQUIRE((verdict != Verdict::kClean || *other == Verdict::kClean));
          REQUIRE((verdict != Verdict::kDefinite || *other == Verdict::kDefinite));
        }
      }
      less += verdict == whole->verdict() ? 0 : 1;
    }
    ++verdicts[static_cast<int>(stream.verdict())];
  }
  MESSAGE(kRounds << " traces: " << verdicts[0] << " clean, " << verdicts[1] << " possible, "
                  << verdicts[2] << " definite, " << verdicts[3] << " inconclusive; " << less
                  << " of twice as many known less of; " << executions_seen
                  << " compared with all executions");
  CHECK(executions_seen > kRounds / 20);
  for (const int each : verdicts) {
    CHECK(each > kRounds / 100);
  }
}

TEST_CASE("atomic sets conflict by their own bytes") {
  constexpr uint64_t kSeed = 2512;
  constexpr uint64_t kBase = 0x1000;
  constexpr uint64_t kBytes = 11;
  std::mt19937_64 random(kSeed);
  int violated = 0;
  int outside = 0;
  for (int round = 0; round < kRounds / 3; ++round) {
    RandomTraceOptions made;
    made.threads = 2 + static_cast<uint32_t>(random() % 2);
    made.steps = 4 + static_cast<uint32_t>(random() % 20);
    made.units = 30;
    made.waits = random() % 3 == 0 ? 15 : 0;
    made.nesting = random() % 2 == 0;
    made.locked = static_cast<uint32_t>(random() % 2) * 15;
    made.mixed_sizes = true;
    Trace trace = random_trace(random, made).trace;
    // Several sets of several ranges each, which may overlap.
    std::vector<uint64_t> labels = {trace.symbols.labels.intern("all"),
                                    trace.symbols.labels.intern("other;none")};
    const size_t count = 1 + random() % 3;
    for (size_t set = 0; set < count; ++set) {
      AtomicSet made_set{std::string(1, static_cast<char>('A' + set)), {}};
      for (size_t range = 0; range < 1 + random() % 3; ++range) {
        const uint64_t first = random() % kBytes;
        made_set.members.push_back({kBase + first, static_cast<uint32_t>(1 + random() % 3)});
      }
      labels.push_back(trace.symbols.labels.intern("of;" + made_set.name));
      trace.symbols.sets.push_back(std::move(made_set));
    }
    for (Event& event : trace.events) {
      if (event.kind() == EventKind::kUnitBegin) {
        event.address = labels[random() % labels.size()];
      }
    }
    INFO("seed " << kSeed << " round " << round << "\n" << show(trace));
    // By the definition: for each byte of a set, who accesses it in which order.
    size_t cyclic_sets = 0;
    for (const AtomicSet& set : trace.symbols.sets) {
      const std::vector<uint32_t> units = numbered(plain_units(trace, [&](const Event& begin) {
        const auto names =
            unit_sets(trace.symbols.labels.text(static_cast<uint32_t>(begin.address)));
        return names.empty() || std::find(names.begin(), names.end(), set.name) != names.end();
      }));
      const size_t n = trace.events.size();
      std::vector<std::vector<bool>> reach(n, std::vector<bool>(n, false));
      for (uint64_t byte = kBase; byte < kBase + 2 * kBytes; ++byte) {
        const bool member =
            std::any_of(set.members.begin(), set.members.end(), [&](const LocationKey& key) {
              return key.address <= byte && byte < key.address + key.size;
            });
        for (uint32_t e = 0; e < n && member; ++e) {
          for (uint32_t f = e + 1; f < n; ++f) {
            const auto on_byte = [&](const Event& event) {
              return is(event, kinds::kAccesses) && event.size != 0 && event.address <= byte &&
                     byte < event.address + event.size;
            };
            const bool writes = trace.events[e].kind() != EventKind::kRead ||
                                trace.events[f].kind() != EventKind::kRead;
            if (writes && on_byte(trace.events[e]) && on_byte(trace.events[f])) {
              reach[units[e]][units[f]] = reach[units[e]][units[f]] || units[e] != units[f];
            }
          }
        }
      }
      for (size_t k = 0; k < n; ++k) {
        for (size_t i = 0; i < n; ++i) {
          for (size_t j = 0; reach[i][k] && j < n; ++j) {
            reach[i][j] = reach[i][j] || reach[k][j];
          }
        }
      }
      bool cyclic = false;
      for (size_t i = 0; i < n; ++i) {
        cyclic = cyclic || reach[i][i];
      }
      cyclic_sets += cyclic ? 1 : 0;
    }
    CheckOptions options;
    options.property = Property::kAtomicSets;
    const auto whole = check_trace(trace, options);
    REQUIRE(whole.has_value());
    REQUIRE(whole->complete());
    REQUIRE(whole->violations() == cyclic_sets);
    REQUIRE(whole->verdict() == (cyclic_sets > 0 ? Verdict::kDefinite : Verdict::kClean));
    for (const uint64_t history : {uint64_t{1000}, 2 + random() % 63}) {
      options.history_events = history;
      REQUIRE(streamed(trace, options, 1 + random() % 7).verdict() == whole->verdict());
    }
    violated += cyclic_sets > 0 ? 1 : 0;
    // With all bytes of the accesses there would be more.
    Trace everything = trace;
    for (AtomicSet& set : everything.symbols.sets) {
      set.members = {{kBase, 2 * kBytes}};
    }
    outside += check_trace(everything, options)->violations() > cyclic_sets ? 1 : 0;
  }
  MESSAGE(violated << " violated, " << outside << " only by bytes outside of a set");
  CHECK(violated > kRounds / 30);
  CHECK(outside > kRounds / 100);
}
