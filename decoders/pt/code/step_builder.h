// The steps of a block as they are put together: what each register holds by now, and the steps
// that make what is not a register plus a constant.
//
// Thread-safety: none.
#pragma once

#include <array>
#include <cstdint>

#include "decoders/pt/code/block_steps.h"
#include "decoders/x86/instruction.h"

namespace tsomon::pt {

inline Ref constant(uint64_t value) { return {static_cast<int64_t>(value), kZeroSlot, 8}; }

inline uint64_t low_bytes(uint64_t value, unsigned size) {
  return size >= 8 ? value : value & ((uint64_t{1} << (8 * size)) - 1);
}

class StepBuilder {
 public:
  StepBuilder() { forget_changes(); }

  // The steps that follow are of this instruction.
  void start(const x86::Instruction& instruction) { at_ = &instruction; }
  const x86::Instruction& current() const { return *at_; }

  Step& step(Step::Kind kind);
  // A step that gives a value.
  Step& computed(Step::Kind kind);
  // The slot after that of the last step that gives a value.
  uint16_t another() { return static_cast<uint16_t>(made_.slots++); }
  // Null before the first one.
  Step* last_step() { return made_.steps.empty() ? nullptr : &made_.steps.back(); }

  Ref reg(x86::Register name) const { return registers_[static_cast<unsigned>(name)]; }
  void set(x86::Register name, Ref to) {
    registers_[static_cast<unsigned>(name)] = to;
    changed_ |= x86::mask_of(name);
  }
  // Registers that get something.
  void forget(x86::RegisterMask names);

  // Values. Only cut() says what the bytes past an operand's size are.
  static Ref plus(Ref from, uint64_t more);
  Ref cut(Ref from, unsigned size);
  Ref compute(x86::Operation operation, Ref a, Ref b, unsigned size, unsigned operand = 0);
  Ref indexed(Ref a, Ref b, unsigned scale, bool internal);
  Ref address(const x86::Address& from, bool internal = true);
  Ref load(const x86::Access& access);
  void store(const x86::Access& access, Ref value, bool recorded, bool pushed = false);

  // Steps that give the changed registers their values.
  void flush();
  BlockSteps finish();

 private:
  void forget_changes();
  bool write_at_once(uint16_t to, Ref value);

  BlockSteps made_;
  std::array<Ref, x86::kRegisters> registers_;
  x86::RegisterMask changed_ = 0;
  const x86::Instruction* at_ = nullptr;
};

}  // namespace tsomon::pt
