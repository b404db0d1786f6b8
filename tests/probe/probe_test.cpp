// Real programs, compiled by the wrapper with every compiler at hand and linked with the probe:
// what they did must be in the capture, with values, in order, in sound intervals.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/wait.h>

#include "decoders/capture/reader.h"

namespace fs = std::filesystem;
using namespace tsomon;

namespace {

const std::string kPrograms = TSOMON_PROBE_PROGRAMS;

std::vector<std::string> compilers() {
  std::vector<std::string> found;
  for (const char* name : {"g++", "clang++-14"}) {
    if (fs::exists(kPrograms + "/" + name + "/basics")) {
      found.emplace_back(name);
    }
  }
  return found;
}

struct Run {
  int status = -1;   // of the program; 128 + N after signal N
  std::string path;  // of the capture
};

Run run(const std::string& compiler, const std::string& program, const std::string& options) {
  Run run;
  const std::string name = program.substr(0, program.find(' '));
  run.path = kPrograms + "/" + compiler + "/" + name + ".capture";
  fs::remove(run.path);
  const std::string command = "TSOMON_OPTIONS='output=" + run.path + options + "' " + kPrograms +
                              "/" + compiler + "/" + program + " 2>" + run.path + ".log";
  const int status = std::system(("exec env " + command).c_str());
  run.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return run;
}

capture::Capture read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  auto capture = capture::read_capture(bytes);
  REQUIRE_MESSAGE(capture.has_value(), path);
  for (const std::string& problem : capture->problems) {
    MESSAGE(problem);
  }
  CHECK(capture->trace.complete);
  return std::move(*capture);
}

std::map<EventKind, int> count_kinds(const Trace& trace) {
  std::map<EventKind, int> count;
  for (const Event& event : trace.events) {
    ++count[event.kind()];
  }
  return count;
}

// Values of the locked operations on the first location of this size, as "read>written".
std::string locked_values(const Trace& trace, uint32_t size) {
  std::string text;
  for (const Event& event : trace.events) {
    if (event.kind() == EventKind::kReadModifyWrite && event.size == size &&
        trace.read_value(event)) {
      text += std::to_string(*trace.read_value(event)) + ">" +
              std::to_string(*trace.write_value(event)) + " ";
    }
  }
  return text;
}

}  // namespace

TEST_CASE("atomics of every size, locks and units are recorded with their values") {
  for (const std::string& compiler : compilers()) {
    for (const char* options : {"", ":share=0", ":stamp_every=1", ":level=0:stamp_every=0"}) {
      CAPTURE(compiler);
      CAPTURE(options);
      const Run result = run(compiler, "basics", options);
      CHECK(result.status == 0);
      const capture::Capture capture = read(result.path);
      const Trace& trace = capture.trace;
      const auto kinds = count_kinds(trace);
      for (const uint32_t size : {1U, 2U, 4U, 8U}) {
        const std::string values = locked_values(trace, size);
        CHECK(values.substr(0, 24) == "5>7 7>8 8>6 6>4 4>7 7>6 ");
      }
      CHECK(kinds.at(EventKind::kUnitBegin) == 2);
      CHECK(kinds.at(EventKind::kUnitEnd) == 2);
      CHECK(kinds.at(EventKind::kFork) == 1);
      CHECK(kinds.at(EventKind::kJoin) == 1);
      CHECK(kinds.at(EventKind::kAcquire) == 2);
      CHECK(kinds.at(EventKind::kRelease) == 2);
      CHECK(kinds.at(EventKind::kAcquireShared) == 1);
      CHECK(kinds.at(EventKind::kReleaseShared) == 1);
      const auto copied = std::count_if(trace.events.begin(), trace.events.end(),
                                        [](const Event& e) { return e.size == 5000; });
      CHECK(copied == 2);  // one read, one write
    }
  }
}

TEST_CASE("no interval contradicts an order that is known") {
  for (const std::string& compiler : compilers()) {
    for (const char* options : {"", ":share=0", ":stamp_every=1", ":stamp_every=0"}) {
      CAPTURE(compiler);
      CAPTURE(options);
      const Run result = run(compiler, "ping_pong", options);
      CHECK(result.status == 0);
      const capture::Capture capture = read(result.path);
      const Trace& trace = capture.trace;
      // The store of turn i + 1 comes after that of turn i; each load that sees i after the store.
      std::map<uint64_t, const Event*> stores;
      for (const Event& event : trace.events) {
        if (event.kind() == EventKind::kWrite && trace.write_value(event)) {
          stores[*trace.write_value(event)] = &event;
        }
      }
      REQUIRE(stores.size() == 400);
      for (uint64_t turn = 1; turn < 400; ++turn) {
        CHECK(trace.lo(*stores.at(turn)) <= trace.hi(*stores.at(turn + 1)));
      }
      int loads = 0;
      for (const Event& event : trace.events) {
        const auto seen = trace.read_value(event);
        if (event.kind() != EventKind::kRead || !seen || *seen == 0) {
          continue;
        }
        ++loads;
        CHECK(trace.lo(*stores.at(*seen)) <= trace.hi(event));
        if (*seen < 400) {
          // The load of the thread whose turn it is precedes that thread's store of the next one.
          const Event& next = *stores.at(*seen + 1);
          if (next.thread == event.thread) {
            CHECK(trace.lo(event) <= trace.hi(next));
          }
        }
      }
      CHECK(loads >= 399);
      // The plain accesses to the payload: turn by turn, in turns of the threads.
      std::vector<const Event*> payload;
      for (const Event& event : trace.events) {
        if (event.kind() == EventKind::kWrite && !trace.write_value(event) && event.size == 8) {
          payload.push_back(&event);
        }
      }
      CHECK(payload.size() >= 400);
    }
  }
}

