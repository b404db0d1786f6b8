#include "decoders/x86/instruction.h"

namespace tsomon::x86 {

std::optional<ByteRange> evaluate(const Access& access, const RegisterFile& registers) {
  if (access.opaque || access.size == 0 || access.repeat == Repeat::kUntil) {
    return std::nullopt;
  }
  const auto first = access.address.evaluate(registers);
  if (!first) {
    return std::nullopt;
  }
  if (access.repeat == Repeat::kOnce) {
    return ByteRange{*first, access.size};
  }
  const auto count = registers.get(Register::kRcx);
  const auto down = registers.get(Register::kDirection);
  // Longer than any address space: the registers are not what the processor had.
  if (!count || !down || *count > (uint64_t{1} << 47) / access.size) {
    return std::nullopt;
  }
  const uint64_t size = *count * access.size;
  if (*down != 0 && size != 0) {
    return ByteRange{*first + access.size - size, size};
  }
  return ByteRange{*first, size};
}

}  // namespace tsomon::x86
