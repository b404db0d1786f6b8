// Locks, conditions, barriers and semaphores of real programs: what was taken and given back is in
// the capture, and nothing else.
#include <regex>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "monitor/probe/clock.h"
#include "tests/probe/recorded_program.h"
#include "tso/units.h"

using namespace tsomon;
using namespace tsomon::probe_tests;

namespace {

struct Case {
  const char* kind;
  std::vector<std::string> objects;
  const char* main;   // regular expressions over the stories of the threads
  const char* other;  // nullptr: there is none
};

// T0 is main; T1 did nothing but start the recording.
const Case kCases[] = {
    {"mutexes", {"mutex"}, R"((acq\(mutex\) rel\(mutex\) fence ?){4})", ""},
    {"owned",
     {"recursive", "checking"},
     R"(acq\(recursive\) rel\(recursive\) fence acq\(checking\) rel\(checking\) fence)",
     ""},
    {"robust", {"left"}, R"(acq\(left\) rel\(left\) fence acq\(left\))", R"(acq\(left\))"},
    {"rwlocks",
     {"rwlock"},
     R"((acq\(rwlock\) rel\(rwlock\) fence ){3}racq\(rwlock\) racq\(rwlock\) rrel\(rwlock\) fence )"
     R"(rrel\(rwlock\) fence racq\(rwlock\) rrel\(rwlock\) fence)",
     ""},
    {"spins", {"spin"}, R"((acq\(spin\) rel\(spin\) ?){2})", ""},
    {"semaphores",
     {"semaphore"},
     R"((r\(semaphore\) ){3}(rmw\(semaphore\) ?){4})",
     R"((rmw\(semaphore\) ?){4})"},
    {"barriers",
     {"barrier", "data0", "data1"},
     R"((w\(data0\) rmw\(barrier\) r\(data1\) rmw\(barrier\) ?){3})",
     R"((w\(data1\) rmw\(barrier\) r\(data0\) rmw\(barrier\) ?){3})"},
    {"timed_waits",
     {"mutex", "never"},
     R"(begin acq\(mutex\) (rel\(mutex\) wait\(never\) fence acq\(mutex\) ){3}rel\(mutex\) fence end)",
     nullptr},
    {"wrong_wait", {"mutex", "never"}, R"(begin acq\(mutex\) rel\(mutex\) fence end)", nullptr},
    // A wait may come back for no reason.
    {"waits",
     {"mutex", "condition", "ready"},
     R"(acq\(mutex\) begin r\(ready\) (rel\(mutex\) wait\(condition\) fence acq\(mutex\) )"
     R"(r\(ready\) )+w\(ready\) end rel\(mutex\) fence)",
     R"(begin acq\(mutex\) w\(ready\) rel\(mutex\) fence end)"},
    {"library_waits",
     {"mutex", "condition", "ready"},
     R"(acq\(mutex\) begin r\(ready\) (rel\(mutex\) wait\(condition\) fence acq\(mutex\) )"
     R"(r\(ready\) )+w\(ready\) end (rel\(mutex\) wait\(condition\) fence acq\(mutex\) )+)"
     R"(rel\(mutex\) fence)",
     R"(begin acq\(mutex\) w\(ready\) rel\(mutex\) fence end)"},
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
      for (const char* options : {"", ":share=0:stamp_every=1"}) {
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
        for (const Event& event : capture.trace.events) {
          if (event.kind() == EventKind::kReadModifyWrite) {
            CHECK_FALSE(capture.trace.read_value(event).has_value());
          }
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
    if (!probe::examine_clock().orders_threads()) {
      continue;
    }
    // By the stamps of the lock: the first wait's release, the setter's section, then main again.
    std::string order;
    for (const Event& event : trace.events) {
      if (event.address == result.said.at("mutex") && is(event, kinds::kLocks)) {
        CHECK(trace.lo(event) == trace.hi(event));
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
        if (round > 0 && probe::examine_clock().orders_threads()) {
          CHECK(trace.hi(*writes[round - 1]) < trace.lo(*reads[round]));  // two barriers apart
        }
      }
    }
  }
}
