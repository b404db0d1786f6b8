// The registers whose values are the same whenever a thread comes to an instruction: what its
// addresses are read with.
//
// Method      One pass in the order of the program. A register is known at its start; a move or
//             arithmetic of known values keeps it known; at the target of a jump only those are
//             known that the thread nowhere writes. So a register that is called known has that
//             value on every path; some that always have one value are not called known.
// Cost        O(1) an instruction, O(length) the constructor.
// Thread-safety: none; the program must outlive it.
#pragma once

#include <array>
#include <bitset>
#include <optional>
#include <vector>

#include "tso/machine/program.h"

namespace tsomon::litmus {

class KnownRegisters {
 public:
  using Values = std::array<machine::Value, machine::kRegisters>;

  // Jump targets must be set.
  KnownRegisters(const std::vector<machine::Instruction>& program, const Values& initial);

  // The value before the instruction that step() comes to next.
  std::optional<machine::Value> value(machine::Register number) const;
  void step();

 private:
  void enter();
  std::optional<machine::Value> computed(const machine::Instruction& instruction) const;

  const std::vector<machine::Instruction>& program_;
  std::vector<bool> is_target_;
  std::bitset<machine::kRegisters> written_;  // by any instruction of the thread
  std::bitset<machine::kRegisters> known_;
  Values values_;
  size_t next_ = 0;
};

}  // namespace tsomon::litmus
