#include "tso/machine/alu.h"

namespace tsomon::machine {

namespace {

uint8_t result_flags(Value value, Value sign) {
  return static_cast<uint8_t>((value == 0 ? kZeroFlag : 0) | ((value & sign) != 0 ? kSignFlag : 0));
}

Computed add(Value left, Value right, uint8_t width, Value sign) {
  Computed made;
  made.value = truncate(left + right, width);
  made.flags = result_flags(made.value, sign);
  if (made.value < left) {
    made.flags |= kCarryFlag;
  }
  if ((~(left ^ right) & (left ^ made.value) & sign) != 0) {
    made.flags |= kOverflowFlag;
  }
  return made;
}

Computed subtract(Value left, Value right, uint8_t width, Value sign) {
  Computed made;
  made.value = truncate(left - right, width);
  made.flags = result_flags(made.value, sign);
  if (left < right) {
    made.flags |= kCarryFlag;
  }
  if (((left ^ right) & (left ^ made.value) & sign) != 0) {
    made.flags |= kOverflowFlag;
  }
  return made;
}

Computed keep_carry(Computed made, uint8_t flags) {
  made.flags = static_cast<uint8_t>((made.flags & ~kCarryFlag) | (flags & kCarryFlag));
  return made;
}

}  // namespace

Computed compute(Operation operation, Value left, Value right, uint8_t width, uint8_t flags) {
  left = truncate(left, width);
  right = truncate(right, width);
  const Value sign = Value{1} << (8 * width - 1);
  switch (operation) {
    case Operation::kAdd:
    case Operation::kExchangeAdd:
      return add(left, right, width, sign);
    case Operation::kSubtract:
    case Operation::kCompare:
    case Operation::kCompareExchange:
      return subtract(left, right, width, sign);
    case Operation::kAnd:
    case Operation::kTest:
      return {left & right, result_flags(left & right, sign)};
    case Operation::kOr:
      return {left | right, result_flags(left | right, sign)};
    case Operation::kXor:
      return {left ^ right, result_flags(left ^ right, sign)};
    case Operation::kIncrement:
      return keep_carry(add(left, 1, width, sign), flags);
    case Operation::kDecrement:
      return keep_carry(subtract(left, 1, width, sign), flags);
    case Operation::kNegate:
      return subtract(0, left, width, sign);
    case Operation::kNot:
      return {truncate(~left, width), flags};
    case Operation::kExchange:
      return {right, flags};
  }
  return {};
}

bool holds(Condition condition, uint8_t flags) {
  const bool carry = (flags & kCarryFlag) != 0;
  const bool zero = (flags & kZeroFlag) != 0;
  const bool sign = (flags & kSignFlag) != 0;
  const bool overflow = (flags & kOverflowFlag) != 0;
  switch (condition) {
    case Condition::kOverflow:
      return overflow;
    case Condition::kNotOverflow:
      return !overflow;
    case Condition::kBelow:
      return carry;
    case Condition::kAboveOrEqual:
      return !carry;
    case Condition::kEqual:
      return zero;
    case Condition::kNotEqual:
      return !zero;
    case Condition::kBelowOrEqual:
      return carry || zero;
    case Condition::kAbove:
      return !carry && !zero;
    case Condition::kSign:
      return sign;
    case Condition::kNotSign:
      return !sign;
    case Condition::kLess:
      return sign != overflow;
    case Condition::kGreaterOrEqual:
      return sign == overflow;
    case Condition::kLessOrEqual:
      return zero || sign != overflow;
    case Condition::kGreater:
      return !zero && sign == overflow;
  }
  return false;
}

Value merge_register(Value old, Value value, uint8_t width) {
  if (width >= 4) {
    return truncate(value, width);
  }
  return (old ^ truncate(old, width)) | truncate(value, width);
}

}  // namespace tsomon::machine
