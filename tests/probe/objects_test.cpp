#include <string>

#include "tests/probe/recorded_program.h"

using namespace tsomon;
using namespace tsomon::probe_tests;

namespace {

// What became of the object that the program named: "alloc 16 free".
std::string life(const Trace& trace, const Run& run, const std::string& name) {
  std::string text;
  for (const Event& event : trace.events) {
    if (event.address != run.said.at(name)) {
      continue;
    }
    if (event.kind() == EventKind::kAllocate) {
      text += event.size != 0 ? " alloc " + std::to_string(event.size)
                              : " block " + std::to_string(trace.write_value(event).value_or(0));
    } else if (event.kind() == EventKind::kFree) {
      text += " free";
    }
  }
  return text;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("objects are recorded from their beginning to their end") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run result = run(compiler, "objects", ":objects=100");
    REQUIRE(result.status == 0);
    CHECK(result.said.at("errno") == 77);
    CHECK(result.said.at("failed") == 1);
    const capture::Capture capture = read(result.path);
    const Trace& trace = capture.trace;
    CHECK(life(trace, result, "early") == " alloc 16 free");
    CHECK(!contains(life(trace, result, "large"), "alloc 200"));
    CHECK(contains(life(trace, result, "moving"), "alloc 40 free"));
    CHECK(contains(life(trace, result, "moved"), "alloc 60 free alloc "));  // that failed
    CHECK(contains(life(trace, result, "cleared"), "alloc 21 free"));
    CHECK(contains(life(trace, result, "aligned"), "alloc 96 free"));
    CHECK(contains(life(trace, result, "other"), "alloc 32 free"));
    CHECK(contains(life(trace, result, "numbers"), "alloc 40 free"));
    // What was gone before recording began is not there.
    int early = 0;
    for (const Event& event : trace.events) {
      early += event.kind() == EventKind::kAllocate && event.location == Event::kNoLocation ? 1 : 0;
    }
    CHECK(early >= 1);
    CHECK(early < 50);
  }
}

TEST_CASE("without the option there are no objects") {
  const Run result = run("g++", "objects", "");
  REQUIRE(result.status == 0);
  const capture::Capture capture = read(result.path);
  for (const Event& event : capture.trace.events) {
    CHECK((event.kind() != EventKind::kAllocate || event.size == 0));
  }
  // But blocks, with all bytes that they have.
  CHECK(contains(life(capture.trace, result, "moving"), "block 40 free"));
  CHECK(contains(life(capture.trace, result, "moved"), "block 72 free block 72"));
  CHECK(contains(life(capture.trace, result, "cleared"), "block 24 free"));
  CHECK(contains(life(capture.trace, result, "aligned"), "block "));
  CHECK(contains(life(capture.trace, result, "numbers"), "block 40 free"));
  CHECK(run("g++", "objects", ":objects=17M").status == 2);
}

TEST_CASE("a program may have its own allocator") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run result = run(compiler, "own_allocator", ":objects=100");
    CHECK(result.status == 0);
    CHECK(result.said.at("sum") == 5);
    CHECK(result.said.at("calls") == 1);
    // But for the stack of its thread.
    CHECK(count_kinds(read(result.path).trace).count(EventKind::kAllocate) == 1);
  }
}
