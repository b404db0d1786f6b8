// What a thread does as the first and as the last thing is recorded, or counted as lost.
#include <string>

#include <doctest/doctest.h>

#include "tests/probe/recorded_program.h"

using namespace tsomon;
using namespace tsomon::probe_tests;

namespace {

uint64_t additions(const Trace& trace) {
  const auto kinds = count_kinds(trace);
  const auto found = kinds.find(EventKind::kReadModifyWrite);
  return found == kinds.end() ? 0 : static_cast<uint64_t>(found->second);
}

}  // namespace

TEST_CASE("a signal that comes before a thread is recorded is handled when it is") {
  for (const std::string& compiler : compilers()) {
    for (const char* way : {"signals", "attributes"}) {
      CAPTURE(compiler);
      CAPTURE(way);
      const Run result = run(compiler, std::string("thread_edges ") + way, "");
      CHECK(result.status == 0);
      CHECK(result.said.at("masks_right") == 1);
      if (std::string(way) == "attributes") {
        CHECK(result.said.at("attributes_right") == 1);
      }
      CHECK(additions(read(result.path).trace) == result.said.at("count"));
    }
  }
}

TEST_CASE("destructors of thread-specific data are recorded up to the last round") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run result = run(compiler, "thread_edges destructors", "");
    CHECK(result.status == 0);
    CHECK(result.said.at("count") == 100);  // four rounds and a C++ object of 20 threads
    CHECK(additions(read(result.path).trace) == 100);
  }
}

TEST_CASE("what comes behind the end of a thread is counted as lost") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run result = run(compiler, "thread_edges many_keys", "");
    CHECK(result.status == 0);
    CHECK(result.said.at("count") == 100);
    const Trace trace = read_any(result.path).trace;
    CHECK_FALSE(trace.complete);
    CHECK(trace.lost_events >= 20);
    CHECK(additions(trace) == 80);
  }
}
