// Frames that no pointer goes to, and the table for unwinding: against libgcc's reader of the
// table, against what the processor did, and rule by rule.
#include "decoders/pt/code/escape_analysis.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/pt/code/unwind_table.h"
#include "tests/pt/own_modules.h"
#include "tests/pt/traced_programs.h"

using namespace tsomon;
using namespace tsomon::test;

extern "C" {
struct dwarf_eh_bases {
  void* tbase;
  void* dbase;
  void* func;
};
const void* _Unwind_Find_FDE(void* pc, dwarf_eh_bases* bases);
}

// Functions with a frame of 24 bytes; what is asked about is the place `..._here`.
#define FRAME(name, body)                                          \
  asm(".text\n.globl " #name "\n" #name                            \
      ":\n.cfi_startproc\n"                                        \
      "sub $24,%rsp\n.cfi_def_cfa_offset 32\n" body                \
      "add $24,%rsp\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n"); \
  extern "C" const char name##_here[];

#define PART(name, body)                                 \
  asm(".section .text.unlikely,\"ax\",@progbits\n" #name \
      ":\n.cfi_startproc\n"                              \
      ".cfi_def_cfa_offset 32\n" body ".cfi_endproc\n.text\n");

FRAME(frame_plain, "mov %rdi,8(%rsp)\nframe_plain_here: mov 8(%rsp,%rdi,8),%rax\n")
FRAME(frame_pointer_before, "lea 8(%rsp),%rdi\nframe_pointer_before_here: nop\n")
FRAME(frame_pointer_behind, "frame_pointer_behind_here: nop\nlea 8(%rsp),%rdi\n")
FRAME(frame_pointer_in_loop,
      "frame_pointer_in_loop_here: nop\nlea 8(%rsp),%rdi\njne frame_pointer_in_loop_here\n")
FRAME(frame_copied, "mov %rsp,%rbx\nframe_copied_here: nop\n")
FRAME(frame_stored, "mov %rsp,8(%rsp)\nframe_stored_here: nop\n")
FRAME(frame_pushed,
      "push %rsp\n.cfi_adjust_cfa_offset 8\npop %rax\n.cfi_adjust_cfa_offset -8\n"
      "frame_pushed_here: nop\n")
FRAME(frame_computed, "mov %rax,%rcx\nadd %rsp,%rcx\nframe_computed_here: nop\n")
FRAME(frame_vector, "movq %rsp,%xmm0\nframe_vector_here: nop\n")
FRAME(frame_arguments,
      "push %rdi\n.cfi_adjust_cfa_offset 8\nframe_arguments_here: call frame_plain\n"
      "lea 8(%rsp),%rsp\n.cfi_adjust_cfa_offset -8\n")
FRAME(frame_table, "jmp *(%rdi)\nframe_table_here: nop\n")
FRAME(frame_part_back, "frame_part_back_here: jne frame_part_back_cold\nframe_part_back_in: nop\n")
PART(frame_part_back_cold, "lea (%rsp),%rdi\njmp frame_part_back_here\n")
FRAME(frame_part_away, "frame_part_away_here: jne frame_part_away_cold\n")
PART(frame_part_away_cold, "lea (%rsp),%rdi\nframe_part_itself_here: call abort\n")
extern "C" const char frame_part_itself_here[];
FRAME(frame_nowhere,
      "frame_nowhere_here: jne 1f\n.pushsection .text.elsewhere,\"ax\",@progbits\n"
      "1: nop\nud2\n.popsection\n")

// The table does not say that the frame has gone.
asm(".text\nframe_untrue:\n.cfi_startproc\nsub $24,%rsp\n.cfi_def_cfa_offset 32\n"
    "frame_true_here: add $24,%rsp\nframe_untrue_here: nop\nret\n.cfi_endproc\n");
extern "C" const char frame_true_here[];
extern "C" const char frame_untrue_here[];

// Leaves for a function with a frame of its own.
asm(".text\nframe_tail:\n.cfi_startproc\nsub $24,%rsp\n.cfi_def_cfa_offset 32\n"
    "frame_tail_here: mov (%rsp),%rax\nadd $24,%rsp\n.cfi_def_cfa_offset 8\n"
    "jmp frame_pointer_before\n.cfi_endproc\n");
