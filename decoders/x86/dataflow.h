// Known register values carried over an instruction, forwards and backwards.
//
// Purpose     Addresses at one place of a known path from what is known at another one.
// Contract    Whatever comes out as known is what the processor had, provided that what went in
//             was. Values that the model does not follow become unknown.
// Memory      Belongs to the caller: it says what a load gave, and asks for what a store wrote.
// Misses      Flags but the direction flag; values that depend on other flags.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "decoders/x86/instruction.h"

namespace tsomon::x86 {

// Values of at most 8 bytes, zero-extended. `loaded`: what the load (or the locked access) of the
// instruction gave, when that is known.
using Value = std::optional<uint64_t>;

// What an operation of one or two operands of `size` bytes (kMoveSigned: the operand's) gives; bits
// past its size have no meaning. Nothing for operations that are more than that.
Value combine(Operation operation, uint64_t a, uint64_t b, unsigned size);

// Whether the flags of a - b, of operands of `size` bytes, meet a condition (not kNone).
bool holds(Condition condition, uint64_t a, uint64_t b, unsigned size);

// From before the instruction to after it.
void step_forward(const Instruction& instruction, RegisterFile& registers, Value loaded = {});

// From after the instruction to before it: what it does not write stays, what it changes
// reversibly is computed back.
void step_backward(const Instruction& instruction, RegisterFile& registers);

// What the store (or locked access) of the instruction writes, given the registers before it.
Value stored_value(const Instruction& instruction, const RegisterFile& before, Value loaded = {});

// What the load (or locked access) of the instruction must have given, seen from the registers
// after it: only when it was copied in whole. A compare-and-exchange leaves it in rax either way.
Value loaded_value(const Instruction& instruction, const RegisterFile& after);

// The registers that the kernel may have changed when it returns from a system call. On Linux all
// but three are kept, unless the number in rax is one of those calls that replace them, or unknown.
RegisterMask changed_by_system_call(const RegisterFile& before);

}  // namespace tsomon::x86
