// Signals while a program runs are the program's; those after its end are the caller's.
#include "monitor/process/child.h"

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

using namespace tsomon;

namespace {

void wait_for(const StopFlag& stop) {
  for (int i = 0; i < 1000 && !stop.asked(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace

TEST_CASE("a signal while the program runs ends it, and some time later what the caller does") {
  StopFlag stop;
  Child child({"sleep", "600"}, {}, &stop);
  REQUIRE(child.exec_error() == 0);
  CHECK(!child.ended());
  CHECK(!stop.asked());
  kill(getpid(), SIGTERM);
  CHECK(exit_status(child.wait()) == 128 + SIGTERM);
  wait_for(stop);
  CHECK(stop.asked());
}

TEST_CASE("a signal after the program's end is for the caller") {
  StopFlag stop;
  Child child({"true"}, {}, &stop);
  REQUIRE(child.exec_error() == 0);
  CHECK(child.wait() == 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(!stop.asked());
  kill(getpid(), SIGTERM);
  wait_for(stop);
  CHECK(stop.asked());
}

TEST_CASE(
    "a program that goes on is left alone, unless it waits for the caller or is asked twice") {
  const std::vector<std::string> stays = {"sh", "-c", "trap : TERM; while :; do sleep 0.1; done"};
  const auto let_trap = [] { std::this_thread::sleep_for(std::chrono::milliseconds(500)); };
  SUBCASE("it waits") {
    StopFlag stop;
    Child child(
        stays, [](pid_t) { return true; }, &stop, [] { return true; });
    let_trap();
    kill(getpid(), SIGTERM);
    wait_for(stop);
    CHECK(stop.asked());
    CHECK(!child.ended());
    kill(getpid(), SIGHUP);
  }
  SUBCASE("it does not") {
    StopFlag stop;
    Child child(
        stays, [](pid_t) { return true; }, &stop, [] { return false; });
    let_trap();
    kill(getpid(), SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(1000));
    CHECK(!stop.asked());
    CHECK(!child.ended());
    for (int i = 0; i < 20 && !stop.asked(); ++i) {
      kill(getpid(), SIGTERM);
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    CHECK(stop.asked());
    kill(getpid(), SIGHUP);
  }
}
