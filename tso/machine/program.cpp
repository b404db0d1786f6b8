#include "tso/machine/program.h"

#include <fmt/format.h>

namespace tsomon::machine {

Instruction Instruction::nothing() { return {}; }

Instruction Instruction::move(Register destination, Operand source) {
  Instruction made;
  made.opcode = Opcode::kMove;
  made.destination = destination;
  made.source = source;
  return made;
}

Instruction Instruction::arithmetic(Operation operation, Register destination, Operand source) {
  Instruction made;
  made.opcode = Opcode::kArithmetic;
  made.operation = operation;
  made.destination = destination;
  made.source = source;
  return made;
}

Instruction Instruction::load(Register destination, Location location) {
  Instruction made;
  made.opcode = Opcode::kLoad;
  made.destination = destination;
  made.location = location;
  return made;
}

Instruction Instruction::store(Location location, Operand source) {
  Instruction made;
  made.opcode = Opcode::kStore;
  made.location = location;
  made.source = source;
  return made;
}

Instruction Instruction::locked(Operation operation, Location location, Operand source,
                                Register destination) {
  Instruction made;
  made.opcode = Opcode::kLocked;
  made.operation = operation;
  made.destination = destination;
  made.location = location;
  made.source = source;
  return made;
}

Instruction Instruction::fence() {
  Instruction made;
  made.opcode = Opcode::kFence;
  return made;
}

Instruction Instruction::jump(uint32_t target) {
  Instruction made;
  made.opcode = Opcode::kJump;
  made.target = target;
  return made;
}

Instruction Instruction::jump_if(Condition condition, uint32_t target) {
  Instruction made = jump(target);
  made.opcode = Opcode::kJumpIf;
  made.condition = condition;
  return made;
}

Instruction Instruction::with_width(uint8_t bytes) const {
  Instruction made = *this;
  made.width = bytes;
  return made;
}

namespace {

std::string check_instruction(const Instruction& instruction, size_t length, size_t locations) {
  const bool accesses = instruction.opcode == Opcode::kLoad ||
                        instruction.opcode == Opcode::kStore ||
                        instruction.opcode == Opcode::kLocked;
  const bool jumps = instruction.opcode == Opcode::kJump || instruction.opcode == Opcode::kJumpIf;
  const uint8_t width = instruction.width;
  if (width != 1 && width != 2 && width != 4 && width != 8) {
    return fmt::format("expected a width of 1, 2, 4 or 8 bytes, found {}", width);
  }
  if (accesses && instruction.location >= locations) {
    return fmt::format("expected a location below {}, found {}", locations, instruction.location);
  }
  if (jumps && instruction.target > length) {
    return fmt::format("expected a jump target of at most {}, found {}", length,
                       instruction.target);
  }
  if (instruction.destination >= kRegisters ||
      (instruction.source.is_register && instruction.source.value >= kRegisters)) {
    return fmt::format("expected a register below {}", kRegisters);
  }
  const bool locked_only = instruction.operation >= Operation::kExchange;
  const bool flags_only =
      instruction.operation == Operation::kCompare || instruction.operation == Operation::kTest;
  if ((instruction.opcode == Opcode::kArithmetic && locked_only) ||
      (instruction.opcode == Opcode::kLocked && flags_only)) {
    return "the operation does not go with the opcode";
  }
  return {};
}

}  // namespace

std::string Program::check() const {
  if (threads.size() > 0xFFFE) {
    return fmt::format("expected at most 65534 threads, found {}", threads.size());
  }
  for (size_t thread = 0; thread < threads.size(); ++thread) {
    const auto& instructions = threads[thread].instructions;
    for (size_t index = 0; index < instructions.size(); ++index) {
      const std::string problem =
          check_instruction(instructions[index], instructions.size(), memory.size());
      if (!problem.empty()) {
        return fmt::format("thread {}, instruction {}: {}", thread, index, problem);
      }
    }
  }
  return {};
}

}  // namespace tsomon::machine
