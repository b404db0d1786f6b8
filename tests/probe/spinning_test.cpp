// A thread that finds a lock taken tries again for a while before it sleeps.
#include <string>

#include <doctest/doctest.h>

#include "tests/probe/recorded_program.h"

using namespace tsomon;
using namespace tsomon::probe_tests;

TEST_CASE("spin= says whether a thread that finds a lock taken sleeps at once") {
  for (const std::string& compiler : compilers()) {
    for (const char* options : {":spin=0", ":spin=1000000000"}) {
      CAPTURE(compiler);
      CAPTURE(std::string(options));
      const Run result = run(compiler, "spinning", options);
      CHECK(result.status == 0);
      for (const char* lock : {"mutex", "writer", "reader"}) {
        CAPTURE(std::string(lock));
        CHECK((result.said.at(lock) != 0) == (std::string(options) == ":spin=0"));
      }
      // Recorded once each, however often it was tried.
      const capture::Capture capture = read(result.path);
      uint64_t taken = 0;
      uint64_t given_back = 0;
      for (const Event& event : capture.trace.events) {
        taken += event.kind() == EventKind::kAcquire || event.kind() == EventKind::kAcquireShared;
        given_back +=
            event.kind() == EventKind::kRelease || event.kind() == EventKind::kReleaseShared;
      }
      CHECK(taken == 6);
      CHECK(given_back == 6);
    }
  }
}
