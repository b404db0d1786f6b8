// The instruction names that litmus tests may use. Lookup is O(number of names).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tso/machine/program.h"

namespace tsomon::litmus {

enum class Shape : uint8_t {
  kNothing,  // with or without operands in AT&T syntax
  kFence,
  kMove,
  kTwoOperands,
  kOneOperand,
  kExchange,
  kExchangeAdd,
  kCompareExchange,
  kJump,
  kJumpIf,
  kReturn,  // ends the thread
};

struct Mnemonic {
  Shape shape = Shape::kNothing;
  machine::Operation operation = machine::Operation::kAdd;
  machine::Condition condition = machine::Condition::kEqual;
  uint8_t width = 0;  // of a size suffix; 0: none
};

// `name` in lower case; one of the suffixes b, w, l, q is taken off where sizes make sense.
std::optional<Mnemonic> find_mnemonic(std::string_view name);

}  // namespace tsomon::litmus
