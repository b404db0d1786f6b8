// Programs that are asked what an object does, well-behaved and not.
#include "monitor/specification/sequential_program.h"

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "tests/monitor/folder.h"
#include "tso/support/work.h"

using namespace tsomon;

namespace {

// A counter: every call adds one, and its result is the sum. Each question is counted in a file.
std::string counter(const testing::Folder& folder, const std::string& asked) {
  const std::string script =
      folder.write("counter",
                   "while read -r calls; do\n"
                   "  echo \"$calls\" >>\"$1\"\n"
                   "  sum=0 results=\n"
                   "  for call in $calls; do\n"
                   "    sum=$((sum + 1)) results=\"$results${results:+|}$sum\"\n"
                   "  done\n"
                   "  echo \"$results\"\n"
                   "done\n");
  return "/bin/sh '" + script + "' '" + asked + "'";
}

std::string message_of(const std::string& command, const std::vector<std::string>& calls) {
  auto program = SequentialProgram::start(command);
  REQUIRE(program);
  const auto result = (*program)->result_of(calls);
  REQUIRE_FALSE(result);
  CHECK(result.error().kind == ErrorKind::kUnreadable);
  CHECK(result.error().input == command);
  return result.error().message;
}

}  // namespace

TEST_CASE("sequential program: the result of the last call, each sequence asked once") {
  const testing::Folder folder;
  const std::string asked = folder.write("asked", "");
  auto program = SequentialProgram::start(counter(folder, asked));
  REQUIRE(program);
  std::vector<std::string> calls;
  for (int round = 0; round < 2; ++round) {
    calls.clear();
    for (int i = 1; i <= 20; ++i) {
      calls.push_back("add(" + std::to_string(i) + ")");
      const auto result = (*program)->result_of(calls);
      REQUIRE(result);
      CHECK(*result == std::to_string(i));
    }
  }
  std::ifstream file(asked);
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
  }
  CHECK(lines == 20);
}

TEST_CASE("sequential program: several threads ask one program") {
  const testing::Folder folder;
  auto program = SequentialProgram::start(counter(folder, "/dev/null"));
  REQUIRE(program);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::string> calls;
      for (int i = 1; i <= 30; ++i) {
        calls.push_back("t" + std::to_string(t));
        const auto result = (*program)->result_of(calls);
        wrong[t] += result && *result == std::to_string(i) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("sequential program: what goes wrong is told with what was asked") {
  CHECK(message_of("no_such_program_of_ours 2>/dev/null", {"push(1)"}).find("it has ended") !=
        std::string::npos);
  CHECK(message_of("true", {"push(1)", "pop()"}).find("push(1) pop()") != std::string::npos);
  CHECK(message_of("/bin/sh -c 'read line; echo \"1|2|3\"; read line'", {"push(1)", "pop()"})
            .find("3 results for 2 calls") != std::string::npos);
  CHECK(message_of("head -c 4", {"push(1)"}).find("it has ended") != std::string::npos);
}

TEST_CASE("sequential program: one that says nothing is not waited for after a stop") {
  auto program = SequentialProgram::start("sleep 1000");
  REQUIRE(program);
  StopFlag stop;
  WorkMeter meter({}, &stop);
  const WorkScope scope(&meter);
  std::thread stops([&stop] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stop.ask();
  });
  const auto result = (*program)->result_of({"push(1)"});
  stops.join();
  REQUIRE_FALSE(result);
  CHECK(result.error().message.find("interrupted") != std::string::npos);
}
