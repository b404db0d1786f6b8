// A thread that sleeps leaves nothing in its store buffer, and what follows begins after its sleep.
#include <string>

#include <doctest/doctest.h>

#include "tests/probe/recorded_program.h"

using namespace tsomon;
using namespace tsomon::probe_tests;

TEST_CASE("a fence comes before a call that may sleep, a stamp after it") {
  constexpr uint64_t kWays = 14;
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run result = run(compiler, "sleeping", ":stamp_every=0:share=1000000");
    CHECK(result.status == 0);
    const capture::Capture capture = read(result.path);
    const Trace& trace = capture.trace;
    const uint64_t place = result.said.at("place");
    const uint32_t sleeper = trace.symbols.threads.find("T1");
    uint64_t ways = 0;
    bool stored = false;   // and not slept yet
    int64_t drained = -1;  // when the fence since then was over
    for (const Event& event : trace.events) {
      if (event.thread != sleeper) {
        continue;
      }
      if (event.kind() == EventKind::kFence && stored) {
        drained = trace.hi(event);
      } else if (event.kind() == EventKind::kWrite && event.address - place < kWays * 8) {
        CHECK(event.address == place + 8 * ways);
        if (stored) {
          CHECK(drained >= 0);
          CHECK(trace.lo(event) > drained);
          ++ways;
        }
        stored = !stored;
        drained = -1;
      }
    }
    CHECK(ways == kWays);
  }
}
