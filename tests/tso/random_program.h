// Random small programs for the tests of the abstract machine. Every written value is different.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include "tso/machine/program.h"

namespace tsomon::machine::testing {

struct ProgramShape {
  uint32_t threads = 2;
  uint32_t instructions = 3;  // at most, per thread
  uint32_t locations = 2;
  bool branches = false;  // forward jumps, compare-exchange, register arithmetic
  bool fence_after_store = false;
};

inline Program random_program(std::mt19937_64& random, const ProgramShape& shape) {
  const auto below = [&](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
  Program program;
  program.memory.assign(shape.locations, 0);
  program.threads.resize(shape.threads);
  Value fresh = 1;
  for (Thread& thread : program.threads) {
    const uint32_t length = 1 + below(shape.instructions);
    for (uint32_t index = 0; index < length; ++index) {
      const Location location = below(shape.locations);
      const Register target = static_cast<Register>(below(3));
      auto& code = thread.instructions;
      switch (below(shape.branches ? 12 : 8)) {
        case 0:
        case 1:
        case 2:
          code.push_back(Instruction::load(target, location));
          break;
        case 3:
        case 4:
        case 5:
          code.push_back(Instruction::store(location, immediate(fresh++)));
          break;
        case 6:
          code.push_back(
              Instruction::locked(Operation::kExchange, location, immediate(fresh++), target));
          break;
        case 7:
          code.push_back(Instruction::fence());
          break;
        case 8:
          code.push_back(
              Instruction::locked(Operation::kCompareExchange, location, immediate(fresh++)));
          break;
        case 9:
          code.push_back(Instruction::arithmetic(Operation::kAdd, target, immediate(fresh++)));
          break;
        case 10:
          code.push_back(Instruction::store(location, from_register(target)));
          break;
        default:
          code.push_back(Instruction::arithmetic(Operation::kCompare, target, immediate(0)));
          code.push_back(Instruction::jump_if(Condition::kEqual,
                                              static_cast<uint32_t>(code.size()) + 1 + below(2)));
          break;
      }
      if (shape.fence_after_store && code.back().opcode == Opcode::kStore) {
        code.push_back(Instruction::fence());
      }
    }
    const auto end = static_cast<uint32_t>(thread.instructions.size());
    for (Instruction& instruction : thread.instructions) {
      instruction.target = std::min(instruction.target, end);
    }
  }
  return program;
}

}  // namespace tsomon::machine::testing
