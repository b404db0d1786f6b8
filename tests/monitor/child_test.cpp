// Signals while a program runs are the program's; those after its end are the caller's.
#include "monitor/child.h"

#include <chrono>
#include <csignal>
#include <thread>

#include <doctest/doctest.h>
#include <unistd.h>

using namespace tsomon;

namespace {

void wait_for(const Child& child) {
  for (int i = 0; i < 1000 && !child.interrupted(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace

TEST_CASE("a signal while the program runs ends it, one after its end is for the caller") {
  Child child({"sleep", "60"});
  REQUIRE(child.exec_error() == 0);
  CHECK(!child.ended());
  kill(getpid(), SIGTERM);
  CHECK(exit_status(child.wait()) == 128 + SIGTERM);
  CHECK(!child.interrupted());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(!child.interrupted());
  kill(getpid(), SIGTERM);
  wait_for(child);
  CHECK(child.interrupted());
}
