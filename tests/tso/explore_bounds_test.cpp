// Large states count as several: what an exploration takes depends on its bound, not on the
// program.
#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include "tso/machine/explore.h"

using namespace tsomon::machine;

namespace {

Program racing(uint32_t threads, uint32_t stores) {
  Program program;
  program.memory = {0};
  for (uint32_t i = 0; i < threads; ++i) {
    Thread thread;
    for (uint32_t n = 0; n < stores; ++n) {
      thread.instructions.push_back(Instruction::store(0, immediate(1)));
    }
    thread.instructions.push_back(Instruction::load(0, 0));
    program.threads.push_back(thread);
  }
  return program;
}

}  // namespace

TEST_CASE("an exploration of large states ends sooner, and says so") {
  constexpr Limits kLimits{.max_states = 20'000, .max_backward_jumps = 4};
  for (const Model model : {Model::kSc, Model::kTso}) {
    for (const auto& [threads, stores] : {std::pair(64U, 1U), {4U, 300U}}) {
      const Program program = racing(threads, stores);
      const Machine machine(program, {.model = model});
      uint64_t bytes = 0;
      const Exploration found = explore(
          machine, kLimits, [&](const State& state) { bytes += execution_class(state).size(); });
      CHECK(found.state_limit_hit);
      CHECK(!found.complete());
      CHECK(found.states < kLimits.max_states / 2);
      CHECK(bytes <= kLimits.max_states * kStateBytes);
    }
  }
}

TEST_CASE("states of the usual size are all visited") {
  const Program program = racing(3, 2);
  const Machine machine(program, {.model = Model::kTso});
  const Exploration whole = explore(machine, {}, [](const State&) {});
  CHECK(whole.complete());
  const Exploration just = explore(machine, {.max_states = whole.states}, [](const State&) {});
  CHECK(just.complete());
  CHECK(just.executions == whole.executions);
}
