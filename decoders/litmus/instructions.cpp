#include "decoders/litmus/instructions.h"

#include <fmt/format.h>

#include "decoders/litmus/mnemonics.h"
#include "decoders/litmus/registers.h"

namespace tsomon::litmus {

using machine::Condition;
using machine::Instruction;
using machine::kAccumulator;
using machine::kScratch;
using machine::Operation;

namespace {

struct Argument {
  enum class Kind : uint8_t { kRegister, kImmediate, kMemory };
  Kind kind = Kind::kImmediate;
  uint8_t width = 0;  // bytes; 0: not said
  machine::Register number = 0;
  machine::Location location = 0;
  machine::Value value = 0;

  bool in_memory() const { return kind == Kind::kMemory; }
  machine::Operand operand() const {
    return kind == Kind::kRegister ? machine::from_register(number) : machine::immediate(value);
  }
};

uint8_t pointer_width(std::string_view word) {
  const std::string lower = lower_case(word);
  return lower == "byte"    ? 1
         : lower == "word"  ? 2
         : lower == "dword" ? 4
         : lower == "qword" ? 8
                            : 0;
}

bool parse_memory(Tokens& tokens, Locations& locations, Argument& argument) {
  if (!tokens.expect("[")) {
    return false;
  }
  if (!tokens.at_name() || find_register(tokens.peek().text)) {
    return tokens.fail_expected("the name of a location (addresses in registers are not read)");
  }
  argument.kind = Argument::Kind::kMemory;
  argument.location = locations.find_or_add(tokens.take().text);
  return tokens.expect("]");
}

bool parse_argument(Tokens& tokens, Locations& locations, Argument& argument) {
  if (tokens.at("$") || tokens.at_number() || tokens.at("-")) {
    tokens.accept("$");
    return tokens.parse_number(argument.value);
  }
  if (tokens.at_name()) {
    argument.width = pointer_width(tokens.peek().text);
    if (argument.width != 0) {
      tokens.take();
      if (lower_case(tokens.peek().text) != "ptr") {
        return tokens.fail_expected("'ptr'");
      }
      tokens.take();
      return parse_memory(tokens, locations, argument);
    }
    if (const auto found = find_register(tokens.peek().text)) {
      tokens.take();
      argument.kind = Argument::Kind::kRegister;
      argument.number = found->number;
      argument.width = found->width;
      return true;
    }
  }
  if (!tokens.at("[")) {
    return tokens.fail_expected("a register, a location as '[x]' or a number as '$1'");
  }
  return parse_memory(tokens, locations, argument);
}

}  // namespace

machine::Location Locations::find_or_add(std::string_view name) {
  const machine::Location location = names_.intern(name);
  if (location == widths_.size()) {
    widths_.push_back(0);
  }
  return location;
}

bool Locations::require_width(Tokens& tokens, uint32_t line, machine::Location location,
                              uint8_t width) {
  if (widths_[location] == 0) {
    widths_[location] = width;
  }
  if (widths_[location] != width) {
    return tokens.fail_at(line, fmt::format("expected an access of {} bytes to '{}', as before, "
                                            "found one of {} (one location has one size)",
                                            widths_[location], names_.text(location), width));
  }
  return true;
}

// One instruction, being read and lowered.
struct ThreadBuilder::Lowering {
  ThreadBuilder& thread;
  Tokens& tokens;
  Locations& locations;
  uint32_t line = 0;
  bool locked = false;
  Mnemonic mnemonic{};
  Argument first{};
  Argument second{};
  uint8_t width = 0;  // 0: that of the location, once all is read

  // Width 0 is resolved in finish(), by way of the location.
  void emit(Instruction instruction) {
    instruction.width = width;
    if (width == 0) {
      instruction.location = first.in_memory() ? first.location : second.location;
    }
    thread.instructions.push_back(instruction);
  }
  uint32_t here() const { return static_cast<uint32_t>(thread.instructions.size()); }

