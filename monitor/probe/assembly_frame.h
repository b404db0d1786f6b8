// What a place in an asm statement hands to the runtime (assembly_site.h).
//
// Purpose     tsomon_runtime_asm (assembly_entry.S) saves all registers here; tsomon_assembly_fast does what needs no
//             vector register, and tsomon_assembly_slow the rest, with the vector state saved as well.
// Thread-safety: plain data, on the stack of the thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "monitor/probe/assembly_site.h"

namespace tsomon::probe {

// In the numbers of the encoding.
enum AssemblyRegister : uint8_t { kRax, kRcx, kRdx, kRbx, kFlags, kRbp, kRsi, kRdi, kR8 };

// A locked instruction runs twice, on the temporary: to tell what it does, and with the old value.
struct LockedReplay {
  uint64_t registers[16];
  uint64_t again;  // where its first run began
  uint64_t performed;
};

struct AssemblyFrame {
  // In the place of the stack pointer the flags: 1 for overflow, and in bits 8 to 15 the others.
  uint64_t registers[16];
  uint64_t pc;  // where it goes on
  // The area of the place:
  uint64_t address;
  uint64_t number;
  uint8_t temporary[16];
  LockedReplay replay;

  // The stack pointer of the asm statement.
  uint64_t stack() const { return reinterpret_cast<uint64_t>(&address) + kArea; }
};
static_assert(offsetof(AssemblyFrame, temporary) - offsetof(AssemblyFrame, address) == kTemporary);
static_assert(sizeof(AssemblyFrame) - offsetof(AssemblyFrame, address) <= kScratch);

// In AssemblyFrame::number, of a load: it was performed, what remains is its record.
inline constexpr uint32_t kLoaded = 1U << 29;

// What one run of a locked instruction on `probe_value()` tells of it.
struct LockedEffect {
  uint64_t operand = 0;   // what is stored, added, or the mask
  uint64_t expected = 0;  // of a compare-exchange
};

// The same for both parts; general registers only.
namespace assembly {

inline __attribute__((always_inline)) uint64_t cut(uint64_t value, uint32_t size) {
  return size >= 8 ? value : value & ((uint64_t{1} << (8 * size)) - 1);
}
inline __attribute__((always_inline)) uint64_t temporary_of(const AssemblyFrame& frame,
                                                            uint32_t size) {
  uint64_t value = 0;
  __builtin_memcpy(&value, frame.temporary, 8);
  return cut(value, size);
}
inline __attribute__((always_inline)) void set_temporary(AssemblyFrame& frame, uint64_t value) {
  __builtin_memcpy(frame.temporary, &value, 8);
}

template <typename T>
using Unaligned __attribute__((aligned(1), may_alias)) = T;
template <typename T>
T* at(const AssemblyFrame& frame) {
  return reinterpret_cast<T*>(frame.address);
}

inline __attribute__((always_inline)) uint64_t expected_of(const AssemblyFrame& frame,
                                                           const SiteWord& site) {
  const uint64_t* const registers = frame.replay.registers;
  return site.change == Change::kCompareExchange8 ? registers[kRdx] << 32 | cut(registers[kRax], 4)
                                                  : cut(registers[kRax], site.size);
}

inline __attribute__((always_inline)) void begin_locked(AssemblyFrame& frame,
                                                        const SiteWord& site) {
  for (int i = 0; i < 16; ++i) {
    frame.replay.registers[i] = frame.registers[i];
  }
  frame.replay.again = frame.pc;
  frame.replay.performed = 0;
  const bool compares =
      site.change == Change::kCompareExchange || site.change == Change::kCompareExchange8;
  set_temporary(frame, compares                      ? expected_of(frame, site)
                       : site.change == Change::kAnd ? ~uint64_t{0}
                                                     : 0);
}

inline __attribute__((always_inline)) LockedEffect locked_effect(const AssemblyFrame& frame,
                                                                 const SiteWord& site) {
  return {temporary_of(frame, site.size), expected_of(frame, site)};
}

// The instruction is to run on the old value.
inline __attribute__((always_inline)) void run_again(AssemblyFrame& frame, uint64_t old) {
  for (int i = 0; i < 16; ++i) {
    frame.registers[i] = frame.replay.registers[i];
  }
  frame.pc = frame.replay.again;
  frame.replay.performed = 1;
  set_temporary(frame, old);
}

// movs and stos: how many elements, and what they cover.
struct Elements {
  uint64_t count = 0;
  uint64_t bytes = 0;
  uint64_t to = 0;
  uint64_t from = 0;
  bool downwards = false;
};
inline Elements elements_of(const AssemblyFrame& frame, const SiteWord& site) {
  Elements elements;
  elements.count = site.repeated ? frame.registers[kRcx] : 1;
  elements.bytes = elements.count * site.size;
  elements.downwards = site.downwards;
  const uint64_t back = elements.downwards && elements.count != 0 ? elements.bytes - site.size : 0;
  elements.to = frame.registers[kRdi] - back;
  elements.from = frame.registers[kRsi] - back;
  return elements;
}

#define TSOMON_STRING_INSTRUCTION(NAME)              \
  if (elements.downwards) {                          \
    asm volatile("std\n\trep " NAME "\n\tcld"        \
                 : "+D"(to), "+S"(from), "+c"(count) \
                 : "a"(frame.registers[kRax])        \
                 : "memory");                        \
  } else {                                           \
    asm volatile("rep " NAME                         \
                 : "+D"(to), "+S"(from), "+c"(count) \
                 : "a"(frame.registers[kRax])        \
                 : "memory");                        \
  }                                                  \
  break;

// `performs`: else only the registers become what the instruction makes of them.
inline void string_instruction(AssemblyFrame& frame, const SiteWord& site, bool performs) {
  const Elements elements = elements_of(frame, site);
  uint64_t to = frame.registers[kRdi];
  uint64_t from = frame.registers[kRsi];
  uint64_t count = elements.count;
  const bool copies = site.kind == SiteKind::kCopy;
  if (performs) {
    switch (site.size + (copies ? 16 : 0)) {
      case 1:
        TSOMON_STRING_INSTRUCTION("stosb")
      case 2:
        TSOMON_STRING_INSTRUCTION("stosw")
      case 4:
        TSOMON_STRING_INSTRUCTION("stosl")
      case 8:
        TSOMON_STRING_INSTRUCTION("stosq")
      case 17:
        TSOMON_STRING_INSTRUCTION("movsb")
      case 18:
        TSOMON_STRING_INSTRUCTION("movsw")
      case 20:
        TSOMON_STRING_INSTRUCTION("movsl")
      default:
        TSOMON_STRING_INSTRUCTION("movsq")
    }
  }
  const uint64_t step = elements.downwards ? 0 - elements.bytes : elements.bytes;
  frame.registers[kRdi] += step;
  frame.registers[kRsi] += copies ? step : 0;
  frame.registers[kRcx] = site.repeated ? 0 : frame.registers[kRcx];
}
#undef TSOMON_STRING_INSTRUCTION

constexpr uint64_t kZeroFlag = 1 << 14;
// What cmpxchg16b leaves in the registers.
inline void set_compared16(AssemblyFrame& frame, bool equal, uint64_t low, uint64_t high) {
  if (!equal) {
    frame.registers[kRax] = low;
    frame.registers[kRdx] = high;
  }
  frame.registers[kFlags] = (frame.registers[kFlags] & ~kZeroFlag) | (equal ? kZeroFlag : 0);
}

}  // namespace assembly
}  // namespace tsomon::probe

// True: done. False: tsomon_assembly_slow is to follow. `vectors`: xmm0 to xmm15. True of that: a store is recorded, and
// tsomon_assembly_store is to perform it, when the vectors are back: as little as can be is to come behind it.
extern "C" bool tsomon_assembly_fast(tsomon::probe::AssemblyFrame* frame);
extern "C" bool tsomon_assembly_slow(tsomon::probe::AssemblyFrame* frame, const void* vectors);
extern "C" void tsomon_assembly_store(tsomon::probe::AssemblyFrame* frame);
