// What an instruction does to memory, to the order of its thread and to the general registers.
//
// Purpose     Decoded once (decode.h), kept, and evaluated as often as it runs: control flow,
//             memory accesses with the expressions of their addresses, fences, and as much of the
//             dataflow (dataflow.h) as carries addresses from one instruction to the next.
// Accesses    In the order in which they take place. A locked instruction is one access, an
//             unlocked read-modify-write two: a load and a store. Hints (prefetch, cache line
//             flushes, long nops) access nothing.
// Unknown     Evaluation needs every register of the expression; nothing is ever guessed. Some
//             addresses cannot be known from general registers at all (`opaque`): gathers and
//             scatters, bit strings, table look-ups by a byte.
// Misses      What the kernel does on behalf of `syscall`, page tables, descriptor tables; state
//             that the extended save instructions write (`unlisted_stores` says so).
// Thread-safety: plain data.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "decoders/x86/registers.h"

namespace tsomon::x86 {

// base + index * scale + displacement, cut to 32 bits when not `wide`, plus the segment's base.
// Relative to the instruction pointer: already resolved, `base` is none.
struct Address {
  int64_t displacement = 0;
  Register base = Register::kNone;
  Register index = Register::kNone;
  Register segment = Register::kNone;  // kFsBase, kGsBase or none
  uint8_t scale = 1;
  bool wide = true;

  bool constant() const {
    return base == Register::kNone && index == Register::kNone && segment == Register::kNone;
  }
  RegisterMask registers() const { return mask_of(base) | mask_of(index) | mask_of(segment); }
  // Requires that registers() are known.
  uint64_t sum(const RegisterFile& file) const {
    auto sum = static_cast<uint64_t>(displacement);
    if (base != Register::kNone) {
      sum += file.value(base);
    }
    if (index != Register::kNone) {
      sum += file.value(index) * scale;
    }
    if (!wide) {
      sum = static_cast<uint32_t>(sum);
    }
    if (segment != Register::kNone) {
      sum += file.value(segment);
    }
    return sum;
  }
  // Nothing when a register that it needs is not known.
  std::optional<uint64_t> evaluate(const RegisterFile& file) const {
    return (registers() & ~file.known) != 0 ? std::nullopt : std::optional(sum(file));
  }
};

enum class AccessKind : uint8_t {
  kLoad,
  kStore,
  kLocked,  // load and store in one step, with a full fence around it
};

enum class Repeat : uint8_t {
  kOnce,
  kCount,  // as often as the count register says (rep movs)
  kUntil,  // at most so often: the data decides (repe cmps)
};

struct Access {
  Address address;
  uint32_t size = 0;  // bytes, of one element where it repeats; 0: not known
  AccessKind kind = AccessKind::kLoad;
  Repeat repeat = Repeat::kOnce;
  bool stack = false;         // push, pop, call, ret: no operand of the instruction
  bool vector = false;        // vector or floating point data
  bool masked = false;        // a mask decides which bytes are accessed: at most `size`
  bool non_temporal = false;  // a store that does not wait its turn in the store buffer
  bool conditional = false;   // may not take place
  bool opaque = false;        // the general registers do not give the address

