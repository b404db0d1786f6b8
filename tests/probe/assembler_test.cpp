// What the assembler of the wrappers takes asm statements for, and what it makes of them.
#include <string>

#include <doctest/doctest.h>

#include "monitor/probe/assembler/instruction.h"
#include "monitor/probe/assembler/rewrite.h"

using namespace tsomon;
using namespace tsomon::assembler;

namespace {

std::string understood(const std::string& text, const std::string& prefixes = "") {
  const Instruction what = understand(text, prefixes);
  const char* kind = "?";
  switch (what.kind) {
    case SiteKind::kNothing:
      return "nothing";
    case SiteKind::kUnknown:
      return "unknown";
    case SiteKind::kFence:
      return "fence";
    case SiteKind::kLoad:
      kind = "load";
      break;
    case SiteKind::kStore:
      kind = "store";
      break;
    case SiteKind::kChange:
      kind = "change";
      break;
    case SiteKind::kLocked:
      kind = "locked";
      break;
    case SiteKind::kRead:
      kind = "read";
      break;
    case SiteKind::kWrite:
      kind = "write";
      break;
    case SiteKind::kCopy:
      kind = "copy";
      break;
    case SiteKind::kFill:
      kind = "fill";
      break;
    case SiteKind::kCompareExchange16:
      kind = "compare16";
      break;
    default:
      break;
  }
  return kind + std::to_string(what.size) + (what.operand.empty() ? "" : " " + what.operand);
}

std::string rewritten(const std::string& statement) {
  return rewrite(
             "\t.text\nf:\n#APP\n# 7 \"a.c\" 1\n\t" + statement + "\n# 0 \"\" 2\n#NO_APP\n\tret\n",
             Rewrite::kInstructions)
      .value_or("");
}
size_t count(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++found;
  }
  return found;
}
const std::string kCall = "call *tsomon_runtime_asm@GOTPCREL(%rip)\n";

}  // namespace

TEST_CASE("loads, stores and changes") {
  CHECK(understood("movl (%rdi), %eax") == "load4 (%rdi)");
  CHECK(understood("mov 8(%rdi,%rcx,4), %al") == "load1 8(%rdi,%rcx,4)");
  CHECK(understood("movq x+4(%rip), %r10") == "load8 x+4(%rip)");
  CHECK(understood("movzwl (%rdi), %eax") == "load2 (%rdi)");
  CHECK(understood("cmpl $3, (%rdi)") == "load4 (%rdi)");
  CHECK(understood("addq (%rdi), %rax") == "load8 (%rdi)");
  CHECK(understood("cmovne (%rdi), %eax") == "load4 (%rdi)");
  CHECK(understood("movb $0, (%rdi)") == "store1 (%rdi)");
  CHECK(understood("mov %r9w, (%rdi)") == "store2 (%rdi)");
  CHECK(understood("movl $1, x") == "store4 x");
  CHECK(understood("sete (%rdi)") == "store1 (%rdi)");
  CHECK(understood("movq %rax, %fs:8(%rbx)") == "store8 8(%rbx)");
  CHECK(understood("incl (%rdi)") == "change4 (%rdi)");
  CHECK(understood("addl %eax, (%rdi)") == "change4 (%rdi)");
  CHECK(understood("btsl $3, (%rdi)") == "change4 (%rdi)");
  CHECK(understood("movdqu (%rdi), %xmm0") == "read16 (%rdi)");
  CHECK(understood("vmovdqa %ymm1, (%rdi)") == "write32 (%rdi)");
  CHECK(understood("jmp *(%rax)") == "read8 (%rax)");
}

TEST_CASE("locked operations and fences") {
  CHECK(understood("xchgl %eax, (%rdi)") == "locked4 (%rdi)");
  CHECK(understood("xchg (%rdi), %rax") == "locked8 (%rdi)");
  for (const char* const text :
       {"cmpxchgl %ecx, (%rdi)", "xaddl %eax, (%rdi)", "addl $1, (%rdi)", "subl %eax, (%rdi)",
        "orl $1, (%rdi)", "andl %ecx, (%rdi)", "xorl %ecx, (%rdi)", "notl (%rdi)", "incl (%rdi)",
        "decl (%rdi)", "btsl %eax, (%rdi)", "btrl $2, (%rdi)", "btcl $2, (%rdi)"}) {
    CAPTURE(text);
    CHECK(understood(text, "lock ") == "locked4 (%rdi)");
  }
  CHECK(understood("cmpxchg8b (%rdi)", "lock ") == "locked8 (%rdi)");
  CHECK(understood("cmpxchg16b (%rdi)", "lock ") == "compare1616 (%rdi)");
  CHECK(understood("addl $0, (%rsp)", "lock ") == "fence");
  CHECK(understood("mfence") == "fence");
  CHECK(understood("cpuid") == "fence");
}

