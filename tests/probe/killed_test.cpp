// What is killed leaves what it recorded before, in chunks that are not full as well.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/probe/recorded_program.h"

using namespace tsomon;
using namespace tsomon::probe_tests;

namespace {

int units_in(const std::string& path) {
  const auto capture = capture::read_capture(text_of(path));
  if (!capture) {
    return 0;  // nothing yet
  }
  return count_kinds(capture->trace)[EventKind::kUnitBegin];
}

pid_t start(const std::vector<std::string>& command, const std::string& output) {
  const pid_t child = fork();
  if (child == 0) {
    std::vector<char*> arguments;
    for (const std::string& each : command) {
      arguments.push_back(const_cast<char*>(each.c_str()));
    }
    arguments.push_back(nullptr);
    const int fd = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  return child;
}

// The program of a tsomon, or 0.
pid_t child_of(pid_t parent) {
  const std::string text = text_of(fmt::format("/proc/{0}/task/{0}/children", parent));
  return text.empty() ? 0 : std::atoi(text.c_str());
}

enum class Killed { kProgram, kMonitor, kBoth };

}  // namespace

TEST_CASE("a recording that is killed has all but what it did last, also of slow threads") {
  for (const char* how : {"record", "run"}) {
    for (const Killed killed : {Killed::kProgram, Killed::kMonitor, Killed::kBoth}) {
      CAPTURE(how);
      CAPTURE(static_cast<int>(killed));
      const std::string path = kPrograms + "/g++/slow.capture";
      std::filesystem::remove(path);
      std::vector<std::string> command = {TSOMON_EXECUTABLE, how};
      command.insert(command.end(), {std::string(how) == "run" ? "--save" : "-o", path, "--",
                                     kPrograms + "/g++/slow"});
      const pid_t monitor = start(command, path + ".out");
      // Nothing fills its chunk, and nobody ends: what is there is there because it was time.
      int units = 0;
      for (int tries = 0; tries < 600 && units != 150; ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        units = units_in(path);
      }
      CHECK(units == 150);
      const pid_t program = child_of(monitor);
      REQUIRE(program > 0);
      if (killed != Killed::kProgram) {
        kill(monitor, SIGKILL);
      }
      if (killed != Killed::kMonitor) {
        kill(program, SIGKILL);
      }
      int status = 0;
      CHECK(waitpid(monitor, &status, 0) == monitor);
      if (killed == Killed::kProgram) {
        CHECK(WEXITSTATUS(status) == 128 + SIGKILL);
      } else {
        kill(program, SIGKILL);
      }
      const capture::Capture capture = read_any(path);
      CHECK(count_kinds(capture.trace)[EventKind::kUnitBegin] == 150);
      CHECK_FALSE(capture.trace.complete);
    }
  }
}
