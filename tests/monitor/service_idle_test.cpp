// Analyses of kept slices in processes of their own: within bounds, ended at once, whatever they do.
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/process/descriptor_message.h"
#include "monitor/process/running_programs.h"
#include "monitor/service/idle_launcher.h"
#include "monitor/service/idle_process.h"
#include "monitor/service/kept_analysis.h"
#include "tests/monitor/folder.h"
#include "tests/monitor/service_store.h"

using namespace tsomon;
using namespace tsomon::service;
using namespace tsomon::testing;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr seconds kPatience{60};
const std::string kShell = "/bin/sh";
using Clock = std::chrono::steady_clock;
const auto kNever = [] { return false; };

IdleEnd run(const IdleBounds& bounds, const std::string& script, const StopFlag& stop = {}) {
  auto end = IdleProcess(bounds).run({kShell, "-c", script}, [&] { return stop.asked(); });
  REQUIRE(end);
  return *end;
}

// Waits for a condition; false: it did not come.
template <typename Condition>
bool comes(const Condition& condition) {
  for (const auto until = Clock::now() + kPatience; Clock::now() < until;) {
    if (condition()) {
      return true;
    }
    std::this_thread::sleep_for(milliseconds(20));
  }
  return false;
}

}  // namespace

TEST_CASE("a program at idle priority, its output and its status") {
  // Policy 5 is SCHED_IDLE; the parts of stat behind the name count from the state.
  const IdleEnd end = run(
      {}, "cut -d')' -f2 /proc/self/stat | cut -d' ' -f40; cat /proc/self/oom_score_adj; exit 3");
  CHECK(end.why == IdleEnd::Why::kEnded);
  CHECK(WIFEXITED(end.wait_status));
  CHECK(WEXITSTATUS(end.wait_status) == 3);
  CHECK(end.output == "5\n1000\n");
  const auto none = IdleProcess().run({"/no/such/program"}, kNever);
  REQUIRE_FALSE(none);
  CHECK(none.error().kind == ErrorKind::kUsage);
}

TEST_CASE("what an idle program may use is bounded") {
  IdleBounds bounds;
  bounds.processor_time = milliseconds(200);
  const IdleEnd endless = run(bounds, "trap 'echo asked; exit 0' TERM; while :; do :; done");
  CHECK(endless.why == IdleEnd::Why::kTime);
  CHECK(endless.output == "asked\n");
  CHECK(endless.used >= milliseconds(200));
  CHECK(endless.used < milliseconds(2200));
  const IdleEnd stubborn = run(bounds, "trap '' TERM; while :; do :; done");
  CHECK(stubborn.why == IdleEnd::Why::kTime);
  CHECK(WIFSIGNALED(stubborn.wait_status));
  bounds = {};
  bounds.memory_bytes = uint64_t{32} << 20;
  const IdleEnd large =
      run(bounds, "exec python3 -c 'x = []\nwhile True: x.append(bytearray(1 << 20))'");
  const bool refused = WIFEXITED(large.wait_status) && WEXITSTATUS(large.wait_status) != 0;
  CHECK((large.why == IdleEnd::Why::kMemory || refused));
  bounds = {};
  bounds.output_bytes = 100'000;
  const IdleEnd talks = run(bounds, "exec cat /dev/zero");
  CHECK(WIFSIGNALED(talks.wait_status));
  CHECK(WTERMSIG(talks.wait_status) == SIGXFSZ);
  CHECK(talks.output.size() == 100'000);
}

// As much as it may and no more: it never has less time than it asks for, however busy the machine is.
TEST_CASE("an idle program keeps to its share of a processor") {
  IdleBounds bounds;
  bounds.share = 0.1;
  bounds.processor_time = milliseconds(150);
  const auto begin = Clock::now();
  const IdleEnd end = run(bounds, "while :; do :; done");
  const double took = std::chrono::duration<double>(Clock::now() - begin).count();
  const double used = std::chrono::duration<double>(end.used).count();
  CAPTURE(used);
  // What is over at the end, and between two looks, on a machine that is busy itself.
  CHECK(used <= 0.1 * took + 0.3);
  CHECK(took >= (0.15 - 0.05) / 0.1 * 0.9);
}

// At once: long before one that stands still would go on; how soon is a matter of how busy the machine is.
TEST_CASE("a stop ends an idle program at once, also one that stands still") {
  for (const double share : {1.0, 0.0001}) {
    IdleBounds bounds;
    bounds.share = share;
    StopFlag stop;
    Clock::time_point asked;
    std::thread asks([&] {
      std::this_thread::sleep_for(milliseconds(200));
      asked = Clock::now();
      stop.ask();
    });
    const IdleEnd end = run(bounds, "while :; do :; done", stop);
    asks.join();
    CHECK(end.why == IdleEnd::Why::kStopped);
    CHECK(Clock::now() - asked < seconds(10));
  }
}

TEST_CASE("an idle program does not outlive who started it") {
  const Folder folder;
  const std::string file = folder.write("pid", "");
  const pid_t parent = ::fork();
  REQUIRE(parent >= 0);
  if (parent == 0) {
    (void)IdleProcess().run({kShell, "-c", "echo $$ > " + file + "; exec sleep 600"}, kNever);
    ::_exit(0);
  }
  pid_t child = 0;
  CHECK(comes([&] { return bool(std::ifstream(file) >> child); }));
  CHECK(attach::start_of(child) != 0);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  CHECK(comes([&] { return attach::start_of(child) == 0; }));
}

namespace {

// A process that runs programs for this one.
struct Launcher {
  Launcher() {
    std::array<int, 2> ends{-1, -1};
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
    Descriptor theirs(ends[1]);
    socket = Descriptor(ends[0]);
    pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      socket = Descriptor();
      serve_as_launcher(theirs);
      ::_exit(0);
    }
  }
  ~Launcher() {
    socket = Descriptor();
    ::waitpid(pid, nullptr, 0);
  }
  Result<IdleEnd> run(const std::string& script, const std::function<bool()>& stopped = kNever) {
    return run_by_launcher(socket, {}, {kShell, "-c", script}, stopped);
  }
  Descriptor socket;
  pid_t pid = -1;
};

}  // namespace

