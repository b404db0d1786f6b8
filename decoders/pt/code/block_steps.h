// A block's instructions as operations on terms: what is left of them when moves, constants and
// changes of the stack pointer are worked out beforehand.
//
// Thread-safety: plain data.
#pragma once

#include <cstdint>
#include <vector>

#include "decoders/x86/instruction.h"

namespace tsomon::pt {

// The value in a slot plus a constant. Slots: the registers, zero, then what the steps compute.
struct Ref {
  int64_t offset = 0;
  uint16_t slot = 0;
  uint8_t bytes = 8;  // the upper ones are zero; of slots without an offset
};
inline constexpr uint16_t kZeroSlot = x86::kRegisters;
inline constexpr uint16_t kFirstTemporary = kZeroSlot + 1;
inline constexpr uint16_t kNoSlot = ~uint16_t{0};

struct Step {
  enum class Kind : uint8_t {
    kCompute,       // to = a operation b
    kCut,           // to = the low `size` bytes of a
    kIndexed,       // to = a + b * scale
    kLeaf,          // to = something
    kLoad,          // to = `size` bytes at a
    kTouch,         // loads what is not followed
    kRecord,        // an access whose value nobody asks for
    kStore,         // stores b at a
    kStoreUnknown,  // stores something at a
    kOpaque,        // an access from a on, `internal`: around a; unrecorded: stores anywhere
    kStackPointer,  // the stack pointer becomes a; it was b
    kCall,          // a: the address of the return address
    kReturn,        // a: likewise
    kLeak,          // a goes where it is not followed
    kSet,           // the register `to` becomes a
    kSetStack,      // likewise, the stack pointer
    kSetAtOnce,     // likewise, all of those in a row at once
    kComplex,       // the whole instruction, on the registers
    kMultiplyWide,  // to and the slot after it = the halves of a * b, each `size` bytes
    kTested,        // the flags come from a compared with b
    kDecide,        // whether a compared with b meets the instruction's condition
    kSelect,        // to = b where it does, else a
    kTarget,        // an indirect branch goes to a
  };
  Kind kind = Kind::kLeaf;
  x86::Operation operation = x86::Operation::kClobber;
  uint8_t size = 8;
  uint8_t operand = 0;    // bytes, of kMoveSigned; scale, of kIndexed
  bool recorded = true;   // an access of its own, not the other half of one
  bool pushed = false;    // stored by push or call
  bool internal = false;  // an address only; moves of the stack pointer
  uint16_t to = kNoSlot;
  Ref a{0, kZeroSlot, 8};
  Ref b{0, kZeroSlot, 8};
  const x86::Instruction* instruction = nullptr;
  const x86::Access* access = nullptr;
};

struct BlockSteps {
  std::vector<Step> steps;
  uint32_t slots = kFirstTemporary;
};

// Instructions [from, to); the steps point to them.
BlockSteps steps_of(const x86::Instruction* from, const x86::Instruction* to);

}  // namespace tsomon::pt