TEST_CASE("what accesses nothing") {
  for (const char* const text :
       {"nop", "pause", "lfence", "sfence", "lea 8(%rdi), %rax", "movl %eax, %ebx", "movl $5, %eax",
        "xchg %eax, %ebx", "rdtsc", "popcnt %eax, %ecx", "jne 1b", "call f", "int $3", "ud2",
        "prefetchnta (%rdi)", "pushq %rax", "nopw 8(%rax,%rax)"}) {
    CAPTURE(text);
    CHECK(understood(text) == "nothing");
  }
  CHECK(understood("nop", "rep ") == "nothing");
}

TEST_CASE("strings") {
  CHECK(understood("movsb", "rep ") == "copy1");
  CHECK(understood("movsq") == "copy8");
  CHECK(understood("stosl", "rep ") == "fill4");
  CHECK(understood("stosb %al, %es:(%rdi)", "rep ") == "fill1");
  CHECK(understood("scasb", "repne ") == "unknown");
  CHECK(understood("cmpsb", "repe ") == "unknown");
  CHECK(understood("lodsb") == "unknown");
}

TEST_CASE("what is not known for certain is not understood") {
  for (const char* const text :
       {"syscall", "xbegin 1f", "int $0x80", "mov (%rdi), %gs", "popq (%rdi)", "fildll (%rdi)",
        "movl %gs:8, %eax", "vgatherdps %ymm1, (%rax,%ymm2,4), %ymm0", "cmpxchg16b (%rdi)",
        "xchgq %rsp, (%rdi)", "addps (%rdi), %xmm0", "frobnicate (%rdi)"}) {
    CAPTURE(text);
    CHECK(understood(text) == "unknown");
  }
  CHECK(understood("negl (%rdi)", "lock ") == "unknown");
  CHECK(understood("movl $1, (%rdi)", "lock ") == "unknown");
  // A stack pointer is another one while the runtime is called: its value is not recorded.
  CHECK(understood("movq %rsp, (%rdi)") == "write8 (%rdi)");
  CHECK(understood("movq (%rdi), %rsp") == "read8 (%rdi)");
}

TEST_CASE("instructions call the runtime") {
  CHECK(count(rewritten("movl (%rdi), %eax"), kCall) == 1);
  CHECK(count(rewritten("movl (%rdi), %eax"), "movl 16(%rsp), %eax") == 1);
  CHECK(count(rewritten("incl (%rdi)"), kCall) == 2);
  CHECK(count(rewritten("lock; incl (%rdi)"), kCall) == 2);
  // The lock is the runtime's.
  CHECK(count(rewritten("lock; incl (%rdi)"), "lock") == 0);
  CHECK(count(rewritten("mfence"), "mfence") == 1);
  CHECK(count(rewritten("lea 8(%rdi), %rax; pause; nop # comment"), kCall) == 0);
  CHECK(count(rewritten("1: movl 4(%rsp), %eax; jmp 1b"), "leaq 320+4(%rsp), %rax") == 1);
  CHECK(count(rewritten(""), kCall) == 0);
  const std::string elsewhere = rewritten(".pushsection .data; .long 3; .popsection; nop");
  CHECK(count(elsewhere, kCall) == 0);
  CHECK(count(elsewhere, ".long 3") == 1);
}

TEST_CASE("what is not understood is told with its place and stays") {
  for (const std::string text : {"syscall", "rep; scasb", ".byte 0x0f, 0x01, 0xd5", "loop 1b",
                                 "jmp . + 4", ".rept 3; incl (%rdi); .endr"}) {
    CAPTURE(text);
    const std::string all = rewritten(text);
    CHECK(count(all, "a.c:7: ") == 1);
    CHECK(count(all, kCall) == 1);
  }
  CHECK(count(rewritten("syscall"), "\tsyscall\n") == 1);
}

TEST_CASE("text without asm statements stays as it is") {
  CHECK(!rewrite("\t.text\nf:\n\tmovl (%rdi), %eax\n\tret\n", Rewrite::kInstructions));
}

TEST_CASE("a section of clang's has a type that the assembler knows") {
  CHECK(rewrite("\t.section\t\".linker-options\",\"e\",@llvm_linker_options\n\tnop\n",
                Rewrite::kInstructions) ==
        "\t.section\t\".linker-options\",\"e\",@progbits\n\tnop\n");
}

TEST_CASE("what the compiler wrote stays as it is") {
  const std::string compiled = "\t.text\nf:\n\tmovl (%rdi), %eax\n";
  const auto all = rewrite(compiled + "#APP\n\tnop\n#NO_APP\n\tmovl %eax, (%rdi)\n\tret\n",
                           Rewrite::kInstructions);
  REQUIRE(all);
  CHECK(all->rfind(compiled, 0) == 0);
  CHECK(all->find("\tmovl %eax, (%rdi)\n\tret\n") != std::string::npos);
  CHECK(count(*all, kCall) == 0);
}

TEST_CASE("clang's statements are placed by the line table") {
  const auto all = rewrite(
      "\t.text\n\t.file\t3 \"folder\" \"b.c\"\n\t.loc\t3 9 2\n\t#APP\n\tsyscall\n\t#NO_APP\n",
      Rewrite::kInstructions);
  REQUIRE(all);
  CHECK(count(*all, "b.c:9: syscall") == 1);
}
