// The instructions of one function of a file, as far as questions about its loops need them.
//
// Complexity  The code is read once, up to kMostCode bytes; each look at an instruction decodes it.
// Errors      A function that is not known, is larger, or cannot be read has no instructions.
// Misses      Where indirect jumps go.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "decoders/x86/instruction.h"
#include "monitor/process/elf_image.h"

namespace tsomon {

class FunctionCode {
 public:
  static constexpr uint64_t kMostCode = 64 * 1024;

  // The function that has `inside`, as the file counts addresses.
  FunctionCode(const attach::ElfImage& image, uint64_t inside);

  uint64_t begin() const { return range_.begin; }
  // rbp is used for nothing else.
  bool has_frame_pointer() const { return has_frame_pointer_; }

  // Nothing outside of the function.
  std::optional<x86::Instruction> at(uint64_t address) const;
  // Where an unconditional jump there goes in the end.
  uint64_t behind_jumps(uint64_t address) const;

  // To anything but the function's frame.
  bool stores_elsewhere(const x86::Instruction& from) const;

  // The instructions before `address` that come one after the other whichever way it is reached: behind the last call, branch, or
  // place that a branch goes to. Empty where the function has indirect jumps.
  std::vector<x86::Instruction> straight_to(uint64_t address) const;

 private:
  bool sets_frame_pointer() const;

  attach::Range range_{};
  std::vector<uint8_t> code_;
  bool has_frame_pointer_ = false;
};

}  // namespace tsomon
