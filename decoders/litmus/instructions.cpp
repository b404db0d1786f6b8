#include "decoders/litmus/instructions.h"

#include <utility>

#include <fmt/format.h>

#include "decoders/litmus/mnemonics.h"

namespace tsomon::litmus {

using machine::Condition;
using machine::Instruction;
using machine::kAccumulator;
using machine::kScratch;
using machine::Operation;

namespace {

// Where a 'ret' jumps to until the end of the thread is known.
constexpr uint32_t kReturn = UINT32_MAX;

}  // namespace

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
      if (thread.syntax_ == Syntax::kAtt) {
        tokens.accept(";");
      }
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
        skip_operands();
        width = 8;
        emit(Instruction::nothing());
        return true;
      case Shape::kReturn:
        width = 8;
        emit(Instruction::jump(kReturn));
        return true;
      case Shape::kFence:
        width = 8;
        emit(Instruction::fence());
        return true;
      case Shape::kJump:
      case Shape::kJumpIf:
        return parse_jump();
      default:
        return parse_arguments() && lower_all();
    }
  }

  // Assemblers pad with 'nopl 0(%rax,%eax,0)', whose operand is never used.
  void skip_operands() {
    while (thread.syntax_ == Syntax::kAtt && tokens.peek().kind != Token::Kind::kEnd &&
           !tokens.at("|") && !tokens.at(";")) {
      tokens.take();
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
    const Syntax syntax = thread.syntax_;
    const bool two = mnemonic.shape != Shape::kOneOperand;
    if (!parse_argument(tokens, syntax, locations, first) ||
        (two && (!tokens.expect(",") || !parse_argument(tokens, syntax, locations, second)))) {
      return false;
    }
    if (two && syntax == Syntax::kAtt && !keeps_order()) {
      std::swap(first, second);
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
      if (argument->in_memory() && !argument->address && width != 0 &&
          !locations.require_width(tokens, line, argument->location, width)) {
        return false;
      }
    }
    if (first.in_memory() && second.in_memory()) {
      return tokens.fail_at(line, "expected one location in an instruction at most, found two");
    }
    if (first.kind == Argument::Kind::kImmediate) {
      return tokens.fail_at(line,
                            fmt::format("expected a register or location as {}, found a number",
                                        syntax == Syntax::kAtt ? "destination" : "first operand"));
    }
    const bool exchange = mnemonic.shape == Shape::kExchange;
    if (locked && !first.in_memory() && !(exchange && second.in_memory())) {
      return tokens.fail_at(line,
                            "expected a location as destination after 'lock', found a register");
    }
    return true;
  }

  // In the syntax of AT&T the destination is last, but herd writes 'cmpxchg (x),%eax'.
  bool keeps_order() const {
    return (mnemonic.shape == Shape::kExchangeAdd || mnemonic.shape == Shape::kCompareExchange) &&
           first.in_memory() && !second.in_memory();
  }

  bool lower_all() {
    const size_t begin = thread.instructions.size();
    if (!lower()) {
      return false;
    }
    const auto& address = first.address ? first.address : second.address;
    if (address) {
      thread.addressed_.push_back({begin, thread.instructions.size(), *address, line, width});
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

bool ThreadBuilder::resolve(Tokens& tokens, Locations& locations,
                            const KnownRegisters::Values& initial) {
  for (const Use& use : uses_) {
    const auto label = labels_.find(use.label);
    if (label == labels_.end()) {
      return tokens.fail_at(use.line,
                            fmt::format("expected a label of this thread, found '{}'", use.label));
    }
    instructions[use.instruction].target = label->second;
  }
  for (Instruction& instruction : instructions) {
    if (instruction.opcode == machine::Opcode::kJump && instruction.target == kReturn) {
      instruction.target = static_cast<uint32_t>(instructions.size());
    }
  }
  return addressed_.empty() || resolve_addresses(tokens, locations, initial);
}

bool ThreadBuilder::resolve_addresses(Tokens& tokens, Locations& locations,
                                      const KnownRegisters::Values& initial) {
  KnownRegisters known(instructions, initial);
  size_t at = 0;
  for (const Addressed& use : addressed_) {
    for (; at < use.begin; ++at) {
      known.step();
    }
    const auto base = known.value(use.address.base);
    const auto index = use.address.index ? known.value(*use.address.index) : machine::Value{0};
    if (!base || !index) {
      return tokens.fail_at(use.line,
                            "expected an address that is known before the test runs "
                            "(addresses that depend on loads or branches are not read)");
    }
    const auto location =
        locations.at_address(*base + *index * use.address.scale + use.address.displacement);
    if (!location) {
      return tokens.fail_at(use.line,
                            "expected the address of a location in the register, as by "
                            "'0:rdi=x' in the initial state, found another value");
    }
    if (use.width != 0 && !locations.require_width(tokens, use.line, *location, use.width)) {
      return false;
    }
    for (size_t lowered = use.begin; lowered < use.end; ++lowered) {
      instructions[lowered].location = *location;
    }
  }
  return true;
}

void ThreadBuilder::finish(const Locations& locations) {
  for (Instruction& instruction : instructions) {
    if (instruction.width == 0) {
      instruction.width = locations.width(instruction.location);
    }
  }
}

}  // namespace tsomon::litmus
