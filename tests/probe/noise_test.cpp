#include <string>

#include "tests/probe/recorded_program.h"

using namespace tsomon;
using namespace tsomon::probe_tests;

namespace {

// What the one thread that works did, without stamps. Where a range is cut depends on its address.
std::string events_of(const Trace& trace) {
  std::string text;
  const uint32_t main = trace.symbols.threads.find("T0");
  for (const Range& range : ranges_of(trace)) {
    if (range.thread != main) {
      continue;
    }
    text += std::to_string(static_cast<int>(range.kind)) + ":" + std::to_string(range.size) + " ";
  }
  return text;
}

}  // namespace

TEST_CASE("noise delays the thread, keeps errno and changes nothing in the recording") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run quiet = run(compiler, "noise", "");
    REQUIRE(quiet.status == 0);
    const std::string expected = events_of(read(quiet.path).trace);
    CHECK(quiet.said.at("errno") == 77);
    for (const char* seed : {"", ":noise_seed=1", ":noise_seed=2147483647"}) {
      CAPTURE(seed);
      const Run noisy = run(compiler, "noise", std::string(":noise=500") + seed);
      REQUIRE(noisy.status == 0);
      CHECK(events_of(read(noisy.path).trace) == expected);
      CHECK(noisy.said.at("errno") == 77);
      // 5,000 places, of which every eighth sleeps.
      CHECK(noisy.said.at("switches") > quiet.said.at("switches") + 400);
    }
  }
}