TEST_CASE("another process launches idle programs") {
  const Folder folder;
  const std::string file = folder.write("pid", "");
  pid_t child = 0;
  {
    Launcher launcher;
    const auto end = launcher.run("echo all; head -c 100000 /dev/zero; exit 3");
    REQUIRE(end);
    CHECK(WEXITSTATUS(end->wait_status) == 3);
    CHECK(end->output.size() == 4 + 100'000);
    const auto none =
        run_by_launcher(launcher.socket, {}, {"/no/such/program", "with", ""}, kNever);
    REQUIRE_FALSE(none);
    CHECK(none.error().kind == ErrorKind::kUsage);
    CHECK(none.error().to_string() ==
          "/no/such/program: cannot be started: No such file or directory");
    CHECK_FALSE(run_by_launcher(launcher.socket, {}, {std::string(40'000, 'x')}, kNever));
    const auto asked = Clock::now();
    const auto stopped =
        launcher.run("exec sleep 600", [&] { return Clock::now() - asked > milliseconds(50); });
    REQUIRE(stopped);
    CHECK(stopped->why == IdleEnd::Why::kStopped);
    // A stop that comes too late stops nothing else.
    REQUIRE(send_message(launcher.socket.get(), "", 1));
    CHECK(launcher.run("echo next")->output == "next\n");
    // Who has asked goes.
    const pid_t asks = ::fork();
    REQUIRE(asks >= 0);
    if (asks == 0) {
      (void)launcher.run("echo $$ > " + file + "; exec sleep 600");
      ::_exit(0);
    }
    CHECK(comes([&] { return bool(std::ifstream(file) >> child); }));
    ::kill(asks, SIGKILL);
    ::waitpid(asks, nullptr, 0);
    CHECK(attach::start_of(child) != 0);  // this process may ask, too
  }
  CHECK(comes([&] { return attach::start_of(child) == 0; }));
}

TEST_CASE("what the commands write becomes findings, causes and predictions") {
  SliceAnalysis check;
  check.what = SliceAnalysis::What::kCheck;
  check.property = "robustness";
  check.file = "s/1.tsomon";
  AnalysisEnd end = end_of_output(
      check,
      R"({"tool":"tsomon check","file":"x","property":"robustness","verdict":"definite","complete":true,)"
      R"("findings":[{"fingerprint":"aa","verdict":"definite","count":2},{"fingerprint":"bb","verdict":"possible"}]})");
  REQUIRE(end.found.size() == 1);
  CHECK(end.found.front().fingerprint == "aa");
  CHECK(end.found.front().property == "robustness");
  CHECK(end.found.front().definite);
  CHECK(end.result == "definite, 1 definite finding");
  SliceAnalysis predict = check;
  predict.what = SliceAnalysis::What::kPredict;
  end = end_of_output(
      predict,
      R"({"tool":"tsomon predict","file":"x","kinds":["races"],"verdict":"predicted","complete":true,"races":[)"
      R"({"fingerprint":"cc","accesses":[{"event":1,"thread":"T0","operation":"load","location":"a.cpp:1"}]},)"
      R"({"fingerprint":"dd","suppressed_by":"s:1"}],"deadlocks":[{"fingerprint":"ee"}]})");
  REQUIRE(end.found.size() == 2);
  CHECK(end.found[0].predicted);
  CHECK(end.found[0].property == "race");
  CHECK(end.found[0].summary.find("a.cpp:1") != std::string::npos);
  CHECK(end.found[1].property == "deadlock");
  CHECK(end.result == "1 race, 1 deadlock");
  SliceAnalysis explain = check;
  explain.what = SliceAnalysis::What::kExplain;
  end = end_of_output(explain, R"({"tool":"tsomon explain","eliminators":[{"rank":1}]})");
  CHECK(end.explanation.find("eliminators") != std::string::npos);
  CHECK(end_of_output(explain, R"({"eliminators":[]})").explanation.empty());
  CHECK(end_of_output(explain, R"({"error":{"message":"no memory"}})").result ==
        "not judged: no memory");
  for (const char* const hostile : {"", "[", "7", "{\"findings\":7,\"races\":[1,[]]}", "\xff"}) {
    for (const SliceAnalysis& each : {check, predict, explain}) {
      CHECK(end_of_output(each, hostile).found.empty());
    }
  }
  const auto command = analysis_command("/bin/tsomon", predict, 60, {"a.supp"});
  CHECK(command == std::vector<std::string>{"/bin/tsomon", "predict", "s/1.tsomon", "--format",
                                            "capture", "--output", "json", "--jobs", "1",
                                            "--witness-events", "1000", "--suppressions",
                                            "a.supp"});
}

// `program` stands for tsomon.
TEST_CASE("analyses go on whatever one of them does") {
  const Folder place;
  const auto store = kept_store(place.write("x", "") + ".store");
  const SightingPlace bank{"bank", "here", "abcd"};
  for (int i = 1; i <= 5; ++i) {
    REQUIRE(store->add(bank, i, {seen_finding(static_cast<uint64_t>(i))}, slice_of(10).get()));
  }
  const std::string program = place.write("program", R"(#!/bin/sh
case "$1 $2" in
  *explain*) echo '{"eliminators":[{"rank":1}]}' ;;
  */5.tsomon) kill -SEGV $$ ;;
  */4.tsomon) exec cat /dev/zero ;;
  */3.tsomon) echo '{"verdict":"predicted","races":[{"fingerprint":"abcdef"}]}' ;;
  */2.tsomon) echo nonsense ;;
  *) while :; do :; done ;;
esac
)");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  IdleBounds bounds;
  bounds.processor_time = milliseconds(100);
  bounds.output_bytes = 100'000;
  std::vector<std::string> found;
  std::string told;
  AnalysisLinks links;
  links.store = store.get();
  IdleProcess process;
  links.run = [&](const IdleBounds& of_it, const std::vector<std::string>& command,
                  const std::function<bool()>& stopped) {
    process.set_bounds(of_it);
    return process.run(command, stopped);
  };
  links.host = "here";
  links.suppressions = [](const std::string&) { return std::vector<std::string>(); };
  links.found = [&](const SliceAnalysis& analysis, const SeenFinding& finding) {
    found.push_back(fmt::format("{} {}", analysis.slice, finding.fingerprint));
  };
  links.tell = [&](const std::string& text) { told += text; };
  {
    KeptAnalysis analysis(bounds, std::move(links), program);
    CHECK(comes([&] {
      const auto all = store->analyses();
      return all->size() == 10 && std::none_of(all->begin(), all->end(), [](const auto& each) {
               return each.state == SliceAnalysis::State::kBegun;
             });
    }));
    const AnalysisCounters counters = analysis.counters();
    CHECK(counters.explained == 5);
    CHECK(counters.predicted == 1);
    CHECK(counters.ended.at({"predict", "crashed"}) == 2);
    CHECK(counters.ended.at({"predict", "output"}) == 1);
    CHECK(counters.ended.at({"predict", "time"}) == 1);
    // The next one stands still when a stop comes.
    REQUIRE(store->add(bank, 9, {seen_finding(9)}, slice_of(10).get()));
  }
  CHECK(told.empty());
  CHECK(found == std::vector<std::string>{"3 abcdef"});
  std::vector<std::string> results;
  const auto all = store->analyses();
  REQUIRE(all);
  for (const SliceAnalysis& each : *all) {
    if (each.what == SliceAnalysis::What::kPredict && each.slice <= 5) {
      results.push_back(each.result);
    }
  }
  REQUIRE(results.size() == 5);
  CHECK(results[0].find("took more than 0 s of processor time: ") == 0);
  CHECK(results[1] == "it said nothing that can be read");
  CHECK(results[2] == "1 race");
  CHECK(results[3] == "wrote more than 0 MB");
  CHECK(results[4].find("left: it was ended by signal 11") == 0);
}
