// Real programs, compiled by the wrapper with every compiler at hand and linked with the probe:
// what they did must be in the capture, with values, in order, in sound intervals.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/probe/clock.h"
#include "tests/probe/recorded_program.h"

namespace fs = std::filesystem;
using namespace tsomon;
using namespace tsomon::probe_tests;

namespace {

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
      const std::vector<Range> ranges = ranges_of(trace);
      const auto copied = std::count_if(ranges.begin(), ranges.end(),
                                        [](const Range& range) { return range.size == 5000; });
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
  const Way ways[] = {{"return", 0, 3},     {"segv", 128 + SIGSEGV, 3},
                      {"abort", 134, 3},    {"_exit", 7, 3},
                      {"daemon", 0, 3},     {"abort_handled", 134, 3},
                      {"exec", 0, 3},       {"exit_in_thread", 8, 3},
                      {"fork", 0, 4},       {"terminate", 128 + SIGTERM, 3},
                      {"longjmp", 0, 4},    {"signals", 0, 403},
                      {"_Fork", 0, 4},      {"vfork", 0, 4},
                      {"vfork_exec", 0, 4}, {"spawn", 0, 4},
                      {"exec_fails", 0, 3}, {"quick_exit", 9, 3},
                      {"main_exits", 0, 4}, {"longjmps", 0, 2003},
                      {"nested", 0, 4},     {"longjmps_alternate", 0, 2003},
                      {"raw_exit", 5, 3},   {"raw_exits", 6, 3}};
  for (const std::string& compiler : compilers()) {
    for (const Way& way : ways) {
      CAPTURE(compiler);
      CAPTURE(way.name);
      const Run result = run(compiler, std::string("ends ") + way.name, "");
      CHECK(result.status == way.status);
      const bool all = std::string(way.name) != "nested";
      const capture::Capture capture = all ? read(result.path) : read_any(result.path);
      const Trace& trace = capture.trace;
      int locked = 0;
      int handled = 0;
      uint64_t last = 0;
      for (const Event& event : trace.events) {
        if (event.kind() == EventKind::kReadModifyWrite && trace.read_value(event)) {
          locked += event.size == 8 ? 1 : 0;
          handled += event.size == 4 ? 1 : 0;
          if (event.thread == 0 && event.size == 8 && locked > 3 && way.locked > 4) {
            CHECK(*trace.write_value(event) > last);  // program order across handlers
            last = *trace.write_value(event);
          }
        }
      }
      CHECK(locked == way.locked);
      // Of 101 handlers within one another the outermost are recorded.
      CHECK(trace.complete == all);
      CHECK(handled == (std::string(way.name) == "signals"         ? 200
                        : !all                                     ? 16
                        : std::string(way.name) == "abort_handled" ? 1
                                                                   : 0));
    }
  }
}

// The captures of further processes and programs of `ends` that are there.
std::vector<fs::path> further_captures(const fs::path& folder) {
  const std::string prefix = "ends.capture.";
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(prefix, 0) == 0 &&
        name.find_first_not_of("0123456789.", prefix.size()) == std::string::npos) {
      found.push_back(entry.path());
    }
  }
  return found;
}

TEST_CASE("a followed child of fork, and each program that is executed, has a file of its own") {
  for (const std::string& compiler : compilers()) {
    const fs::path folder = fs::path(kPrograms) / compiler;
    const auto only_new = [&](const std::string& way, const std::string& options) {
      for (const fs::path& path : further_captures(folder)) {
        fs::remove(path);
      }
      CHECK(run(compiler, "ends " + way, options).status == 0);
      return further_captures(folder);
    };
    const auto forked = only_new("fork", ":follow_fork=1");
    REQUIRE(forked.size() == 1);
    CHECK(count_kinds(read(forked[0].string()).trace).at(EventKind::kReadModifyWrite) == 1);
    const auto executed = only_new("exec_itself_twice", "");
    CHECK(executed.size() == 2);
    for (const fs::path& path : executed) {
      CHECK(count_kinds(read(path.string()).trace).at(EventKind::kReadModifyWrite) >= 3);
    }
  }
}

