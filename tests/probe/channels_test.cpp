// What the kernel hands from thread to thread is in the recording.
#include <string>

#include <doctest/doctest.h>

#include "tests/probe/recorded_program.h"

using namespace tsomon;
using namespace tsomon::probe_tests;

TEST_CASE("a send comes before the receive of what descriptors hand over") {
  constexpr uint64_t kWays = 7;
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run result = run(compiler, "channels", "");
    CHECK(result.status == 0);
    const Trace trace = read(result.path).trace;
    for (uint64_t way = 0; way < kWays; ++way) {
      CAPTURE(way);
      uint32_t uses = 0;
      ThreadId giver = 0;
      std::map<uint64_t, uint32_t> sent;  // by the giver after its use
      bool ordered = false;
      for (uint32_t i = 0; i < trace.events.size(); ++i) {
        const Event& event = trace.events[i];
        if (event.kind() == EventKind::kWrite &&
            event.address == result.said.at("place") + 8 * way) {
          giver = event.thread;
          ++uses;
          CHECK((uses == 1 || ordered));
        } else if (uses == 1 && event.kind() == EventKind::kSend && event.thread == giver) {
          sent.emplace(event.address, i);
        } else if (uses == 1 && event.kind() == EventKind::kReceive && event.thread != giver &&
                   sent.count(event.address) != 0) {
          ordered = true;
        }
      }
      CHECK(uses == 2);
    }
  }
}
