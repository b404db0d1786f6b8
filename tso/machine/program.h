// Small programs for the abstract x86-TSO machine (tso/machine/machine.h).
//
// Purpose     What the machine runs: straight instructions of which each touches memory at most
//             once, so that one step of the machine is one access. An x86 instruction that loads
//             and stores without a lock prefix is two instructions here, with kScratch between.
// Locations   Abstract: one location is one index, locations never overlap, and every access reads
//             or writes the whole location. Mixed-size accesses are outside of this machine.
// Registers   The sixteen general-purpose registers (0 is RAX: compare-exchange compares with it)
//             and a scratch register; 64 bits each. `width` says how much of the registers and of
//             the value an instruction uses, with the rules of x86-64: writing 4 bytes clears the
//             upper half, writing 1 or 2 bytes keeps the rest. There is no AH.
// Errors      Program::check() names what is out of range; the machine requires a checked program.
// Thread-safety: plain data.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tsomon::machine {

using Value = uint64_t;
using Location = uint32_t;
using Register = uint8_t;

inline constexpr Register kAccumulator = 0;
inline constexpr Register kScratch = 16;
inline constexpr Register kRegisters = 17;

enum class Opcode : uint8_t {
  kNothing,  // nop; lfence and sfence, which order nothing that this machine does not order anyway
  kMove,     // destination <- source
  kArithmetic,  // destination <- destination `operation` source; kCompare and kTest: flags only
  kLoad,        // destination <- [location]
  kStore,       // [location] <- source
  kLocked,      // [location] <- [location] `operation` source, in one step
  kFence,       // mfence
  kJump,        // to `target`
  kJumpIf,      // to `target` if `condition`
};

enum class Operation : uint8_t {
  kAdd,
  kSubtract,
  kAnd,
  kOr,
  kXor,
  kIncrement,  // no source
  kDecrement,  // no source
  kNegate,     // no source
  kNot,        // no source
  kCompare,    // kArithmetic only
  kTest,       // kArithmetic only
  // kLocked only; these also write a register.
  kExchange,         // destination <- old
  kExchangeAdd,      // destination <- old
  kCompareExchange,  // stores source if old = accumulator, else accumulator <- old
};

// Of conditional jumps, as x86 reads its flags; the parity flag is not modelled.
enum class Condition : uint8_t {
  kOverflow,
  kNotOverflow,
  kBelow,
  kAboveOrEqual,
  kEqual,
  kNotEqual,
  kBelowOrEqual,
  kAbove,
  kSign,
  kNotSign,
  kLess,
  kGreaterOrEqual,
  kLessOrEqual,
  kGreater,
};

struct Operand {
  bool is_register = false;
  Value value = 0;  // the register's number, or the immediate
};
inline Operand immediate(Value value) { return {false, value}; }
inline Operand from_register(Register number) { return {true, number}; }

struct Instruction {
  Opcode opcode = Opcode::kNothing;
  Operation operation = Operation::kAdd;
  Condition condition = Condition::kEqual;
  uint8_t width = 8;  // bytes: 1, 2, 4 or 8
  Register destination = 0;
  Location location = 0;
  uint32_t target = 0;  // index of an instruction; the number of instructions is the end
  Operand source;

  static Instruction nothing();
  static Instruction move(Register destination, Operand source);
  static Instruction arithmetic(Operation operation, Register destination, Operand source = {});
  static Instruction load(Register destination, Location location);
  static Instruction store(Location location, Operand source);
  // `destination` receives the old value of kExchange and kExchangeAdd.
  static Instruction locked(Operation operation, Location location, Operand source = {},
                            Register destination = kScratch);
  static Instruction fence();
  static Instruction jump(uint32_t target);
  static Instruction jump_if(Condition condition, uint32_t target);
  Instruction with_width(uint8_t bytes) const;
};

struct Thread {
  std::vector<Instruction> instructions;
  std::array<Value, kRegisters> registers{};  // initial values
};

struct Program {
  std::vector<Thread> threads;
  std::vector<Value> memory;  // initial value of every location

  // Empty if every register, location, width and target is in range, else what is not.
  std::string check() const;
};

// The low `width` bytes of a value.
inline Value truncate(Value value, uint8_t width) {
  return width >= 8 ? value : value & ((Value{1} << (8 * width)) - 1);
}

}  // namespace tsomon::machine