extern "C" const char frame_tail_here[];

asm(".text\nframe_with_pointer:\n.cfi_startproc\npush %rbp\n.cfi_def_cfa_offset 16\n"
    "mov %rsp,%rbp\n.cfi_def_cfa_register %rbp\nsub $16,%rsp\nframe_with_pointer_here: nop\n"
    "leave\n.cfi_def_cfa %rsp,8\nret\n.cfi_endproc\n");
extern "C" const char frame_with_pointer_here[];

// An exception goes on behind the function's end, where a pointer is made, and comes back or not.
#define CAUGHT(name, back)                                                                \
  asm(".text\n" #name                                                                     \
      ":\n.cfi_startproc\n.cfi_personality 0x9b,DW.ref.__gxx_personality_v0\n"            \
      ".cfi_lsda 0x1b," #name "_sites\nsub $24,%rsp\n.cfi_def_cfa_offset 32\n" #name      \
      "_here: call abort\nadd $24,%rsp\n.cfi_def_cfa_offset 8\nret\n.cfi_def_cfa_offset " \
      "32\n" #name "_pad: lea 8(%rsp),%rdi\n" back #name                                  \
      "_end:\n.cfi_endproc\n"                                                             \
      ".section .gcc_except_table,\"a\",@progbits\n" #name                                \
      "_sites:\n"                                                                         \
      ".byte 0xff,0xff,1\n.uleb128 " #name "_last-" #name "_first\n" #name                \
      "_first:\n"                                                                         \
      ".uleb128 0\n.uleb128 " #name "_end-" #name "\n.uleb128 " #name "_pad-" #name       \
      "\n"                                                                                \
      ".uleb128 0\n" #name "_last:\n.text\n");                                            \
  extern "C" const char name##_here[];
CAUGHT(frame_caught, "jmp frame_caught_here\n")
CAUGHT(frame_cleaned, "call abort\n")

namespace {

uint64_t address_of(const char* label) { return reinterpret_cast<uint64_t>(label); }

std::vector<pt::CodeSection> code_of(const SteppedRun& run) {
  std::vector<pt::CodeSection> code;
  for (const MappedCode& mapped : run.code) {
    code.push_back({mapped.file, mapped.offset, mapped.size, mapped.address, kTimeMin, 1});
  }
  return code;
}

}  // namespace

TEST_CASE("a frame is closed where no pointer into it can have been made") {
  try {  // there is a personality
    throw 1;
  } catch (int) {
  }
  const pt::ReadOnlyData constants(own_modules(7).code);
  pt::EscapeAnalysis frames(7, &constants);
  const auto at = [&](const char* label) { return frames.return_address(address_of(label)); };
  CHECK(at(frame_plain_here) == 24);
  CHECK(at(frame_pointer_behind_here) == 24);
  CHECK(at(frame_arguments_here) == 32);
  CHECK(at(frame_part_away_here) == 24);
  CHECK(at(frame_tail_here) == 24);
  CHECK(at(frame_cleaned_here) == 24);
  CHECK(at(frame_true_here) == 24);
  for (const char* label :
       {frame_pointer_before_here, frame_pointer_in_loop_here, frame_copied_here, frame_stored_here,
        frame_pushed_here, frame_computed_here, frame_vector_here, frame_table_here,
        frame_part_back_here, frame_part_itself_here, frame_nowhere_here, frame_with_pointer_here,
        frame_caught_here, frame_untrue_here}) {
    CHECK(!at(label));
  }
  CHECK(!frames.return_address(0x1000));
  CHECK(!pt::EscapeAnalysis(8, &constants).return_address(address_of(frame_plain_here)));
  CHECK(!pt::EscapeAnalysis(7, nullptr).return_address(address_of(frame_plain_here)));
}

TEST_CASE("functions are those that libgcc finds") {
  const OwnModules modules = own_modules(7);
  const pt::ReadOnlyData constants(modules.code);
  const auto read = [&](uint64_t address, uint8_t* to, size_t size) {
    return constants.read(7, address, to, size);
  };
  std::mt19937_64 random(1);
  size_t found = 0;
  for (const pt::CodeSection& section : modules.code) {
    const uint64_t header = constants.unwind_header(7, section.address + 64);
    const pt::UnwindTable table(read, header);
    for (int i = 0; i < 500; ++i) {
      const uint64_t ip = section.address + random() % section.size;
      dwarf_eh_bases bases{};
      const bool there = _Unwind_Find_FDE(reinterpret_cast<void*>(ip), &bases) != nullptr;
      if (const auto function = table.find(ip)) {
        ++found;
        REQUIRE(there);
        CHECK(reinterpret_cast<uint64_t>(bases.func) == function->begin);
      }
    }
  }
  CHECK(found > 200);
}

TEST_CASE("damaged tables for unwinding tell nothing, or something else") {
  const OwnModules modules = own_modules(7);
  const pt::ReadOnlyData constants(modules.code);
  std::mt19937_64 random(1);
  const uint64_t header = constants.unwind_header(7, address_of(frame_plain_here));
  REQUIRE(header != 0);
  for (int round = 0; round < 300; ++round) {
    const auto read = [&](uint64_t address, uint8_t* to, size_t size) {
      if (!constants.read(7, address, to, size)) {
        return false;
      }
      if (size != 0 && random() % 4 == 0) {
        to[random() % size] = static_cast<uint8_t>(random());
      }
      return true;
    };
    const pt::UnwindTable table(read, header);
    if (const auto function = table.find(address_of(frame_caught_here))) {
      table.frame_size(*function, address_of(frame_caught_here));
      table.landing_pads(*function);
    }
  }
}

TEST_CASE("closed frames end where the call says, and only their own function writes there") {
  size_t all = 0;
  for (const std::string& name : traced_programs()) {
    CAPTURE(name);
    const SteppedRun& run = stepped(name);
    const pt::ReadOnlyData constants(code_of(run));
    pt::EscapeAnalysis frames(1, &constants);
    struct Called {
      uint64_t return_address = 0;  // where it is
      uint64_t stack = 0;           // in front of the call that is under way
      bool closed = false;
    };
    std::vector<std::vector<Called>> stacks(run.threads.size());
    std::vector<uint64_t> next(run.threads.size());
    size_t sizes = 0;
    for (const Step& step : run.steps) {
      std::vector<Called>& stack = stacks[step.thread];
      const x86::Instruction& code = run.at(step.ip);
      const uint64_t pointer = step.registers.value(x86::Register::kRsp);
      if (next[step.thread] != step.ip) {
        stack.clear();
      }
      next[step.thread] = step.next;
      // What a jump out of functions leaves is gone.
      while (!stack.empty() && stack.back().return_address < pointer) {
        stack.pop_back();
      }
      const auto distance = frames.return_address(step.ip);
      for (const x86::Access& access : code) {
        const auto range = evaluate(access, step.registers);
        if (access.kind == x86::AccessKind::kLoad || !range) {
          continue;
        }
        for (size_t i = 0; i + 1 < stack.size(); ++i) {
          const Called& outer = stack[i];
          CHECK(!(outer.closed && range->address >= outer.stack &&
                  range->address < outer.return_address));
        }
      }
      if (!stack.empty()) {
        stack.back().closed = distance.has_value();
        stack.back().stack = pointer;
        if (distance && pointer + *distance == stack.back().return_address) {
          ++sizes;
        } else {
          CHECK(!distance);
        }
      }
      const bool straight = code.branch == x86::Branch::kNone || code.branch == x86::Branch::kFar;
      if (straight && step.next != code.next()) {
        stack.clear();  // a handler, or back from one: not followed here
      } else if (code.branch == x86::Branch::kCall || code.branch == x86::Branch::kIndirectCall) {
        stack.push_back({pointer - 8, pointer, false});
      } else if (code.branch == x86::Branch::kReturn && !stack.empty()) {
        stack.pop_back();
      }
    }
    all += sizes;
  }
  CHECK(all > 5000);
}
