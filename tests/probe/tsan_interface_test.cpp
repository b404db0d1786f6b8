// ThreadSanitizer's public interface: programs that call it link, and what it means is recorded.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include "tests/probe/recorded_program.h"

using namespace tsomon;
using namespace tsomon::probe_tests;

namespace {

using Kinds = std::map<EventKind, int>;

// Of the events that touch this address, with so many bytes.
Kinds kinds_at(const Trace& trace, uint64_t address, uint32_t size) {
  Kinds count;
  for (const Event& event : trace.events) {
    if (event.address == address && event.size == size) {
      ++count[event.kind()];
    }
  }
  return count;
}

int check_status(const std::string& path) {
  const std::string command =
      fmt::format("exec {} check {} >{}.report 2>&1", TSOMON_EXECUTABLE, path, path);
  return WEXITSTATUS(std::system(command.c_str()));
}

}  // namespace

TEST_CASE("annotated locks are locks, and what spins for them is not recorded") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run result = run(compiler, "tsan_interface", ":clock=trust");
    CHECK(result.status == 0);
    CHECK(result.said.at("own") == 1);
    const capture::Capture capture = read(result.path);
    const Trace& trace = capture.trace;
    Kinds of_lock = kinds_at(trace, result.said.at("lock"), 0);
    CHECK(of_lock[EventKind::kAcquire] == 400);
    CHECK(of_lock[EventKind::kRelease] == 400);
    Kinds of_word = kinds_at(trace, result.said.at("lock"), 4);
    CHECK(of_word[EventKind::kReadModifyWrite] == 400);
    CHECK(of_word[EventKind::kWrite] == 400);
    // Attempts that found it taken: no events. (One that is overtaken shows as a load.)
    Kinds of_busy = kinds_at(trace, result.said.at("busy"), 4);
    CHECK(of_busy[EventKind::kReadModifyWrite] == 0);
    CHECK(of_busy[EventKind::kRead] == 0);
    CHECK(kinds_at(trace, result.said.at("busy"), 0).empty());
    CHECK(kinds_at(trace, result.said.at("readers"), 0) == Kinds{{EventKind::kAcquire, 2},
                                                                 {EventKind::kRelease, 2},
                                                                 {EventKind::kAcquireShared, 2},
                                                                 {EventKind::kReleaseShared, 2}});
    CHECK(kinds_at(trace, result.said.at("object"), 1) ==
          Kinds{{EventKind::kRead, 1}, {EventKind::kWrite, 1}});
    CHECK(trace.symbols.threads.find("T1-worker") != Interner::kNone);
    CHECK(check_status(result.path) == 0);
  }
}

TEST_CASE("fibers are threads of the capture, in the order of the switches") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run result = run(compiler, "tsan_interface fibers", ":clock=trust");
    CHECK(result.status == 0);
    const capture::Capture capture = read(result.path);
    const Trace& trace = capture.trace;
    std::vector<const Event*> accesses;
    for (const auto& [fiber, place] :
         {std::pair("T1-one", "turns0"), std::pair("T2-two", "turns1")}) {
      const uint32_t thread = trace.symbols.threads.find(fiber);
      REQUIRE(thread != Interner::kNone);
      int stores = 0;
      for (const Event& event : trace.events) {
        if (event.kind() == EventKind::kWrite && event.address == result.said.at(place)) {
          CHECK(event.thread == thread);
          ++stores;
          accesses.push_back(&event);
        }
      }
      CHECK(stores == 100);
    }
    // One ran at a time: no two stores of different fibers overlap.
    std::sort(accesses.begin(), accesses.end(), [&](const Event* left, const Event* right) {
      return trace.lo(*left) < trace.lo(*right);
    });
    for (size_t i = 1; i < accesses.size(); ++i) {
      CHECK((accesses[i]->thread == accesses[i - 1]->thread ||
             trace.hi(*accesses[i - 1]) <= trace.lo(*accesses[i])));
    }
    auto kinds = count_kinds(trace);
    CHECK(kinds[EventKind::kFork] == 4);  // two fibers, one that is never run, a thread
    CHECK(kinds[EventKind::kUnitBegin] == 100);
    CHECK(kinds[EventKind::kUnitEnd] == 100);
    CHECK(check_status(result.path) == 0);
  }
}
