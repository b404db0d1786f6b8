#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/probe/recorded_program.h"

using namespace tsomon;
using namespace tsomon::probe_tests;

namespace {

// The address of the store that the thread made to the range of a set.
uint64_t stored_by(const Trace& trace, ThreadId thread) {
  for (const Event& event : trace.events) {
    if (event.kind() == EventKind::kWrite && event.thread == thread && event.size == 4) {
      return event.address;
    }
  }
  return 0;
}

}  // namespace

TEST_CASE("declared atomic sets reach the trace") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run result = run(compiler, "sets", "");
    REQUIRE(result.status == 0);
    const capture::Capture capture = read(result.path);
    const Trace& trace = capture.trace;
    REQUIRE(trace.symbols.sets.size() == 2);
    const AtomicSet& ends = trace.symbols.sets[0];
    const AtomicSet& counts = trace.symbols.sets[1];
    CHECK(ends.name == "ends");
    REQUIRE(ends.members.size() == 2);
    const uint64_t tail = stored_by(trace, 1);
    CHECK(ends.members[0] == LocationKey{stored_by(trace, 0), 8});
    CHECK(ends.members[1] == LocationKey{tail, 8});
    CHECK(counts.name == "counts");
    REQUIRE(counts.members.size() == 1);
    CHECK(counts.members[0] == LocationKey{tail + 4, 4});
  }
}

TEST_CASE("global variables are declared by name, and a name that is not there is an error") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run result = run(compiler, "sets", ":set=[ht]?*[dl]:set=ma*");
    REQUIRE(result.status == 0);
    const capture::Capture capture = read(result.path);
    std::map<std::string, std::vector<LocationKey>> sets;
    for (const AtomicSet& set : capture.trace.symbols.sets) {
      sets[set.name] = set.members;
    }
    CHECK(sets.size() == 4);
    const std::vector<LocationKey>& both = sets["[ht]?*[dl]"];
    REQUIRE(both.size() == 2);
    for (const ThreadId thread : {0, 1}) {
      CHECK(std::count(both.begin(), both.end(),
                       LocationKey{stored_by(capture.trace, thread), 8}) == 1);
    }
    REQUIRE(sets["ma*"].size() == 1);
    CHECK(sets["ma*"][0].size == 5000);
    CHECK(sets["ends"] == std::vector<LocationKey>{{stored_by(capture.trace, 0), 8},
                                                   {stored_by(capture.trace, 1), 8}});
    CHECK(sets.count("counts") == 1);
    CHECK(run(compiler, "sets", ":set=main").status == 2);
    CHECK(run(compiler, "sets", ":set=*:set=head").status == 2);
    CHECK(run(compiler, "sets", ":set=").status == 2);
    // What lies in a function has not its name.
    CHECK(run(compiler, "sets", ":set=counted*t").status == 0);
    CHECK(run(compiler, "sets", ":set=counted").status == 2);
  }
}

TEST_CASE("patterns end no program that was started by the one they are meant for") {
  setenv("TSOMON_OUTPUT_TAKEN", "1", 1);
  for (const std::string options : {":set=main", ":unit=head"}) {
    CAPTURE(options);
    const Run result = run("g++", "sets", options);
    CHECK(result.status == 0);
    CHECK(log_of(result).find("matches '") != std::string::npos);
    // It would be unrecorded anyway.
    const Run live = run("g++", "sets", options + ":live=20");
    CHECK(live.status == 0);
    CHECK(log_of(live).empty());
  }
  unsetenv("TSOMON_OUTPUT_TAKEN");
  const std::filesystem::path place = kPrograms + "/g++";
  for (const auto& entry : std::filesystem::directory_iterator(place)) {
    if (entry.path().filename().string().rfind("sets.capture.", 0) == 0 &&
        std::isdigit(entry.path().string().back()) != 0) {
      std::filesystem::remove(entry.path());
    }
  }
}

TEST_CASE("a range that cannot be watched is a loss that the capture names") {
  CHECK(read(run("g++", "sets nowhere", "").path).trace.symbols.sets.size() == 3);
  const Run result = run("g++", "sets nowhere", ":accesses=sets");
  REQUIRE(result.status == 0);
  const capture::Capture capture = read_any(result.path);
  CHECK_FALSE(capture.trace.complete);
  CHECK(capture.problems.size() == 1);
  CHECK(capture.trace.symbols.sets.size() == 2);
}

TEST_CASE("more ranges than the probe keeps are a loss that the capture names") {
  const Run result = run("g++", "sets many", "");
  REQUIRE(result.status == 0);
  const capture::Capture capture = read_any(result.path);
  CHECK_FALSE(capture.trace.complete);
  REQUIRE(capture.problems.size() == 1);
  CHECK(
      capture.problems[0] ==
      "declarations of atomic sets are missing: there were more than the probe keeps or can watch");
  REQUIRE(capture.trace.symbols.sets.size() == 3);
  CHECK(capture.trace.symbols.sets[2].members.size() == 4095 - 3);
}
