// Instructions as the assembler writes them: TSOMON_CODE(name, "mov rax, rbx") is a range of bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#define TSOMON_CODE(name, text)                                                                  \
  asm(".pushsection .rodata\n.intel_syntax noprefix\ncode_" #name ":\n" text "\ncode_end_" #name \
      ":\n.att_syntax prefix\n.popsection\n");                                                   \
  extern "C" const uint8_t code_##name[];     /* NOLINT */                                       \
  extern "C" const uint8_t code_end_##name[]; /* NOLINT */                                       \
  static const Code name { code_##name, code_end_##name }

struct Code {
  const uint8_t* begin;
  const uint8_t* end;
  size_t size() const { return static_cast<size_t>(end - begin); }
};
