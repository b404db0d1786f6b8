// The operands of the instructions of litmus tests, in Intel and in AT&T syntax.
//
// Intel       A register, `[x]` with or without `dword ptr`, `$1` or `1`.
// AT&T        `%eax` (or `eax`, as herd has it), `$1` or `1`, `$x` for the address of
//             x, and memory: `(x)`, `[x]`, `x`, `x(%rip)`, `8(%rdi)`,
//             `(%rdi,%rsi,4)`.
// Errors      The tokens keep the first one. O(length).
// Thread-safety: no shared state.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "decoders/litmus/tokens.h"
#include "tso/machine/program.h"
#include "tso/support/interner.h"

namespace tsomon::litmus {

enum class Syntax : uint8_t {
  kIntel,  // header X86: destination first
  kAtt,    // header X86_64: destination last
};

// The locations of a test, by name. For programs that hold addresses in registers, location i lies
// at address_of(i); above 32 bits, so that a truncated address is the address of nothing.
class Locations {
 public:
  static constexpr uint8_t kDefaultWidth = 4;

  machine::Location find_or_add(std::string_view name);
  uint32_t size() const { return names_.size(); }
  std::string name(machine::Location location) const { return std::string(names_.text(location)); }
  uint8_t width(machine::Location location) const {
    return widths_[location] == 0 ? kDefaultWidth : widths_[location];
  }
  // Fails if the location is known to have another width.
  bool require_width(Tokens& tokens, uint32_t line, machine::Location location, uint8_t width);

  static machine::Value address_of(machine::Location location);
  std::optional<machine::Location> at_address(machine::Value address) const;

 private:
  Interner names_;
  std::vector<uint8_t> widths_;  // 0: not known yet
};

// base + index * scale + displacement
struct Address {
  machine::Register base = 0;
  std::optional<machine::Register> index;
  machine::Value scale = 1;
  machine::Value displacement = 0;
};

struct Argument {
  enum class Kind : uint8_t { kRegister, kImmediate, kMemory };
  Kind kind = Kind::kImmediate;
  uint8_t width = 0;  // bytes; 0: not said
  machine::Register number = 0;
  machine::Location location = 0;  // of kMemory, where `address` is absent
  std::optional<Address> address;
  machine::Value value = 0;

  bool in_memory() const { return kind == Kind::kMemory; }
  machine::Operand operand() const {
    return kind == Kind::kRegister ? machine::from_register(number) : machine::immediate(value);
  }
};

bool parse_argument(Tokens& tokens, Syntax syntax, Locations& locations, Argument& argument);

}  // namespace tsomon::litmus
