// -ftsomon-files, -ftsomon-functions: accesses elsewhere have no hooks. The programs are there when
// the plugin is (monitor/probe/gcc).
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "tests/probe/recorded_program.h"

using namespace tsomon;
using namespace tsomon::probe_tests;

namespace {

bool have_plugin() { return std::filesystem::exists(kPrograms + "/g++/left_out"); }

// How often a thread loaded from and stored to each 8 bytes of the declared data.
std::map<std::pair<ThreadId, uint64_t>, std::pair<int, int>> count_accesses(const Run& run) {
  std::map<std::pair<ThreadId, uint64_t>, std::pair<int, int>> count;
  const Trace trace = read_any(run.path).trace;
  const uint64_t list = run.said.at("list");
  for (const Event& event : trace.events) {
    const uint64_t place = event.address == run.said.at("first")    ? 0
                           : event.address == run.said.at("second") ? 8
                           : event.address - list < 32              ? 16 + event.address - list
                                                                    : 48;
    if (place != 48 && (event.kind() == EventKind::kRead || event.kind() == EventKind::kWrite)) {
      auto& [loads, stores] = count[{event.thread, place}];
      ++(event.kind() == EventKind::kRead ? loads : stores);
    }
  }
  return count;
}

int64_t accesses_to(const Run& run, const std::string& name, uint64_t size) {
  const Trace trace = read_any(run.path).trace;
  return std::count_if(trace.events.begin(), trace.events.end(), [&](const Event& event) {
    return event.size != 0 && event.address >= run.said.at(name) &&
           event.address < run.said.at(name) + size && event.kind() != EventKind::kFence;
  });
}

}  // namespace

TEST_CASE("accesses in the chosen files or functions are all recorded, others are not") {
  if (!have_plugin()) {
    MESSAGE("no plugin for g++ was built");
    return;
  }
  for (const auto& how : {std::pair{"left_out", ""},
                          {"left_out", ":accesses=sets"},
                          {"left_out_functions", ""},
                          {"left_out_functions", ":accesses=sets"}}) {
    CAPTURE(how.first);
    CAPTURE(how.second);
    const Run all = run("g++", "left_out_not", how.second);
    const Run chosen = run("g++", how.first, how.second);
    REQUIRE(all.status == 0);
    REQUIRE(chosen.status == 0);
    const auto expected = count_accesses(all);
    // first, second and four elements, of two threads.
    CHECK(expected.size() == 12);
    CHECK((count_accesses(chosen) == expected));
    // Atomics, units and synchronisation are there, whatever file they are in.
    const Trace trace = read(chosen.path).trace;
    CHECK(accesses_to(chosen, "turn", 8) >= 400);
    CHECK(count_kinds(trace)[EventKind::kUnitBegin] == 200);
    CHECK(count_kinds(trace)[EventKind::kJoin] == 1);
    CHECK(accesses_to(chosen, "own", 128) == 0);
    CHECK((accesses_to(all, "own", 128) == 400) == (*how.second == '\0'));
  }
}

TEST_CASE("with -ftsomon-units other functions are never units") {
  if (!have_plugin()) {
    return;
  }
  const auto labels = [](const char* program, const char* units) {
    const Run run_of = run("g++", program, units);
    CHECK(run_of.status == 0);
    std::string all;
    const Trace trace = read_any(run_of.path).trace;
    for (const Event& event : trace.events) {
      if (event.kind() == EventKind::kUnitBegin || event.kind() == EventKind::kUnitEnd) {
        all += fmt::format("{} {}\n", static_cast<int>(event.kind()), event.address);
      }
    }
    return all;
  };
  // Also where an exception or longjmp leaves them.
  const std::string all = labels("functions", ":unit=Pool::*");
  CHECK(all.size() > 17 * 2 * 3);
  CHECK(labels("functions_left_out", ":unit=Pool::*") == all);
  CHECK(labels("functions_left_out", ":unit=Pool::*:unit=helper") == all);
  CHECK(labels("functions", ":unit=Pool::*:unit=helper") != all);
}

TEST_CASE("a check names code that touches declared data and is left out") {
  if (!have_plugin()) {
    return;
  }
  const Run good = run("g++", "left_out_check", ":accesses=sets");
  REQUIRE(good.status == 0);
  CHECK(read(good.path).trace.lost_events == 0);
  CHECK(log_of(good).empty());

  const Run unseen = run("g++", "left_out touch", ":accesses=sets");
  REQUIRE(unseen.status == 0);
  CHECK(read(unseen.path).trace.lost_events == 0);

  const Run wrong = run("g++", "left_out_check touch", ":accesses=sets");
  REQUIRE(wrong.status == 0);
  const Trace trace = read_any(wrong.path).trace;
  CHECK(trace.lost_events == 1);
  CHECK_FALSE(trace.complete);
  CHECK(log_of(wrong).find("leaves out a store of declared data") != std::string::npos);
}
