// What watching an endless stream without fences takes: bytes and steps, counted.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <malloc.h>

#include "monitor/judge/watch.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr uint64_t kBlockEvents = 4096;

struct Taken {
  uint64_t most_bytes = 0;  // allocated at once, beside what was there before
  uint64_t steps = 0;
  uint64_t findings = 0;
  uint64_t retained = 0;  // units, in the end
};

uint64_t allocated() {
  const struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

// Threads that take turns at random: units of a load and a store of a few locations. Nothing of it
// is kept here.
Taken watch(uint64_t events, ThreadId threads) {
  Symbols symbols;
  for (ThreadId thread = 0; thread < threads; ++thread) {
    symbols.threads.intern("T" + std::to_string(thread));
  }
  symbols.labels.intern("unit");
  Taken taken;
  WatchOptions options;
  options.detector.history_events = 1 << 15;
  const uint64_t before = allocated();
  WorkMeter meter;
  {
    const WorkScope scope(&meter);
    Watch watch(symbols, options, [&](const ReportedFinding&) { ++taken.findings; });
    std::mt19937_64 random(27);
    std::vector<uint32_t> at(threads, 0);
    EventBlock block;
    for (uint64_t made = 0; made < events;) {
      block.clear();
      for (uint64_t end = std::min(events, made + kBlockEvents); made < end; ++made) {
        const auto thread = static_cast<ThreadId>(random() % threads);
        constexpr EventKind kUnit[] = {EventKind::kUnitBegin, EventKind::kRead, EventKind::kWrite,
                                       EventKind::kUnitEnd};
        Event event;
        event.set_kind(kUnit[at[thread]++ % 4]);
        event.thread = thread;
        if (is(event, kinds::kAccesses)) {
          event.address = 64 * (1 + random() % 4);
          event.size = 8;
        }
        const auto time = static_cast<int64_t>(made);
        block.add(event, time, time, std::nullopt, std::nullopt);
      }
      watch.add(block);
      taken.most_bytes = std::max(taken.most_bytes, allocated() - std::min(allocated(), before));
    }
    watch.finish();
    taken.retained = watch.summary().detector.retained;
  }
  taken.steps = meter.work();
  return taken;
}

}  // namespace

TEST_CASE("an endless stream without fences takes bounded memory, and work in proportion") {
  for (const ThreadId threads : {2U, 4U}) {
    const Taken first = watch(10'000, threads);
    const Taken some = watch(100'000, threads);
    const Taken many = watch(1'000'000, threads);
    MESSAGE(threads << " threads: " << first.most_bytes << ", " << some.most_bytes << ", "
                    << many.most_bytes << " bytes; " << first.steps / 10'000 << ", "
                    << some.steps / 100'000 << ", " << many.steps / 1'000'000
                    << " steps for each event");
    CHECK(first.findings > 0);
    CHECK(many.most_bytes <= some.most_bytes + some.most_bytes / 4);
    CHECK(many.retained <= some.retained + 1);
    // What comes after the first 100,000 events costs no more for each than they did.
    CHECK((many.steps - some.steps) / 900'000 <= some.steps / 100'000);
  }
}

}  // namespace tsomon