  bool parse() {
    line = tokens.peek().line;
    if (lower_case(tokens.peek().text) == "lock") {
      locked = true;
      tokens.take();
    }
    const auto found = tokens.at_name() ? find_mnemonic(lower_case(tokens.peek().text))
                                        : std::optional<Mnemonic>{};
    if (!found) {
      return tokens.fail_expected("an x86 instruction that the abstract machine knows");
    }
    const bool lockable = found->shape >= Shape::kTwoOperands && found->shape < Shape::kJump &&
                          found->operation != Operation::kCompare &&
                          found->operation != Operation::kTest;
    if (locked && !lockable) {
      return tokens.fail_expected("an instruction that takes 'lock'");
    }
    mnemonic = *found;
    tokens.take();
    switch (mnemonic.shape) {
      case Shape::kNothing:
        width = 8;
        emit(Instruction::nothing());
        return true;
      case Shape::kFence:
        width = 8;
        emit(Instruction::fence());
        return true;
      case Shape::kJump:
      case Shape::kJumpIf:
        return parse_jump();
      default:
        return parse_arguments() && lower();
    }
  }

  bool parse_jump() {
    if (!tokens.at_name()) {
      return tokens.fail_expected("a label");
    }
    thread.uses_.push_back({here(), std::string(tokens.take().text), line});
    width = 8;
    emit(mnemonic.shape == Shape::kJump ? Instruction::jump(0)
                                        : Instruction::jump_if(mnemonic.condition, 0));
    return true;
  }

  bool parse_arguments() {
    if (!parse_argument(tokens, locations, first)) {
      return false;
    }
    if (mnemonic.shape != Shape::kOneOperand &&
        (!tokens.expect(",") || !parse_argument(tokens, locations, second))) {
      return false;
    }
    width = mnemonic.width;
    for (const Argument* argument : {&first, &second}) {
      if (width == 0) {
        width = argument->width;
      }
      if (argument->width != 0 && argument->width != width) {
        return tokens.fail_at(line, fmt::format("expected operands of one size, found {} and {} "
                                                "bytes",
                                                width, argument->width));
      }
    }
    for (const Argument* argument : {&first, &second}) {
      if (argument->in_memory() && width != 0 &&
          !locations.require_width(tokens, line, argument->location, width)) {
        return false;
      }
    }
    if (first.in_memory() && second.in_memory()) {
      return tokens.fail_at(line, "expected one location in an instruction at most, found two");
    }
    if (first.kind == Argument::Kind::kImmediate) {
      return tokens.fail_at(line,
                            "expected a register or location as first operand, found a number");
    }
    const bool exchange = mnemonic.shape == Shape::kExchange;
    if (locked && !first.in_memory() && !(exchange && second.in_memory())) {
      return tokens.fail_at(line,
                            "expected a location as destination after 'lock', found a register");
    }
    return true;
  }

  bool lower() {
    switch (mnemonic.shape) {
      case Shape::kMove:
        lower_move();
        return true;
      case Shape::kTwoOperands:
      case Shape::kOneOperand:
        lower_arithmetic();
        return true;
      default:
        break;
    }
    if (second.kind == Argument::Kind::kImmediate ||
        (mnemonic.shape != Shape::kExchange && second.in_memory())) {
      return tokens.fail_at(line, "expected a register as second operand");
    }
    if (mnemonic.shape == Shape::kExchange) {
      lower_exchange();
    } else if (mnemonic.shape == Shape::kExchangeAdd) {
      lower_exchange_add();
    } else {
      lower_compare_exchange();
    }
    return true;
  }

  void lower_move() {
    if (first.in_memory()) {
      emit(Instruction::store(first.location, second.operand()));
    } else if (second.in_memory()) {
      emit(Instruction::load(first.number, second.location));
    } else {
      emit(Instruction::move(first.number, second.operand()));
    }
  }