TEST_CASE("whatever way a process ends, what it did until then is readable") {
  struct Way {
    const char* name;
    int status;
    int locked;  // read-modify-writes of 8 bytes, with values
  };
  const Way ways[] = {{"return", 0, 3},  {"segv", 128 + SIGSEGV, 3},
                      {"abort", 134, 3}, {"_exit", 7, 3},
                      {"exec", 0, 3},    {"exit_in_thread", 8, 3},
                      {"fork", 0, 4},    {"terminate", 128 + SIGTERM, 3},
                      {"longjmp", 0, 4}, {"signals", 0, 403}};
  for (const std::string& compiler : compilers()) {
    for (const Way& way : ways) {
      CAPTURE(compiler);
      CAPTURE(way.name);
      const Run result = run(compiler, std::string("ends ") + way.name, "");
      CHECK(result.status == way.status);
      const capture::Capture capture = read(result.path);
      const Trace& trace = capture.trace;
      int locked = 0;
      int handled = 0;
      uint64_t last = 0;
      for (const Event& event : trace.events) {
        if (event.kind() == EventKind::kReadModifyWrite && trace.read_value(event)) {
          locked += event.size == 8 ? 1 : 0;
          handled += event.size == 4 ? 1 : 0;
          if (event.thread == 0 && event.size == 8 && std::string(way.name) == "signals") {
            CHECK(*trace.write_value(event) > last);  // program order across handlers
            last = *trace.write_value(event);
          }
        }
      }
      CHECK(locked == way.locked);
      CHECK(handled == (std::string(way.name) == "signals" ? 200 : 0));
    }
  }
}

TEST_CASE("a followed child of fork records to a file of its own") {
  for (const std::string& compiler : compilers()) {
    const std::string prefix = "ends.capture.";
    const std::string log = prefix + "log";
    const fs::path folder = fs::path(kPrograms) / compiler;
    std::vector<fs::path> old;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().filename().string().rfind(prefix, 0) == 0) {
        old.push_back(entry.path());
      }
    }
    for (const fs::path& path : old) {
      fs::remove(path);
    }
    CHECK(run(compiler, "ends fork", ":follow_fork=1").status == 0);
    int captures = 0;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name.rfind(prefix, 0) == 0 && name != log) {
        ++captures;
        const auto kinds = count_kinds(read(entry.path().string()).trace);
        CHECK(kinds.at(EventKind::kReadModifyWrite) == 1);
      }
    }
    CHECK(captures == 1);
  }
}

TEST_CASE("options that are not valid stop the program before main") {
  for (const std::string& compiler : compilers()) {
    for (const char* options :
         {":colour=blue", ":stamp_every=-1", ":stamp_every=x", ":level=99", ":on_full=maybe",
          ":level=1:level=2", ":buffer=12", ":nothing", ":unit="}) {
      CAPTURE(options);
      const Run result = run(compiler, "basics", options);
      CHECK(result.status == 2);
      CHECK_FALSE(fs::exists(result.path));
      std::ifstream log(result.path + ".log");
      const std::string text(std::istreambuf_iterator<char>(log), {});
      CHECK(text.rfind("tsomon: TSOMON_OPTIONS: ", 0) == 0);
    }
  }
}

TEST_CASE("functions whose names match are units, also when an exception or longjmp leaves them") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run result = run(compiler, "functions", ":unit=Pool::*");
    CHECK(result.status == 0);
    const capture::Capture capture = read(result.path);
    // 8 calls of outer and take each; one is left by an exception, one by longjmp.
    const auto kinds = count_kinds(capture.trace);
    CHECK(kinds.at(EventKind::kUnitBegin) == 16);
    CHECK(kinds.at(EventKind::kUnitEnd) == 16);
    CHECK(run(compiler, "functions", ":unit=no_such_function").status == 2);
  }
}

TEST_CASE("a C program is recorded as well") {
  const Run result = run("g++", "plain_c", "");
  CHECK(result.status == 0);
  const capture::Capture capture = read(result.path);
  const auto kinds = count_kinds(capture.trace);
  CHECK(kinds.at(EventKind::kUnitBegin) == 2);
  CHECK(kinds.at(EventKind::kAcquire) == 2);
}
