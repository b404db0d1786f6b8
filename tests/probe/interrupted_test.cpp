// Signals that come anywhere: the order of a thread's records, and their stamps, stay true.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/probe/recorded_program.h"
#include "tests/rounds.h"

namespace tsomon::probe_tests {

TEST_CASE("signals are no clock that goes back, and leave the order of a recording") {
  const int kRuns = rounds(1, 5);
  for (const std::string& compiler : compilers()) {
    for (int i = 0; i < kRuns; ++i) {
      CAPTURE(compiler);
      CAPTURE(i);
      const Run result = run(compiler, "interrupted", "");
      REQUIRE(result.status == 0);
      CHECK(log_of(result).empty());
      const capture::Capture capture = read(result.path);
      for (const std::string& note : capture.notes) {
        CHECK_MESSAGE(note.find("time-stamp") == std::string::npos, note);
      }
      // As a detector reads them: by the beginning of their intervals.
      const Trace& trace = capture.trace;
      CHECK(std::is_sorted(trace.events.begin(), trace.events.end(),
                           [](const Event& a, const Event& b) { return a.lo < b.lo; }));
      const auto handled = std::count_if(
          trace.events.begin(), trace.events.end(),
          [](const Event& event) { return event.kind() == EventKind::kReadModifyWrite; });
      CHECK(static_cast<uint64_t>(handled) <= result.said.at("handled"));
      CHECK(handled > 100);
      // Both threads' sections under the lock, one after the other, whatever interrupted them.
      std::vector<const Event*> locks;
      for (const Event& event : trace.events) {
        if (event.kind() == EventKind::kAcquire || event.kind() == EventKind::kRelease) {
          locks.push_back(&event);
        }
      }
      CHECK(locks.size() == 80000);
      for (size_t at = 0; at + 1 < locks.size(); at += 2) {
        REQUIRE(locks[at]->kind() == EventKind::kAcquire);
        REQUIRE(locks[at + 1]->kind() == EventKind::kRelease);
        REQUIRE(locks[at]->thread == locks[at + 1]->thread);
      }
    }
  }
}

}  // namespace tsomon::probe_tests
