// The registers that addresses are made of, and what is known of their contents.
//
// Sixteen general registers by their number in the encoding, the bases of the segments fs and gs,
// and the direction flag (0 or 1), which string instructions depend on. Vector and mask registers
// are left out: addresses that depend on them are never known.
// Thread-safety: plain data.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace tsomon::x86 {

enum class Register : uint8_t {
  kRax,
  kRcx,
  kRdx,
  kRbx,
  kRsp,
  kRbp,
  kRsi,
  kRdi,
  kR8,
  kR9,
  kR10,
  kR11,
  kR12,
  kR13,
  kR14,
  kR15,
  kFsBase,
  kGsBase,
  kDirection,
  kNone,
};
inline constexpr unsigned kRegisters = 19;

using RegisterMask = uint32_t;
inline constexpr RegisterMask kAllRegisters = (RegisterMask{1} << kRegisters) - 1;

inline constexpr RegisterMask mask_of(Register name) {
  return name == Register::kNone ? 0 : RegisterMask{1} << static_cast<unsigned>(name);
}

// Values with a mark at each that is known. What is not known has no meaning, and is not read.
struct RegisterFile {
  std::array<uint64_t, kRegisters> values{};
  RegisterMask known = 0;

  bool has(Register name) const { return (known & mask_of(name)) != 0; }
  // Requires has(name).
  uint64_t value(Register name) const { return values[static_cast<unsigned>(name)]; }
  std::optional<uint64_t> get(Register name) const {
    if (!has(name)) {
      return std::nullopt;
    }
    return value(name);
  }
  void set(Register name, uint64_t value) {
    values[static_cast<unsigned>(name)] = value;
    known |= mask_of(name);
  }
  void forget(RegisterMask names) { known &= ~names; }
  void set_or_forget(Register name, std::optional<uint64_t> value) {
    if (value) {
      set(name, *value);
    } else {
      forget(mask_of(name));
    }
  }
};

}  // namespace tsomon::x86
