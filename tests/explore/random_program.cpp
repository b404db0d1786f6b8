#include "tests/explore/random_program.h"

namespace tsomon::explore {

machine::Program random_program(std::mt19937_64& random, uint32_t threads, uint32_t length,
                                uint32_t most) {
  using machine::Instruction;
  const auto below = [&](uint64_t bound) { return random() % bound; };
  machine::Program program;
  const uint64_t locations = 1 + below(most);
  program.memory.assign(locations, 0);
  for (uint32_t t = 0; t < threads; ++t) {
    machine::Thread thread;
    const uint64_t size = 1 + below(length);
    for (uint64_t i = 0; i < size; ++i) {
      const auto location = static_cast<machine::Location>(below(locations));
      const machine::Value value = below(4) == 0 ? 1 : 10 * (t + 1) + i;
      const auto result = static_cast<machine::Register>(1 + below(3));
      switch (most < 3 && below(2) == 0 ? 9 + below(2) : below(12)) {
        case 0:
        case 1:
        case 2:
        case 3:
          thread.instructions.push_back(Instruction::load(result, location));
          break;
        case 4:
        case 5:
        case 6:
        case 7:
          thread.instructions.push_back(
              Instruction::store(location, below(4) == 0 ? machine::from_register(result)
                                                         : machine::immediate(value)));
          break;
        case 8:
          thread.instructions.push_back(Instruction::fence());
          break;
        case 9:
          thread.instructions.push_back(Instruction::locked(
              machine::Operation::kExchangeAdd, location, machine::immediate(value), result));
          break;
        case 10:
          thread.instructions.push_back(Instruction::locked(machine::Operation::kCompareExchange,
                                                            location, machine::immediate(value)));
          break;
        default:
          // Skips the next instruction if the register is not 0.
          thread.instructions.push_back(Instruction::arithmetic(machine::Operation::kTest, result,
                                                                machine::from_register(result)));
          thread.instructions.push_back(
              Instruction::jump_if(machine::Condition::kNotEqual,
                                   static_cast<uint32_t>(thread.instructions.size() + 2)));
          thread.instructions.push_back(Instruction::store(location, machine::immediate(value)));
          break;
      }
    }
    program.threads.push_back(thread);
  }
  return program;
}

}  // namespace tsomon::explore
