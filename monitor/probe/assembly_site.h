// A place in an asm statement that calls the runtime (monitor/probe/assembler writes it,
// assembly_hooks.cpp is called).
//
// Purpose     What both sides agree on: the kinds, the number that describes a place, and the area
//             on the stack through which values go.
// Protocol    The place moves the stack pointer down by kArea, past what lies below it, puts the
//             operand's address and the number into the area and calls tsomon_runtime_asm, which
//             preserves every register, the flags and vector state.
//               kLoad       the hook loads into `temporary`; the instruction follows, with the
//                           temporary for its operand
//               kStore      the instruction stores into the temporary; the hook follows. With kStays the instruction
//                           follows once more, as it is, and the hook only records: as little as can be lies between
//                           it and a load behind it
//               kLocked     kLocked, the instruction (without its lock) on the temporary, kLockedEnd.
//                           The hook gives a temporary from which it can tell what the instruction
//                           does, performs that, and goes back once, with the old value.
//               kRead, kWrite, kReadWrite, kFence, kUnknown
//                           the hook, then the instruction as it is
//               kCopy, kFill, kCompareExchange16
//                           the hook does what the instruction does, in its place
// Thread-safety: plain data.
#pragma once

#include <cstdint>

namespace tsomon {

enum class SiteKind : uint8_t {
  kNothing,
  kLoad,
  kStore,
  kChange,  // a load and a store: two places
  kLocked,
  kLockedEnd,
  kFence,
  kRead,  // of any width, by what is not one access with a value
  kWrite,
  kReadWrite,
  kCopy,  // movs, of as many elements as rcx says with kRepeated
  kFill,  // stos
  kCompareExchange16,
  kUnknown,  // the address is that of a text: the place and the instruction
};

// What a locked instruction does to memory.
enum class Change : uint8_t {
  kNone,
  kExchange,
  kAdd,
  kAnd,
  kOr,
  kXor,
  kCompareExchange,
  kCompareExchange8,  // cmpxchg8b
};

enum class Segment : uint8_t { kNone, kFs, kGs };  // kGs: not understood

inline constexpr uint32_t kArea = 320;      // bytes, a red zone of 128 of them
inline constexpr uint32_t kTemporary = 16;  // where the temporary lies in it
inline constexpr uint32_t kScratch = 184;   // and a place for a register
inline constexpr uint32_t kRepeated = 1U << 28;
inline constexpr uint32_t kStays = 1U << 27;
inline constexpr uint32_t kDownwards = 1U << 30;

struct SiteWord {
  SiteKind kind = SiteKind::kNothing;
  uint32_t size = 0;
  Change change = Change::kNone;
  uint32_t bit_register = 0;  // 1 + the number of the register
  Segment segment = Segment::kNone;
  bool repeated = false;
  bool downwards = false;  // behind `std`, which the place takes back for the call
  bool stays = false;
};

inline uint32_t pack(const SiteWord& word) {
  return static_cast<uint32_t>(word.kind) | word.size << 4 |
         static_cast<uint32_t>(word.change) << 12 | word.bit_register << 16 |
         static_cast<uint32_t>(word.segment) << 24 | (word.repeated ? kRepeated : 0) |
         (word.downwards ? kDownwards : 0) | (word.stays ? kStays : 0);
}
inline SiteWord unpack(uint32_t word) {
  return {static_cast<SiteKind>(word & 15),
          (word >> 4) & 255,
          static_cast<Change>((word >> 12) & 15),
          (word >> 16) & 255,
          static_cast<Segment>((word >> 24) & 7),
          (word & kRepeated) != 0,
          (word & kDownwards) != 0,
          (word & kStays) != 0};
}

}  // namespace tsomon
