#include "tests/explored/program_text.h"

#include <set>
#include <sstream>

namespace tsomon::explored {
namespace {

using machine::Instruction;
using machine::Opcode;

template <class Number>
Number next(std::istringstream* text) {
  uint64_t number = 0;
  *text >> number;
  return static_cast<Number>(number);
}

}  // namespace

std::string program_text(const machine::Program& program) {
  std::ostringstream text;
  const auto put = [&](auto... numbers) { ((text << static_cast<uint64_t>(numbers) << ' '), ...); };
  put(program.memory.size());
  for (const machine::Value value : program.memory) {
    put(value);
  }
  put(program.threads.size());
  for (const machine::Thread& thread : program.threads) {
    for (const machine::Value value : thread.registers) {
      put(value);
    }
    put(thread.instructions.size());
    for (const Instruction& instruction : thread.instructions) {
      put(instruction.opcode, instruction.operation, instruction.condition, instruction.width,
          instruction.destination, instruction.location, instruction.target,
          instruction.source.is_register, instruction.source.value);
    }
  }
  return text.str();
}

machine::Program parse_program(const std::string& text) {
  std::istringstream numbers(text);
  machine::Program program;
  program.memory.resize(next<size_t>(&numbers));
  for (machine::Value& value : program.memory) {
    value = next<machine::Value>(&numbers);
  }
  program.threads.resize(next<size_t>(&numbers));
  for (machine::Thread& thread : program.threads) {
    for (machine::Value& value : thread.registers) {
      value = next<machine::Value>(&numbers);
    }
    thread.instructions.resize(next<size_t>(&numbers));
    for (Instruction& instruction : thread.instructions) {
      instruction.opcode = next<Opcode>(&numbers);
      instruction.operation = next<machine::Operation>(&numbers);
      instruction.condition = next<machine::Condition>(&numbers);
      instruction.width = next<uint8_t>(&numbers);
      instruction.destination = next<machine::Register>(&numbers);
      instruction.location = next<machine::Location>(&numbers);
      instruction.target = next<uint32_t>(&numbers);
      instruction.source.is_register = next<bool>(&numbers);
      instruction.source.value = next<machine::Value>(&numbers);
    }
  }
  return program;
}

std::vector<std::pair<size_t, machine::Register>> named_registers(const machine::Program& program) {
  std::set<std::pair<size_t, machine::Register>> named;
  for (size_t thread = 0; thread < program.threads.size(); ++thread) {
    for (const Instruction& instruction : program.threads[thread].instructions) {
      if (instruction.source.is_register) {
        named.emplace(thread, static_cast<machine::Register>(instruction.source.value));
      }
      switch (instruction.opcode) {
        case Opcode::kMove:
        case Opcode::kArithmetic:
        case Opcode::kLoad:
          named.emplace(thread, instruction.destination);
          break;
        case Opcode::kLocked:
          named.emplace(thread, instruction.destination);
          named.emplace(thread, machine::kAccumulator);
          break;
        default:
          break;
      }
    }
  }
  return {named.begin(), named.end()};
}

}  // namespace tsomon::explored
