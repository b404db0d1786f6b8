// The x86 instructions of litmus tests, turned into instructions of the abstract machine.
//
// Reads       Mnemonics in any case, with a size suffix (movl) where wanted; the operands of
//             decoders/litmus/operands.h, the destination first or last as the syntax has it.
// Addresses   A location that an instruction names by registers is found from what is known of
//             them (decoders/litmus/known_registers.h); an address that depends on what was loaded
//             is an error.
// Sizes       One location has one size: that of its declared type, of the registers and suffixes
//             it is accessed with, or else 4 bytes. An access of another size is an error.
// Unlocked    read-modify-writes become a load, the arithmetic and a store, as x86 executes them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "decoders/litmus/known_registers.h"
#include "decoders/litmus/operands.h"
#include "decoders/litmus/tokens.h"
#include "tso/machine/program.h"

namespace tsomon::litmus {

// Collects the instructions of one thread.
class ThreadBuilder {
 public:
  explicit ThreadBuilder(Syntax syntax) : syntax_(syntax) {}

  // Reads one cell of the program table: labels, then an instruction or nothing.
  bool parse_cell(Tokens& tokens, Locations& locations);
  // At the end of the program: finds the jump targets, and the locations that are named by
  // registers, which start with these values.
  bool resolve(Tokens& tokens, Locations& locations, const KnownRegisters::Values& initial);
  // When all threads are resolved: fills in the sizes that were left open.
  void finish(const Locations& locations);

  std::vector<machine::Instruction> instructions;

 private:
  struct Use {
    uint32_t instruction;
    std::string label;
    uint32_t line;
  };
  // What became of an instruction whose memory operand is named by registers.
  struct Addressed {
    size_t begin;  // indices of instructions
    size_t end;
    Address address;
    uint32_t line;
    uint8_t width;  // 0: not said
  };
  struct Lowering;

  bool resolve_addresses(Tokens& tokens, Locations& locations,
                         const KnownRegisters::Values& initial);

  Syntax syntax_;
  std::map<std::string, uint32_t, std::less<>> labels_;
  std::vector<Use> uses_;
  std::vector<Addressed> addressed_;
};

}  // namespace tsomon::litmus
