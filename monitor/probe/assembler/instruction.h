// One instruction of an asm statement, in the words of the assembler (AT&T syntax).
//
// Purpose     What it accesses: from the mnemonic and the operands, without assembling it.
// Contract    What is not known for certain is kUnknown; nothing is guessed. An instruction whose
//             operands are registers accesses nothing, unless its mnemonic says so.
// Misses      Macros of the assembler (the caller knows them). Hints, `lfence` and `sfence` are
//             kNothing: among ordinary accesses they order nothing that x86 does not.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "monitor/probe/assembly_site.h"

namespace tsomon::assembler {

struct Instruction {
  SiteKind kind = SiteKind::kNothing;
  Change change = Change::kNone;  // of kLocked
  uint32_t size = 0;              // bytes
  // The memory operand's place in the text that was given, with its segment; its segment; and its
  // text without.
  size_t operand_begin = 0;
  size_t operand_end = 0;
  Segment segment = Segment::kNone;
  std::string operand;
  bool by_stack_pointer = false;
  // A bit string's register: the word that is accessed depends on it.
  std::string bit_register;
  bool has_bit_register() const { return !bit_register.empty(); }
};

// `text`: mnemonic and operands. `prefixes`: words in front of it, each with a space behind it.
Instruction understand(std::string_view text, std::string_view prefixes);

// The number of a general register in the order of the encoding, of any width; -1: none.
int register_number(std::string_view name);

}  // namespace tsomon::assembler
