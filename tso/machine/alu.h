// Arithmetic of the abstract machine: results and flags as x86 defines them. Pure functions, O(1).
#pragma once

#include <cstdint>

#include "tso/machine/program.h"

namespace tsomon::machine {

inline constexpr uint8_t kCarryFlag = 1;
inline constexpr uint8_t kZeroFlag = 2;
inline constexpr uint8_t kSignFlag = 4;
inline constexpr uint8_t kOverflowFlag = 8;

struct Computed {
  Value value = 0;  // truncated to the width; of kCompare and kTest: the discarded result
  uint8_t flags = 0;
};

// `left` operation `right` at `width` bytes. `flags` are those before: kNot keeps them all,
// kIncrement and kDecrement keep the carry. kExchangeAdd computes as kAdd and kCompareExchange as
// kCompare; kExchange gives `right`.
Computed compute(Operation operation, Value left, Value right, uint8_t width, uint8_t flags);

bool holds(Condition condition, uint8_t flags);

// `old` after `value` was written to its low `width` bytes, with the rules of x86-64 registers.
Value merge_register(Value old, Value value, uint8_t width);

}  // namespace tsomon::machine
