#include "decoders/litmus/registers.h"

#include <array>
#include <charconv>
#include <string>

#include "decoders/litmus/tokens.h"

namespace tsomon::litmus {

namespace {

struct Row {
  std::array<std::string_view, 4> names;  // of 8, 4, 2 and 1 bytes
};

// In the order of their numbers in machine code.
constexpr std::array<Row, 8> kOldRegisters = {{
    {{"rax", "eax", "ax", "al"}},
    {{"rcx", "ecx", "cx", "cl"}},
    {{"rdx", "edx", "dx", "dl"}},
    {{"rbx", "ebx", "bx", "bl"}},
    {{"rsp", "esp", "sp", "spl"}},
    {{"rbp", "ebp", "bp", "bpl"}},
    {{"rsi", "esi", "si", "sil"}},
    {{"rdi", "edi", "di", "dil"}},
}};

}  // namespace

std::optional<RegisterName> find_register(std::string_view name) {
  if (name.empty() || name.size() > 4) {
    return std::nullopt;
  }
  const std::string lower = lower_case(name);
  for (size_t number = 0; number < kOldRegisters.size(); ++number) {
    for (uint8_t column = 0; column < 4; ++column) {
      if (kOldRegisters[number].names[column] == lower) {
        return RegisterName{static_cast<machine::Register>(number),
                            static_cast<uint8_t>(8 >> column)};
      }
    }
  }
  // r8 to r15, alone or with d, w or b.
  uint8_t number = 0;
  const char* const last = lower.data() + lower.size();
  if (lower[0] != 'r' || lower.size() < 2 || lower[1] == '0') {
    return std::nullopt;
  }
  const auto [end, error] = std::from_chars(lower.data() + 1, last, number);
  if (error != std::errc() || number < 8 || number > 15 || last - end > 1) {
    return std::nullopt;
  }
  if (end == last) {
    return RegisterName{number, 8};
  }
  switch (*end) {
    case 'd':
      return RegisterName{number, 4};
    case 'w':
      return RegisterName{number, 2};
    case 'b':
      return RegisterName{number, 1};
    default:
      return std::nullopt;
  }
}

}  // namespace tsomon::litmus
