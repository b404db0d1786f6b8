// From the bytes of a 64-bit program to the instruction model.
//
// Purpose     decode() is the one place that knows Zydis.
// Cost        Some 300 ns: keep what it gives.
// Errors      kMalformed: no instruction, or it does not end within `size` bytes.
// Thread-safety: safe to call from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "decoders/x86/instruction.h"
#include "tso/support/result.h"

namespace tsomon::x86 {

inline constexpr size_t kMaxInstruction = 15;  // bytes

Result<Instruction> decode(const uint8_t* bytes, size_t size, uint64_t address);

}  // namespace tsomon::x86
