// The x86 instructions of litmus tests, turned into instructions of the abstract machine.
//
// Reads       Intel order (destination first), herd's spelling: registers, `[x]`, `$1` or `1`,
//             mnemonics in any case, with a size suffix (movl) or `dword ptr` where wanted.
// Sizes       One location has one size: that of its declared type, of the registers and suffixes
//             it is accessed with, or else 4 bytes. An access of another size is an error.
// Unlocked    read-modify-writes become a load, the arithmetic and a store, as x86 executes them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "decoders/litmus/tokens.h"
#include "tso/interner.h"
#include "tso/program.h"

namespace tsomon::litmus {

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

 private:
  Interner names_;
  std::vector<uint8_t> widths_;  // 0: not known yet
};

// Collects the instructions of one thread.
class ThreadBuilder {
 public:
  // Reads one cell of the program table: labels, then an instruction or nothing.
  bool parse_cell(Tokens& tokens, Locations& locations);
  // Ends the thread: finds the jump targets and the sizes that were left open.
  bool finish(Tokens& tokens, const Locations& locations);

  std::vector<machine::Instruction> instructions;

 private:
  struct Use {
    uint32_t instruction;
    std::string label;
    uint32_t line;
  };
  struct Lowering;

  std::map<std::string, uint32_t, std::less<>> labels_;
  std::vector<Use> uses_;
};

}  // namespace tsomon::litmus