TEST_CASE("a program with more rights than its user obeys no variable, and hands none on") {
  if (geteuid() != 0) {
    return;
  }
  constexpr uid_t kNobody = 65534;
  char folder[] = "/tmp/tsomon.XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  const fs::path place(folder);
  CHECK(chmod(folder, 0777) == 0);
  const std::string output = "TSOMON_OPTIONS=output=" + (place / "capture").string();
  for (const std::string& compiler : compilers()) {
    const fs::path program = place / "program";
    fs::copy_file(fs::path(kPrograms) / compiler / "ends", program,
                  fs::copy_options::overwrite_existing);
    for (const mode_t mode : {mode_t{0755}, mode_t{04755}, mode_t{02755}}) {
      CAPTURE(compiler);
      CAPTURE(mode);
      fs::remove(place / "capture");
      CHECK(chmod(program.c_str(), mode) == 0);
      const bool secure = mode != 0755;
      const pid_t child = fork();
      if (child == 0) {
        const int channel = open((place / "channel").c_str(), O_RDWR | O_CREAT, 0666);
        const std::string explore = "TSOMON_EXPLORE=" + std::to_string(channel);
        const char* const arguments[] = {program.c_str(), "environment", nullptr};
        const char* const variables[] = {output.c_str(),
                                         "TSOMON_MESSAGES=/tmp/none",
                                         "TSOMON_OUTPUT_TAKEN=1",
                                         "NAME=value",
                                         secure ? explore.c_str() : "NAME2=value",
                                         nullptr};
        if (setresgid(kNobody, kNobody, kNobody) == 0 &&
            setresuid(kNobody, kNobody, kNobody) == 0) {
          execve(program.c_str(), const_cast<char**>(arguments), const_cast<char**>(variables));
        }
        _exit(100);
      }
      int status = 0;
      CHECK(waitpid(child, &status, 0) == child);
      REQUIRE(WIFEXITED(status));
      CHECK(WEXITSTATUS(status) == (secure ? 0 : 3));
      int captures = 0;
      for (const auto& entry : fs::directory_iterator(place)) {
        captures += entry.path().filename().string().rfind("capture", 0) == 0 ? 1 : 0;
      }
      CHECK(captures == (secure ? 0 : 1));
      for (const auto& entry :
           std::vector<fs::directory_entry>(fs::directory_iterator(place), {})) {
        if (entry.path().filename().string().rfind("capture", 0) == 0) {
          fs::remove(entry.path());
        }
      }
    }
  }
  fs::remove_all(place);
}

TEST_CASE("where time stamps are not to be compared, no interval orders threads") {
  const bool fit = probe::lfence_waits();
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run none = run(compiler, "ping_pong", ":clock=none");
    CHECK(none.status == 0);
    const capture::Capture open = read(none.path);
    CHECK(open.notes.size() == 1);
    uint64_t last = 0;  // of a thread the order stays
    for (const Event& event : open.trace.events) {
      CHECK(open.trace.lo(event) == kTimeMin);
      CHECK(open.trace.hi(event) == kTimeMax);
      const auto written = open.trace.write_value(event);
      if (event.kind() == EventKind::kWrite && event.thread == 0 && written) {
        CHECK(*written > last);
        last = *written;
      }
    }
    CHECK(last >= 399);

    // The probe says once, and only then, that it cannot rely on the machine.
    const Run found = run(compiler, "ping_pong", "");
    CHECK(read(found.path).notes.size() == (fit ? 0 : 1));
    const std::string text = log_of(found);
    CHECK(std::count(text.begin(), text.end(), '\n') == (fit ? 0 : 1));
    CHECK((text.find("no order between threads") != std::string::npos) == !fit);
    CHECK(read(run(compiler, "ping_pong", ":clock=trust").path).notes.empty());
  }
}