  void lower_arithmetic() {
    if (locked) {
      emit(Instruction::locked(mnemonic.operation, first.location, second.operand()));
      return;
    }
    machine::Register left = first.number;
    machine::Operand right = second.operand();
    if (first.in_memory()) {
      left = kScratch;
      emit(Instruction::load(kScratch, first.location));
    } else if (second.in_memory()) {
      right = machine::from_register(kScratch);
      emit(Instruction::load(kScratch, second.location));
    }
    emit(Instruction::arithmetic(mnemonic.operation, left, right));
    const bool flags_only =
        mnemonic.operation == Operation::kCompare || mnemonic.operation == Operation::kTest;
    if (first.in_memory() && !flags_only) {
      emit(Instruction::store(first.location, machine::from_register(kScratch)));
    }
  }

  // With a location: locked, with or without the prefix.
  void lower_exchange() {
    if (first.in_memory() || second.in_memory()) {
      const Argument& memory = first.in_memory() ? first : second;
      const Argument& other = first.in_memory() ? second : first;
      emit(Instruction::locked(Operation::kExchange, memory.location, other.operand(),
                               other.number));
      return;
    }
    emit(Instruction::move(kScratch, first.operand()));
    emit(Instruction::move(first.number, second.operand()));
    emit(Instruction::move(second.number, machine::from_register(kScratch)));
  }

  void lower_exchange_add() {
    const machine::Operand scratch = machine::from_register(kScratch);
    if (locked) {
      emit(Instruction::locked(Operation::kExchangeAdd, first.location, second.operand(),
                               second.number));
    } else if (first.in_memory()) {
      emit(Instruction::load(kScratch, first.location));
      emit(Instruction::arithmetic(Operation::kAdd, second.number, scratch));
      emit(Instruction::store(first.location, second.operand()));
      emit(Instruction::move(second.number, scratch));
    } else {
      emit(Instruction::move(kScratch, first.operand()));
      emit(Instruction::arithmetic(Operation::kAdd, kScratch, second.operand()));
      emit(Instruction::move(second.number, first.operand()));
      emit(Instruction::move(first.number, scratch));
    }
  }

  void lower_compare_exchange() {
    if (locked) {
      emit(Instruction::locked(Operation::kCompareExchange, first.location, second.operand()));
      return;
    }
    const machine::Operand scratch = machine::from_register(kScratch);
    const bool in_memory = first.in_memory();
    emit(in_memory ? Instruction::load(kScratch, first.location)
                   : Instruction::move(kScratch, first.operand()));
    emit(Instruction::arithmetic(Operation::kCompare, kAccumulator, scratch));
    const uint32_t differs = here() + 3;
    emit(Instruction::jump_if(Condition::kNotEqual, differs));
    emit(in_memory ? Instruction::store(first.location, second.operand())
                   : Instruction::move(first.number, second.operand()));
    emit(Instruction::jump(differs + 1));
    emit(Instruction::move(kAccumulator, scratch));
  }
};

bool ThreadBuilder::parse_cell(Tokens& tokens, Locations& locations) {
  while (tokens.at_name() && tokens.at(":", 1)) {
    const Token label = tokens.take();
    tokens.take();
    if (!labels_.emplace(label.text, instructions.size()).second) {
      return tokens.fail_at(label.line,
                            fmt::format("expected a new label, found '{}' again", label.text));
    }
  }
  if (tokens.at("|") || tokens.at(";")) {
    return true;
  }
  Lowering lowering{*this, tokens, locations};
  if (!lowering.parse()) {
    return false;
  }
  return tokens.at("|") || tokens.at(";") ||
         tokens.fail_expected("'|' or ';' after the instruction");
}

bool ThreadBuilder::finish(Tokens& tokens, const Locations& locations) {
  for (const Use& use : uses_) {
    const auto label = labels_.find(use.label);
    if (label == labels_.end()) {
      return tokens.fail_at(use.line,
                            fmt::format("expected a label of this thread, found '{}'", use.label));
    }
    instructions[use.instruction].target = label->second;
  }
  for (Instruction& instruction : instructions) {
    if (instruction.width == 0) {
      instruction.width = locations.width(instruction.location);
    }
  }
  return true;
}

}  // namespace tsomon::litmus
