#include "decoders/litmus/known_registers.h"

#include "tso/machine/alu.h"

namespace tsomon::litmus {

using machine::Instruction;
using machine::Opcode;
using machine::Operation;
using machine::Register;
using machine::Value;

namespace {

std::optional<Register> written_register(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::kMove:
    case Opcode::kLoad:
      return instruction.destination;
    case Opcode::kArithmetic:
      if (instruction.operation == Operation::kCompare ||
          instruction.operation == Operation::kTest) {
        return std::nullopt;
      }
      return instruction.destination;
    case Opcode::kLocked:
      return instruction.operation == Operation::kCompareExchange ? machine::kAccumulator
                                                                  : instruction.destination;
    default:
      return std::nullopt;
  }
}

bool is_unary(Operation operation) {
  return operation == Operation::kIncrement || operation == Operation::kDecrement ||
         operation == Operation::kNegate || operation == Operation::kNot;
}

}  // namespace

KnownRegisters::KnownRegisters(const std::vector<Instruction>& program, const Values& initial)
    : program_(program), is_target_(program.size() + 1), values_(initial) {
  for (const Instruction& instruction : program) {
    if (instruction.opcode == Opcode::kJump || instruction.opcode == Opcode::kJumpIf) {
      is_target_[instruction.target] = true;
    }
    if (const auto written = written_register(instruction)) {
      written_.set(*written);
    }
  }
  known_.set();
  enter();
}

void KnownRegisters::enter() {
  if (is_target_[next_]) {
    known_ &= ~written_;
  }
}

std::optional<Value> KnownRegisters::value(Register number) const {
  return known_[number] ? std::optional(values_[number]) : std::nullopt;
}

std::optional<Value> KnownRegisters::computed(const Instruction& instruction) const {
  const auto source = instruction.source.is_register
                          ? value(static_cast<Register>(instruction.source.value))
                          : std::optional(instruction.source.value);
  if (instruction.opcode == Opcode::kMove) {
    return source;
  }
  if (instruction.opcode != Opcode::kArithmetic || instruction.width == 0) {
    return std::nullopt;
  }
  // What compilers and test generators clear registers with.
  if ((instruction.operation == Operation::kXor || instruction.operation == Operation::kSubtract) &&
      instruction.source.is_register && instruction.source.value == instruction.destination) {
    return 0;
  }
  const auto left = value(instruction.destination);
  if (!left || (!source && !is_unary(instruction.operation))) {
    return std::nullopt;
  }
  return machine::compute(instruction.operation, *left, source.value_or(0), instruction.width, 0)
      .value;
}

void KnownRegisters::step() {
  const Instruction& instruction = program_[next_];
  if (const auto written = written_register(instruction)) {
    const auto result = computed(instruction);
    const bool keeps_a_part = instruction.width < 4;
    known_[*written] = result && (!keeps_a_part || known_[*written]);
    if (known_[*written]) {
      values_[*written] = machine::merge_register(
          values_[*written], machine::truncate(*result, instruction.width), instruction.width);
    }
  }
  ++next_;
  enter();
}

}  // namespace tsomon::litmus
