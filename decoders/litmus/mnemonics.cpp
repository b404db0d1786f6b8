#include "decoders/litmus/mnemonics.h"

#include <array>

namespace tsomon::litmus {

namespace {

using machine::Condition;
using machine::Operation;

struct Named {
  std::string_view name;
  Mnemonic meaning;
};

constexpr Mnemonic plain(Shape shape, Operation operation = Operation::kAdd) {
  return {shape, operation, Condition::kEqual, 0};
}
constexpr Mnemonic jump_if(Condition condition) {
  return {Shape::kJumpIf, Operation::kAdd, condition, 0};
}

constexpr std::array<Named, 15> kSized = {{
    {"mov", plain(Shape::kMove)},
    {"add", plain(Shape::kTwoOperands, Operation::kAdd)},
    {"sub", plain(Shape::kTwoOperands, Operation::kSubtract)},
    {"and", plain(Shape::kTwoOperands, Operation::kAnd)},
    {"or", plain(Shape::kTwoOperands, Operation::kOr)},
    {"xor", plain(Shape::kTwoOperands, Operation::kXor)},
    {"cmp", plain(Shape::kTwoOperands, Operation::kCompare)},
    {"test", plain(Shape::kTwoOperands, Operation::kTest)},
    {"inc", plain(Shape::kOneOperand, Operation::kIncrement)},
    {"dec", plain(Shape::kOneOperand, Operation::kDecrement)},
    {"neg", plain(Shape::kOneOperand, Operation::kNegate)},
    {"not", plain(Shape::kOneOperand, Operation::kNot)},
    {"xchg", plain(Shape::kExchange, Operation::kExchange)},
    {"xadd", plain(Shape::kExchangeAdd, Operation::kExchangeAdd)},
    {"cmpxchg", plain(Shape::kCompareExchange, Operation::kCompareExchange)},
}};

constexpr std::array<Named, 39> kUnsized = {{
    {"nop", plain(Shape::kNothing)},
    {"nopw", plain(Shape::kNothing)},
    {"nopl", plain(Shape::kNothing)},
    {"pause", plain(Shape::kNothing)},
    {"endbr64", plain(Shape::kNothing)},
    {"ret", plain(Shape::kReturn)},
    {"retq", plain(Shape::kReturn)},
    {"lfence", plain(Shape::kNothing)},
    {"sfence", plain(Shape::kNothing)},
    {"mfence", plain(Shape::kFence)},
    {"jmp", plain(Shape::kJump)},
    {"jo", jump_if(Condition::kOverflow)},
    {"jno", jump_if(Condition::kNotOverflow)},
    {"jb", jump_if(Condition::kBelow)},
    {"jc", jump_if(Condition::kBelow)},
    {"jnae", jump_if(Condition::kBelow)},
    {"jae", jump_if(Condition::kAboveOrEqual)},
    {"jnb", jump_if(Condition::kAboveOrEqual)},
    {"jnc", jump_if(Condition::kAboveOrEqual)},
    {"je", jump_if(Condition::kEqual)},
    {"jz", jump_if(Condition::kEqual)},
    {"jne", jump_if(Condition::kNotEqual)},
    {"jnz", jump_if(Condition::kNotEqual)},
    {"jbe", jump_if(Condition::kBelowOrEqual)},
    {"jna", jump_if(Condition::kBelowOrEqual)},
    {"ja", jump_if(Condition::kAbove)},
    {"jnbe", jump_if(Condition::kAbove)},
    {"js", jump_if(Condition::kSign)},
    {"jns", jump_if(Condition::kNotSign)},
    {"jl", jump_if(Condition::kLess)},
    {"jlt", jump_if(Condition::kLess)},  // herd's name
    {"jnge", jump_if(Condition::kLess)},
    {"jge", jump_if(Condition::kGreaterOrEqual)},
    {"jnl", jump_if(Condition::kGreaterOrEqual)},
    {"jle", jump_if(Condition::kLessOrEqual)},
    {"jng", jump_if(Condition::kLessOrEqual)},
    {"jg", jump_if(Condition::kGreater)},
    {"jgt", jump_if(Condition::kGreater)},  // herd's name
    {"jnle", jump_if(Condition::kGreater)},
}};

template <size_t N>
const Mnemonic* find_in(const std::array<Named, N>& table, std::string_view name) {
  for (const Named& named : table) {
    if (named.name == name) {
      return &named.meaning;
    }
  }
  return nullptr;
}

uint8_t suffix_width(char suffix) {
  switch (suffix) {
    case 'b':
      return 1;
    case 'w':
      return 2;
    case 'l':
      return 4;
    case 'q':
      return 8;
    default:
      return 0;
  }
}

}  // namespace

std::optional<Mnemonic> find_mnemonic(std::string_view name) {
  if (name.empty()) {
    return std::nullopt;
  }
  if (const Mnemonic* found = find_in(kUnsized, name)) {
    return *found;
  }
  if (const Mnemonic* found = find_in(kSized, name)) {
    return *found;
  }
  const uint8_t width = suffix_width(name.back());
  name.remove_suffix(1);
  const Mnemonic* found = width == 0 || name.empty() ? nullptr : find_in(kSized, name);
  if (found == nullptr) {
    return std::nullopt;
  }
  Mnemonic sized = *found;
  sized.width = width;
  return sized;
}

}  // namespace tsomon::litmus