TEST_CASE("options that are not valid stop the program before main") {
  for (const std::string& compiler : compilers()) {
    for (const char* options : {":colour=blue", ":stamp_every=-1", ":stamp_every=x", ":level=99",
                                ":on_full=maybe", ":level=1:level=2", ":clock=maybe", ":buffer=12",
                                ":nothing", ":unit=", ":noise=1001", ":noise_seed=-1"}) {
      CAPTURE(options);
      const Run result = run(compiler, "basics", options);
      CHECK(result.status == 2);
      CHECK_FALSE(fs::exists(result.path));
      CHECK(log_of(result).rfind("tsomon: TSOMON_OPTIONS: ", 0) == 0);
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
    CHECK(kinds.at(EventKind::kUnitBegin) == 17);
    CHECK(kinds.at(EventKind::kUnitEnd) == 17);
    // The last one calls a function that is no unit.
    std::string end;
    for (const Event& event : capture.trace.events) {
      end += event.kind() == EventKind::kUnitBegin ? "(" : "";
      end += event.kind() == EventKind::kUnitEnd ? ")" : "";
      end += event.kind() == EventKind::kWrite ? "w" : "";
    }
    CHECK(end.substr(end.rfind('(')).rfind("(ww)", 0) == 0);
    CHECK(run(compiler, "functions", ":unit=no_such_function").status == 2);
    const Run unnamed = run(compiler, "functions", ":unit=(anonymous namespace)::hid*en");
    CHECK(unnamed.status == 0);
    const Trace trace = read(unnamed.path).trace;
    CHECK(count_kinds(trace).at(EventKind::kUnitBegin) == 2);
    CHECK(trace.symbols.labels.find("(anonymous namespace)::hidden") != Interner::kNone);
  }
}

TEST_CASE("threads that have ended leave little memory behind") {
  const Run result = run("g++", "short_threads", ":unit=work");
  CHECK(result.status == 0);
  const capture::Capture capture = read(result.path);
  CHECK(count_kinds(capture.trace).at(EventKind::kUnitBegin) == 20'000);
  // Whether somebody joins it or not: nothing of it is left in a store buffer.
  std::map<ThreadId, EventKind> last;
  for (const Event& event : capture.trace.events) {
    last[event.thread] = event.kind();
  }
  CHECK(std::count_if(last.begin(), last.end(), [](const auto& thread) {
          return thread.second == EventKind::kFence;
        }) >= 20'000);
  // Bytes for each thread.
  MESSAGE(result.said.at("resident") << " resident, " << result.said.at("address_space"));
  CHECK(result.said.at("resident") < 1'000);
  CHECK(result.said.at("address_space") < 1'000);
}

TEST_CASE("units that end and never began are told of once, with their number") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run result = run(compiler, "stray_ends", "");
    CHECK(result.status == 0);
    const capture::Capture capture = read_any(result.path);
    CHECK_FALSE(capture.trace.complete);
    REQUIRE(capture.problems.size() == 1);
    CHECK(capture.problems[0].rfind("thread 1, chunk 0: byte ", 0) == 0);
    CHECK(capture.problems[0].find(": a unit ends that never began; 3000 ends") !=
          std::string::npos);
  }
}

TEST_CASE("a program without standard output keeps the capture's descriptor apart") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const std::string folder = fmt::format("{}/{}", kPrograms, compiler);
    const std::string path = folder + "/closed.capture";
    fs::remove(path);
    // What the program prints would otherwise stand in the capture.
    const std::string command = fmt::format(
        "exec env TSOMON_OPTIONS=output={} {}/thread_edges destructors >&-", path, folder);
    CHECK(std::system(command.c_str()) == 0);
    CHECK(count_kinds(read(path).trace).at(EventKind::kReadModifyWrite) == 100);
  }
}

TEST_CASE("what tsomon run reads is apart from its standard output, which is closed") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const std::string folder = fmt::format("{}/{}", kPrograms, compiler);
    const std::string path = folder + "/closed_run.capture";
    fs::remove(path);
    // Reports are written while the program runs.
    const std::string command = fmt::format("exec {} run -s {} -- {}/lost_updates <&- >&- 2>{}.log",
                                            TSOMON_EXECUTABLE, path, folder, path);
    CHECK(std::system(command.c_str()) != -1);
    CHECK(count_kinds(read(path).trace).at(EventKind::kUnitBegin) == 400);
  }
}

TEST_CASE("functions that happen to have names of the C library's are the program's own") {
  for (const std::string& compiler : compilers()) {
    const Run result = run(compiler, "own_names", "");
    CHECK(result.status == 0);
    CHECK(count_kinds(read(result.path).trace).at(EventKind::kAcquire) == 2);
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
