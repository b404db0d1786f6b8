// What the detector keeps does not grow with the length of its input.
#include <algorithm>
#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include "online/detector/detector.h"
#include "tests/tso/mini_trace.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

// The most at the end of any block.
struct Kept {
  uint64_t locations = 0;
  uint64_t units = 0;
};

// In blocks as a reader makes them, with the sweeps that the detector itself finds worth while.
Kept watch(const Trace& trace, DetectorPolicy policy) {
  constexpr uint64_t kBlock = 1'000;
  DetectorOptions options;
  options.policy = policy;
  Detector detector(trace.symbols, options, {});
  Kept kept;
  EventBlock block;
  for (uint64_t first = 0; first < trace.events.size(); first += kBlock) {
    block.clear();
    block.append(trace, first, std::min<uint64_t>(first + kBlock, trace.events.size()));
    detector.add(block, first);
    const DetectorStatistics now = detector.statistics();
    kept.locations = std::max(kept.locations, now.locations);
    kept.units = std::max(kept.units, now.retained);
  }
  detector.finish();
  CHECK(detector.complete());
  return kept;
}

}  // namespace

TEST_CASE("memory that is used once is forgotten") {
  constexpr int kRounds = 3'000;
  for (const bool in_units : {false, true}) {
    Trace trace;
    uint64_t address = uint64_t{1} << 40;
    const auto add = [&](ThreadId thread, EventKind kind, uint32_t size) {
      Event event;
      event.thread = thread;
      event.set_kind(kind);
      event.size = size;
      event.address = size != 0 ? address += size : 0;
      const auto time = static_cast<int64_t>(trace.events.size());
      trace.add(event, time, time);
    };
    for (int round = 0; round < kRounds; ++round) {
      for (ThreadId thread = 0; thread < 2; ++thread) {
        if (in_units) {
          add(thread, EventKind::kUnitBegin, 0);
        }
        for (int i = 0; i < 40; ++i) {
          add(thread, EventKind::kWrite, 8);
        }
        add(thread, EventKind::kFence, 0);
        if (in_units) {
          add(thread, EventKind::kUnitEnd, 0);
        }
      }
    }
    for (const DetectorPolicy policy :
         {DetectorPolicy::kTso, DetectorPolicy::kSc, DetectorPolicy::kAtomicSets}) {
      INFO("policy " << static_cast<int>(policy) << " in units " << in_units);
      CHECK(watch(trace, policy).locations < 8'000);
    }
  }
}

// As pthread_cond_wait does: whether the store that gave the lock back has committed is not known
// until the thread is awake again.
TEST_CASE("a thread that sleeps since it gave a lock back holds up nothing") {
  std::string text = "T0:acq(m) W(z) rel(m) F T2:acq(m) W(z) W(y) acq(n) F rel(n) ";
  for (int i = 0; i < 5'000; ++i) {
    text += "T0:acq(m) W(z) rel(m) F T1:[acq(m) R(z) rel(m) F] T0:[acq(l) W(x) rel(l) F] ";
  }
  CHECK(watch(mini_trace(text), DetectorPolicy::kTso).units < 2'000);
}