  // Addressed through the stack pointer: memory of the thread itself in all but strange programs.
  // Whether rbp is a frame pointer is a property of the function, not of the instruction.
  bool stack_relative() const { return stack || address.base == Register::kRsp; }
};

struct ByteRange {
  uint64_t address = 0;
  uint64_t size = 0;  // 0: nothing is accessed (a repeat count of 0)
};

// What the access covers, before the instruction runs; nothing when that is not known.
std::optional<ByteRange> evaluate(const Access& access, const RegisterFile& registers);

enum class Branch : uint8_t {
  kNone,
  kConditional,  // also loop, jrcxz
  kJump,
  kIndirectJump,
  kCall,
  kIndirectCall,
  kReturn,
  kFar,  // syscall, interrupts, iret, far jumps: leaves the program
};

// Beyond what loads and stores have by themselves.
enum class Ordering : uint8_t {
  kNone,
  kLoads,   // lfence
  kStores,  // sfence
  kFull,    // mfence, serialising instructions; locked accesses say it of themselves
};

// How `destination` comes from its old value (a) and `source` (b). Everything else is kClobber.
enum class Operation : uint8_t {
  kClobber,  // the registers in `writes` get values that are not followed
  kMove,     // b, zero-extended
  kMoveSigned,
  kLea,  // b is the address itself
  kAdd,
  kSub,
  kAnd,
  kOr,
  kXor,
  kShiftLeft,
  kShiftRight,
  kShiftRightSigned,
  kMultiply,
  kMultiplyWide,  // rdx:rax (or less) from rax and `source`, unsigned
  kDivide,        // rax and rdx from rdx:rax and `source`, unsigned
  kSignFill,      // rdx from the sign of rax; `source.size` bytes (cdq, cqo)
  kRotateLeft,
  kRotateRight,
  kSwapBytes,
  kNot,
  kNegate,
  kExchange,
  kExchangeAdd,      // `source` gets a, `destination` gets a + b (xadd)
  kCompareExchange,  // b where a equals rax; rax gets a where it does not (cmpxchg)
  kPush,
  kPop,
  kCall,
  kReturn,
  kLeave,
  kString,
  kSetDirection,  // cld, std: immediate
  kSystemCall,
  kCompare,  // flags of a - b
  kTest,     // flags of a & b
};

// What a conditional branch is taken on, where that says something about values; what a
// conditional move depends on. The last ones are comparisons with signs.
enum class Condition : uint8_t {
  kNone,
  kEqual,
  kNotEqual,
  kAbove,
  kNotAbove,
  kBelow,
  kNotBelow,
  kSign,
  kNotSign,
  kLess,
  kNotLess,
  kGreater,
  kNotGreater,
};

struct Operand {
  enum class Kind : uint8_t { kNone, kRegister, kImmediate, kMemory, kAddress };
  Kind kind = Kind::kNone;
  Register reg = Register::kNone;
  uint8_t size = 0;   // bytes
  bool high = false;  // ah, ch, dh, bh

  bool is_register() const { return kind == Kind::kRegister; }
  bool is_memory() const { return kind == Kind::kMemory; }
};

struct Instruction {
  static constexpr unsigned kMaxAccesses = 2;

  uint64_t address = 0;
  uint64_t target = 0;    // of direct branches
  int64_t immediate = 0;  // of an operand; of ret: bytes that it takes off the stack besides
  Address lea;            // of kAddress operands
  std::array<Access, kMaxAccesses> accesses;
  RegisterMask reads = 0;   // including those of addresses
  RegisterMask writes = 0;  // in whole, in part or perhaps
  uint8_t length = 0;
  uint8_t access_count = 0;
  Branch branch = Branch::kNone;
  Ordering ordering = Ordering::kNone;
  Operation operation = Operation::kClobber;
  Condition condition = Condition::kNone;  // of a conditional branch, and with `selects`
  // kMove with a memory destination stores `source`, with a memory source loads into
  // `destination`; the other operations with a memory operand compute with what they load. Several
  // operands of memory: push, pop and exchange only.
  Operand destination;
  Operand source;
  bool multiplies_immediate = false;  // kMultiply: source * immediate, the old value is not read
  // A kClobber whose destination becomes `source` where the condition holds (cmov), or 1, else 0
  // (set, without a source).
  bool selects = false;
  bool ptwrite = false;          // `source` goes into the processor's trace
  bool other_gate = false;       // kFar, other than syscall, iret, int3, int1: calls in other ways
  bool unlisted_stores = false;  // writes memory that `accesses` does not name

  uint64_t next() const { return address + length; }
  const Access* begin() const { return accesses.data(); }
  const Access* end() const { return accesses.data() + access_count; }
  // Can be interrupted half done, with its registers moved on so far.
  bool repeats() const { return access_count != 0 && accesses[0].repeat != Repeat::kOnce; }
  bool locked() const { return access_count != 0 && accesses[0].kind == AccessKind::kLocked; }
};

}  // namespace tsomon::x86
