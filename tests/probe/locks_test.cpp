// Locks, conditions, barriers and semaphores of real programs: what was taken and given back is in
// the capture, and nothing else.
#include <regex>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "monitor/probe/clock.h"
#include "tests/probe/recorded_program.h"
#include "tso/model/units.h"

using namespace tsomon;
using namespace tsomon::probe_tests;

namespace {

struct Case {
  const char* kind;
  std::vector<std::string> objects;
  const char* main;   // regular expressions over the stories of the threads
  const char* other;  // nullptr: there is none
};

// T0 is main; T1 did nothing but start the recording. A fence comes before whatever may sleep: a
// wait, a join (the first one, of T1, begins each story of main), and the end of a thread.
const Case kCases[] = {
    {"mutexes",
     {"mutex"},
     R"(fence acq\(mutex\) fence rel\(mutex\) (fence acq\(mutex\) rel\(mutex\) ){3}fence)",
     "fence"},
    {"owned",
     {"recursive", "checking"},
     R"(fence acq\(recursive\) rel\(recursive\) fence )"
     R"(acq\(checking\) fence rel\(checking\) fence)",
     "fence"},
    {"robust",
     {"left"},
     R"(fence fence acq\(left\) rel\(left\) fence fence acq\(left\))",
     R"(acq\(left\) fence)"},
    {"rwlocks",
     {"rwlock"},
     R"(fence acq\(rwlock\) fence rel\(rwlock\) fence (acq\(rwlock\) rel\(rwlock\) fence ){2})"
     R"(racq\(rwlock\) racq\(rwlock\) fence rrel\(rwlock\) fence )"
     R"(rrel\(rwlock\) fence racq\(rwlock\) rrel\(rwlock\) fence)",
     "fence"},
    {"spins", {"spin"}, R"(fence acq\(spin\) fence rel\(spin\) acq\(spin\) rel\(spin\))", "fence"},
    {"semaphores",
     {"semaphore"},
     R"(fence count\(semaphore\) (fence ){4}take\(semaphore\) (take\(semaphore\) fence ){2})"
     R"(take\(semaphore\))",
     R"((post\(semaphore\) ){4}fence)"},
    {"barriers",
     {"barrier", "data0", "data1"},
     R"(fence (w\(data0\) fence send\(barrier\) r\(data1\) fence send\(barrier\) ){3}fence)",
     R"((w\(data1\) fence send\(barrier\) r\(data0\) fence send\(barrier\) ){3}fence)"},
    {"timed_waits",
     {"mutex", "never"},
     R"(fence begin acq\(mutex\) (fence rel\(mutex\) wait\(never\) fence acq\(mutex\) ){3})"
     R"(rel\(mutex\) fence end)",
     nullptr},
    {"wrong_wait",
     {"mutex", "never"},
     R"(fence begin acq\(mutex\) rel\(mutex\) fence end)",
     nullptr},
    // A wait may come back for no reason.
    {"waits",
     {"mutex", "condition", "ready"},
     R"(fence acq\(mutex\) begin r\(ready\) (fence rel\(mutex\) wait\(condition\) fence )"
     R"(acq\(mutex\) r\(ready\) )+w\(ready\) end rel\(mutex\) fence fence)",
     R"(begin acq\(mutex\) w\(ready\) rel\(mutex\) fence end fence)"},
    {"library_waits",
     {"mutex", "condition", "ready"},
     R"((fence )+acq\(mutex\) begin r\(ready\) (fence rel\(mutex\) wait\(condition\) fence )"
     R"(acq\(mutex\) r\(ready\) )+w\(ready\) end )"
     R"((fence rel\(mutex\) wait\(condition\) fence acq\(mutex\) )+rel\(mutex\) fence fence)",
     R"(begin acq\(mutex\) w\(ready\) rel\(mutex\) fence end fence)"},
};

int units_labelled(const Trace& trace, const char* label) {
  const UnitTable units(trace);
  int count = 0;
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    count += units[unit].label != Interner::kNone &&
                     trace.symbols.labels.text(units[unit].label) == label
                 ? 1
                 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("every way to take a lock is recorded where it succeeds and only there") {
  for (const std::string& compiler : compilers()) {
    for (const Case& test : kCases) {
      for (const char* options : {"", ":share=0:stamp_every=1", ":spin=0"}) {
        CAPTURE(compiler);
        CAPTURE(std::string(test.kind));
        CAPTURE(std::string(options));
        const Run result = run(compiler, std::string("locks ") + test.kind, options);
        CHECK(result.status == 0);
        const capture::Capture capture = read(result.path);
        const std::string main = story(capture.trace, "T0", result, test.objects);
        CHECK_MESSAGE(std::regex_match(main, std::regex(test.main)), main);
        if (test.other != nullptr) {
          const std::string other = story(capture.trace, "T2", result, test.objects);
          CHECK_MESSAGE(std::regex_match(other, std::regex(test.other)), other);
        }
      }
    }
  }
}

TEST_CASE("a condition wait splits its unit, and the other critical section lies in between") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run timed = run(compiler, "locks timed_waits", "");
    CHECK(units_labelled(read(timed.path).trace, "waits") == 4);
    const Run wrong = run(compiler, "locks wrong_wait", "");
    CHECK(units_labelled(read(wrong.path).trace, "waits") == 1);

    const Run result = run(compiler, "locks waits", "");
    const capture::Capture capture = read(result.path);
    const Trace& trace = capture.trace;
    CHECK(units_labelled(trace, "wait") >= 2);
    CHECK(units_labelled(trace, "set") == 1);
    if (!probe::lfence_waits()) {
      continue;
    }
    // By the stamps of the lock: the first wait's release, the setter's section, then main again.
    std::string order;
    for (const Event& event : trace.events) {
      if (event.address == result.said.at("mutex") && is(event, kinds::kLocks)) {
        order += event.kind() == EventKind::kAcquire ? "+" : "-";
        order += trace.symbols.threads.text(event.thread);
        order += " ";
      }
    }
    CHECK_MESSAGE(
        std::regex_match(order, std::regex(R"(\+T0 -T0 (\+T0 -T0 )*\+T2 -T2 (\+T0 -T0 )+)")),
        order);
  }
}

TEST_CASE("what comes before a barrier lies before what comes after it") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run result = run(compiler, "locks barriers", "");
    const capture::Capture capture = read(result.path);
    const Trace& trace = capture.trace;
    for (const char* data : {"data0", "data1"}) {
      std::vector<const Event*> writes;
      std::vector<const Event*> reads;
      for (const Event& event : trace.events) {
        if (event.address == result.said.at(data)) {
          (event.kind() == EventKind::kWrite ? writes : reads).push_back(&event);
        }
      }
      REQUIRE(writes.size() == 3);
      REQUIRE(reads.size() == 3);
      for (size_t round = 0; round < 3; ++round) {
        CHECK(trace.lo(*writes[round]) <= trace.hi(*reads[round]));
        if (round < 2) {
          CHECK(trace.lo(*reads[round]) <= trace.hi(*writes[round + 1]));
        }
        if (round > 0 && probe::lfence_waits()) {
          CHECK(trace.hi(*writes[round - 1]) < trace.lo(*reads[round]));  // two barriers apart
        }
      }
    }
  }
}
