// Schedule: what it runs is an order of the operations in which loads return their values.
#include "offline/consistency/schedule.h"

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(1'000, 20'000);

// A run of some threads, one operation after the other: its values fit SC, hence TSO.
std::string random_run(std::mt19937_64& random) {
  std::map<std::string, uint64_t> memory = {{"x", 0}, {"y", 0}};
  std::string text;
  uint64_t value = 0;
  for (uint64_t step = 0; step < 4 + random() % 12; ++step) {
    const std::string name = random() % 2 == 0 ? "x" : "y";
    text += fmt::format("T{}:", random() % 3);
    switch (random() % 5) {
      case 0:
      case 1:
        text += fmt::format("W({}={}) ", name, memory[name] = ++value);
        break;
      case 2:
        text += "F ";
        break;
      default:
        text += fmt::format("R({}={}) ", name, memory[name]);
        break;
    }
  }
  return text;
}

// One operation at a time, with nothing but memory: under SC every load returns what is there.
void check_sc(const ValueProblem& problem, const std::vector<uint32_t>& steps) {
  std::vector<std::optional<uint64_t>> memory;
  for (const ValueProblem::Location& location : problem.locations) {
    memory.push_back(location.initial);
  }
  std::vector<size_t> next(problem.threads.size(), 0);
  for (const uint32_t at : steps) {
    const Operation& operation = problem.operations[at];
    REQUIRE(problem.threads[operation.thread][next[operation.thread]++] == at);
    if (operation.is_read() && operation.location != Operation::kNone && operation.read) {
      REQUIRE(memory[operation.location] == operation.read);
    }
    if (operation.is_write() && operation.location != Operation::kNone) {
      memory[operation.location] = operation.written;
    }
  }
}

}  // namespace

TEST_CASE("schedule: a run that is not stuck returns all values, in program order") {
  std::mt19937_64 random(20261125);
  int whole = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::string text = random_run(random);
    CAPTURE(text);
    const ValueProblem problem = make_value_problem(mini_trace(text), false);
    MemoryOrder order(problem, MemoryModel::kSc);
    REQUIRE(order.settle());
    Schedule schedule(problem, order);
    if (schedule.run()) {
      REQUIRE(schedule.steps().size() == problem.operations.size());
      check_sc(problem, schedule.steps());
      ++whole;
      continue;
    }
    // It says which decision is missing.
    const Schedule::Stuck why = schedule.stuck();
    REQUIRE((why.load != Operation::kNone ||
             (why.first != Operation::kNone && why.second != Operation::kNone)));
    check_sc(problem, schedule.steps());
  }
  CHECK(whole > kRounds / 4);
}

TEST_CASE("schedule: steps that are taken back can be run again") {
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    const std::string text = random_run(random);
    CAPTURE(text);
    const ValueProblem problem = make_value_problem(mini_trace(text), false);
    MemoryOrder order(problem, MemoryModel::kSc);
    REQUIRE(order.settle());
    Schedule schedule(problem, order);
    const bool ran = schedule.run();
    const std::vector<uint32_t> before = schedule.steps();
    schedule.take_back(before.size() / 2);
    REQUIRE(schedule.steps().size() == before.size() / 2);
    CHECK(schedule.run() == ran);
    check_sc(problem, schedule.steps());
  }
}
