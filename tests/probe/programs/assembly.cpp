// Asm statements: what they do, and what of it is to be recorded. A line for each case: its name, registers, flags and
// memory behind it; then "events", its name and the accesses (kind, place, size, value read and written).
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "tsomon.h"

namespace {

struct alignas(64) Arena {
  uint64_t words[32];
};
Arena arena;
__thread uint64_t own_word = 7;

struct Registers {
  uint64_t a = 0x1122334455667788;
  uint64_t b = 0x0102030405060708;
  uint64_t c = 2;
  uint64_t d = 0x8877665544332211;
  uint64_t s = 0;
  uint64_t t = 0;
  uint64_t flags = 0;
};

void reset(Registers* registers) {
  for (uint64_t i = 0; i < 32; ++i) {
    arena.words[i] = 0x0807060504030201 * (i + 1);
  }
  registers->s = reinterpret_cast<uint64_t>(&arena.words[8]);
  registers->t = reinterpret_cast<uint64_t>(&arena.words[16]);
}

void say(const char* name, const Registers& registers, const char* events) {
  // Addresses are not the same every time.
  const auto base = reinterpret_cast<uint64_t>(&arena);
  const auto place = [base](uint64_t word) {
    return word - base < sizeof arena ? word - base : word;
  };
  uint64_t hash = 0;
  for (const uint64_t word : arena.words) {
    hash = hash * 31 + place(word);
  }
  std::printf("%s %lx %lx %lx %lx %ld %ld %lx %lx\n", name, place(registers.a), registers.b,
              registers.c, registers.d, static_cast<long>(place(registers.s)),
              static_cast<long>(place(registers.t)), registers.flags & 0x8C5, hash);
  std::printf("events %s%s%s\n", name, *events != 0 ? " " : "", events);
}

// %rsi is at 64 of the arena, %rdi at 128; all flags are set.
#define CASE(NAME, TEXT, EVENTS)                                                           \
  {                                                                                        \
    Registers r;                                                                           \
    reset(&r);                                                                             \
    tsomon_unit_begin(NAME);                                                               \
    asm volatile(                                                                          \
        "pushq $0x8D5\n\tpopfq\n\t" TEXT "\n\tpushfq\n\tpopq %[flags]"                     \
        : "+a"(r.a), "+b"(r.b), "+c"(r.c), "+d"(r.d), "+S"(r.s),                           \
          "+D"(r.t), [flags] "=r"(r.flags), [m] "+m"(arena.words[4]), [own] "+m"(own_word) \
        :                                                                                  \
        : "memory", "cc", "xmm0", "xmm1");                                                 \
    tsomon_unit_end();                                                                     \
    say(NAME, r, EVENTS);                                                                  \
  }

void moves() {
  CASE("load1", "movb 3(%%rsi), %%al", "r 67 1 24 -")
  CASE("load2", "movw (%%rsi), %%bx", "r 64 2 1209 -")
  CASE("load4", "movl (%%rsi), %%eax", "r 64 4 241b1209 -")
  CASE("load8", "movq 8(%%rsi,%%rcx,8), %%rax", "r 88 8 6054483c3024180c -")
  CASE("load_m", "movl %[m], %%eax", "r 32 4 140f0a05 -")
  CASE("extend", "movzbl (%%rsi), %%eax; movslq (%%rsi), %%rdx; movsbq 7(%%rsi), %%rbx",
       "r 64 1 9 -, r 64 4 241b1209 -, r 71 1 48 -")
  CASE("store1", "movb %%al, (%%rsi)", "w 64 1 - 88")
  CASE("store2", "movw $0x1234, (%%rsi)", "w 64 2 - 1234")
  CASE("store4", "movl %%eax, -4(%%rsi)", "w 60 4 - 55667788")
  CASE("store8", "movq $-2, %[m]", "w 32 8 - fffffffffffffffe")
  CASE("non_temporal", "movnti %%rax, (%%rsi)", "w 64 8 - 1122334455667788")
  CASE("pointer", "movq %%rsi, (%%rsi); movq (%%rsi), %%rsi; movl $1, 8(%%rsi)",
       "w 64 8 - *, r 64 8 * -, w 72 4 - 1")
  CASE("conditional", "cmovcl (%%rsi), %%eax; setc (%%rdi); cmovzq (%%rsi), %%rbx",
       "r 64 4 241b1209 -, w 128 1 - 1, r 64 8 483f362d241b1209 -")
  CASE("compare", "cmpb $9, (%%rsi)", "r 64 1 9 -")
  CASE("test", "testl %%eax, (%%rsi)", "r 64 4 241b1209 -")
  CASE("arithmetic", "addl (%%rsi), %%eax; adcq (%%rsi), %%rbx; imull (%%rsi), %%edx",
       "r 64 4 241b1209 -, r 64 8 483f362d241b1209 -, r 64 4 241b1209 -")
  CASE("stack", "pushq %%rax; movl (%%rsp), %%ebx; movl $5, 4(%%rsp); popq %%rdx", "")
  CASE("thread_local", "movq %[own], %%rax; incq %[own]", "")
  CASE("hints", "prefetcht0 (%%rsi); leaq 8(%%rsi), %%rax; lfence; sfence; pause; rep; nop", "")
}

void changes() {
  CASE("increment", "incl (%%rsi)", "r 64 4 241b1209 -, w 64 4 - 241b120a")
  CASE("add", "adcq %%rax, (%%rsi)", "r 64 8 483f362d241b1209 -, w 64 8 - 5961697179818992")
  CASE("shift", "shll %%cl, (%%rsi)", "r 64 4 241b1209 -, w 64 4 - 906c4824")
  CASE("bit", "btsl $3, (%%rsi); btl $0, (%%rsi)",
       "r 64 4 241b1209 -, w 64 4 - 241b1209, r 64 4 241b1209 -")
  CASE("bit_string", "movl $70, %%eax; btsl %%eax, (%%rsi); btq %%rcx, (%%rsi)",
       "r 72 4 281e140a -, w 72 4 - 281e144a, r 64 8 483f362d241b1209 -")
}

void locked() {
  CASE("exchange1", "xchgb %%al, (%%rsi)", "x 64 1 9 88")
  CASE("exchange4", "xchgl %%eax, (%%rsi)", "x 64 4 241b1209 55667788")
  CASE("exchange8", "xchgq (%%rsi), %%rbx", "x 64 8 483f362d241b1209 102030405060708")
  CASE("exchange_pointer", "xchgq %%rsi, (%%rsi)", "x 64 8 483f362d241b1209 *")
  CASE("fetch_add", "lock; xaddl %%eax, (%%rsi)", "x 64 4 241b1209 79818991")
  CASE("locked_add", "lock addw $-1, (%%rsi)", "x 64 2 1209 1208")
  CASE("locked_sub", "lock; subq %%rax, (%%rsi)", "x 64 8 483f362d241b1209 371d02e8ceb49a81")
  CASE("locked_carry", "lock; adcl $1, (%%rsi)", "x 64 4 241b1209 241b120b")
  CASE("locked_and", "lock; andl %%ebx, (%%rsi)", "x 64 4 241b1209 4020208")
  CASE("locked_or", "lock; orb $6, (%%rsi)", "x 64 1 9 f")
  CASE("locked_xor", "lock; xorq %%rbx, (%%rsi)", "x 64 8 483f362d241b1209 493d3529211d1501")
  CASE("locked_not", "lock; notl (%%rsi)", "x 64 4 241b1209 dbe4edf6")
  CASE("locked_inc", "lock; incl (%%rsi); setz %%al", "x 64 4 241b1209 241b120a")
  CASE("locked_dec", "lock\n\tdecq %[m]", "x 32 8 28231e19140f0a05 28231e19140f0a04")
  CASE("locked_bts", "lock; btsl $1, (%%rsi); setc %%al", "x 64 4 241b1209 241b120b")
  CASE("locked_btr", "movl $67, %%ecx; lock; btrl %%ecx, (%%rsi); setc %%al",
       "x 72 4 281e140a 281e1402")
  CASE("locked_btc", "movq $-1, %%rax; lock; btcq %%rax, (%%rsi)",
       "x 56 8 4038302820181008 c038302820181008")
  CASE("compare_exchange", "movl (%%rsi), %%eax; lock; cmpxchgl %%ebx, (%%rsi)",
       "r 64 4 241b1209 -, x 64 4 241b1209 5060708")
  CASE("compare_exchange_fails", "lock; cmpxchgq %%rbx, (%%rsi)", "m, r 64 8 483f362d241b1209 -")
  CASE("compare_exchange8b", "movl (%%rsi), %%eax; movl 4(%%rsi), %%edx; lock; cmpxchg8b (%%rsi)",
       "r 64 4 241b1209 -, r 68 4 483f362d -, x 64 8 483f362d241b1209 205060708")
  CASE("compare_exchange16b", "movq (%%rsi), %%rax; movq 8(%%rsi), %%rdx; lock; cmpxchg16b (%%rsi)",
       "r 64 8 483f362d241b1209 -, r 72 8 50463c32281e140a -, x 64 16 - -")
  CASE("compare_exchange16b_fails", "lock; cmpxchg16b (%%rsi)", "m, r 64 16 - -")
  CASE("fence", "mfence", "m")
  CASE("fence_of_stack", "lock; addl $0, (%%rsp); cmpl $3, %%ecx", "m")
}

void others() {
  CASE("vector", "movdqu (%%rsi), %%xmm0; movaps %%xmm0, (%%rdi)", "r 64 16 - -, w 128 16 - -")
  CASE("scalar", "movq (%%rsi), %%xmm0; movd %%xmm0, (%%rdi)",
       "r 64 8 483f362d241b1209 -, w 128 4 - 241b1209")
  CASE("copy", "cld; rep; movsb", "r 64 2 - -, w 128 2 - -")
  CASE("copy_words", "movl $3, %%ecx; rep movsq",
       "r 64 16 - -, r 80 8 - -, w 128 16 - -, w 144 8 - -")
  CASE("copy_one", "movsl", "r 64 4 - -, w 128 4 - -")
  CASE("copy_down", "std; rep movsw; cld", "r 62 4 - -, w 126 4 - -")
  CASE("fill", "rep stosl", "w 128 8 - -")
  CASE("loop", "movl $3, %%ecx\n1: lock; incl (%%rsi)\n\tdecl %%ecx\n\tjnz 1b",
       "x 64 4 241b1209 241b120a, x 64 4 241b120a 241b120b, x 64 4 241b120b 241b120c")
  CASE("jump",
       "jc 1f; movl (%%rsi), %%eax; 1: movl 4(%%rsi), %%ebx # a comment; movl %%eax, (%%rsi)",
       "r 68 4 483f362d -")
}

}  // namespace

int main() {
  std::printf("arena %lx\n", reinterpret_cast<uint64_t>(&arena));
  moves();
  changes();
  locked();
  others();
  return 0;
}
