// Recordings on processors whose counters are made to disagree (monitor/probe/skewed_clock.h).
#include <algorithm>
#include <map>
#include <string>

#include <doctest/doctest.h>
#include <sched.h>

#include "monitor/probe/clock.h"
#include "tests/probe/recorded_program.h"
#include "tso/model/event.h"

using namespace tsomon;
using namespace tsomon::probe_tests;

namespace {

bool several_processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1;
}

// By how much intervals were widened: as an event of a lock, which has one stamp, shows.
int64_t margin_of(const Trace& trace) {
  for (const Event& event : trace.events) {
    if (is(event, kinds::kLocks)) {
      return trace.hi(event) - trace.lo(event);
    }
  }
  FAIL("no lock");
  return 0;
}

// Whoever acquires a lock has a later stamp than who released it, and nobody else holds it.
void check_locks(const Trace& trace) {
  struct Holder {
    ThreadId thread = 0;
    uint64_t stamp = 0;
    bool held = false;
  };
  std::map<uint64_t, Holder> locks;
  int handed_over = 0;
  for (const Event& event : trace.events) {
    if (event.kind() != EventKind::kAcquire && event.kind() != EventKind::kRelease) {
      continue;
    }
    Holder& holder = locks[event.address];
    const auto stamp = trace.write_value(event);
    REQUIRE(stamp.has_value());
    if (event.kind() == EventKind::kAcquire) {
      REQUIRE_FALSE(holder.held);
      REQUIRE(*stamp > holder.stamp);
      handed_over += holder.stamp != 0 && holder.thread != event.thread ? 1 : 0;
    } else {
      REQUIRE(holder.held);
      REQUIRE(holder.thread == event.thread);
      REQUIRE(*stamp >= holder.stamp);
    }
    holder = {event.thread, *stamp, event.kind() == EventKind::kAcquire};
  }
  CHECK(handed_over > 0);
}

// There is a reason why its stamps cannot be compared, and none is used.
bool claims_nothing(const capture::Capture& capture) {
  return !capture.notes.empty() &&
         std::all_of(capture.trace.events.begin(), capture.trace.events.end(),
                     [&](const Event& event) { return capture.trace.lo(event) == kTimeMin; });
}

}  // namespace

TEST_CASE("counters that disagree are measured, and locks are handed over in order all the same") {
  if (!several_processors() || !probe::lfence_waits()) {
    MESSAGE("one processor");
    return;
  }
  struct Case {
    std::string skew;
    int64_t least;
    int64_t most;
    bool moves;
  };
  for (const Case& one : {
           Case{"0", 1, 100'000, false}, Case{"0,1000000", 1'000'000, 1'100'000, false},  // ahead
           Case{"0,-1000000", 1'000'000, 1'100'000, false},                               // behind
           Case{"500000,0", 500'000, 600'000, false},            // the first one disagrees with all
           Case{"0,0/0/5000000/1", 5'000'000, 5'100'000, true},  // a step, right after the start
           Case{"0,0/0/-5000000/1", 5'000'000, 5'100'000, true},  // back
       }) {
    CAPTURE(one.skew);
    const Run result = run("g++", "locks waits", ":clock_test=" + one.skew);
    CHECK(result.status == 0);
    const capture::Capture capture = read(result.path);
    if (claims_nothing(capture)) {
      // The counter moved while it was measured, or a processor was busy all the time.
      CHECK(capture.notes.size() == 1);
      CHECK((one.moves || capture.notes.front().find("too busy") != std::string::npos));
      continue;
    }
    CHECK(capture.notes.empty());
    CHECK(margin_of(capture.trace) >= one.least);
    CHECK(margin_of(capture.trace) <= one.most);
    check_locks(capture.trace);
  }
}

TEST_CASE("counters that drift have a margin that grows with the time") {
  if (!several_processors() || !probe::lfence_waits()) {
    return;
  }
  // A hundredth faster: some million cycles in the shortest run.
  const Run result = run("g++", "locks waits", ":clock_test=0,1000/10000");
  CHECK(result.status == 0);
  const capture::Capture capture = read_any(result.path);
  // So fast that a measurement may contradict itself; else its margin has grown.
  if (capture.notes.empty()) {
    CHECK(margin_of(capture.trace) > 20'000);
    check_locks(capture.trace);
  } else {
    CHECK(claims_nothing(capture));
  }
}

TEST_CASE("with clock=trust there is no margin, whatever the counters are") {
  const Run result = run("g++", "locks waits", ":clock=trust");
  CHECK(result.status == 0);
  CHECK(margin_of(read(result.path).trace) == 0);
}

TEST_CASE("what is no list of skews is refused") {
  for (const char* wrong : {"x", "1/", "1//2", "1/2/3/4/5", "1 2", "/1"}) {
    CAPTURE(wrong);
    const Run result = run("g++", "locks waits", std::string(":clock_test=") + wrong);
    CHECK(result.status == 2);
    CHECK(log_of(result).find("clock_test") != std::string::npos);
  }
}
