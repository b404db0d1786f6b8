// Whether code goes on looking until an atomic load finds something else.
//
// Purpose     A thread that never had to wait has shown no loop that waits: prediction has to know of it all the same, as in
//             another schedule the load finds what it does not wait for, and is done again
//             (offline/predict/failed_attempts.h).
// Method      From where the hook of the load returns, all ways through the function that store nothing but to its frame, until one
//             comes back to the same call: with the same address, and by a branch that depends on what was read. The address is the same
//             where it is a constant, comes from a register that nothing on the way changes, or from the frame and nothing is
//             stored there. Hooks of loads may be called on the way, what gives the processor away, and functions of the file that
//             store nothing but to their frames, and call nothing else. A load waits, too, that stands before such a loop with the
//             same address, where the loop ends at the same place: clang turns loops round, so the first look is another call.
// Misses      Loops that store elsewhere, whose load is in a function of its own (unoptimised code's is), or that read where they
//             look next; code without the hooks of recording.
// Complexity  O(kMostSteps) instructions are decoded for a load, and those of its function at most twice; the code of its function is
//             read, and of those that it calls.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>

#include "monitor/process/elf_image.h"
#include "monitor/process/function_code.h"

namespace tsomon {

class WaitingLoops {
 public:
  static constexpr size_t kMostSteps = 512;
  static constexpr unsigned kMostCalls = 4;  // of functions in functions

  // `image` must outlive it.
  explicit WaitingLoops(const attach::ElfImage& image) : image_(image) {}

  // `returns_to`: behind the call of the hook, as the file counts addresses.
  bool waits(uint64_t returns_to) const;

 private:
  bool is_called(uint64_t function, bool (*what)(std::string_view name)) const;
  bool stores_nothing_elsewhere(uint64_t function, unsigned calls, size_t* steps) const;
  template <typename ComesTo>
  void walk(const FunctionCode& code, uint64_t returns_to, const ComesTo& comes_to) const;
  // Where the loop that the load is looked at in ends; empty: there is none.
  std::set<uint64_t> exits_of_loop(const FunctionCode& code, uint64_t returns_to) const;
  bool comes_before_loop(const FunctionCode& code, uint64_t returns_to) const;

  const attach::ElfImage& image_;
};

}  // namespace tsomon
