#include "decoders/x86/decode.h"

#include <algorithm>

#include <Zydis/Zydis.h>
#include <fmt/format.h>

namespace tsomon::x86 {
namespace {

struct Decoded {
  ZydisDecodedInstruction instruction;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;

  const ZydisDecodedOperand* begin() const { return operands.data(); }
  const ZydisDecodedOperand* end() const { return operands.data() + instruction.operand_count; }
  bool has(uint64_t attribute) const { return (instruction.attributes & attribute) != 0; }
  bool has_target() const {
    return instruction.operand_count != 0 && operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
           operands[0].imm.is_relative != 0;
  }
};

const ZydisDecoder& decoder() {
  static const ZydisDecoder instance = [] {
    ZydisDecoder made;
    ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return made;
  }();
  return instance;
}

Register general(ZydisRegister reg) {
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  if (whole == ZYDIS_REGISTER_NONE || ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64) {
    return Register::kNone;
  }
  return static_cast<Register>(ZydisRegisterGetId(whole));
}

bool is_high(ZydisRegister reg) { return reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH; }

// Memory operands that access nothing.
bool only_hint(const ZydisDecodedInstruction& from) {
  switch (from.meta.category) {
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_WIDENOP:
    case ZYDIS_CATEGORY_PREFETCH:
    case ZYDIS_CATEGORY_PREFETCHWT1:
    case ZYDIS_CATEGORY_CLFLUSHOPT:
    case ZYDIS_CATEGORY_CLWB:
    case ZYDIS_CATEGORY_CLDEMOTE:
      return true;
    default:
      return from.mnemonic == ZYDIS_MNEMONIC_CLFLUSH || from.mnemonic == ZYDIS_MNEMONIC_INVLPG;
  }
}

bool is_non_temporal(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_MOVNTI:
    case ZYDIS_MNEMONIC_MOVNTQ:
    case ZYDIS_MNEMONIC_MOVNTDQ:
    case ZYDIS_MNEMONIC_MOVNTPS:
    case ZYDIS_MNEMONIC_MOVNTPD:
    case ZYDIS_MNEMONIC_MOVNTSS:
    case ZYDIS_MNEMONIC_MOVNTSD:
    case ZYDIS_MNEMONIC_VMOVNTDQ:
    case ZYDIS_MNEMONIC_VMOVNTPS:
    case ZYDIS_MNEMONIC_VMOVNTPD:
    case ZYDIS_MNEMONIC_MASKMOVQ:
    case ZYDIS_MNEMONIC_MASKMOVDQU:
    case ZYDIS_MNEMONIC_VMASKMOVDQU:
    case ZYDIS_MNEMONIC_MOVDIRI:
    case ZYDIS_MNEMONIC_MOVDIR64B:
      return true;
    default:
      return false;
  }
}

// Masks that are operands like others.
bool is_masked_move(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_MASKMOVQ:
    case ZYDIS_MNEMONIC_MASKMOVDQU:
    case ZYDIS_MNEMONIC_VMASKMOVDQU:
    case ZYDIS_MNEMONIC_VMASKMOVPS:
    case ZYDIS_MNEMONIC_VMASKMOVPD:
    case ZYDIS_MNEMONIC_VPMASKMOVD:
    case ZYDIS_MNEMONIC_VPMASKMOVQ:
      return true;
    default:
      return false;
  }
}

bool is_bit_test(ZydisMnemonic mnemonic) {
  return mnemonic == ZYDIS_MNEMONIC_BT || mnemonic == ZYDIS_MNEMONIC_BTS ||
         mnemonic == ZYDIS_MNEMONIC_BTR || mnemonic == ZYDIS_MNEMONIC_BTC;
}

// Saves or restores as much as a control register says.
bool has_variable_size(const ZydisDecodedInstruction& from) {
  return from.meta.category == ZYDIS_CATEGORY_XSAVE ||
         from.meta.category == ZYDIS_CATEGORY_XSAVEOPT;
}

Ordering ordering_of(const ZydisDecodedInstruction& from) {
  switch (from.mnemonic) {
    case ZYDIS_MNEMONIC_LFENCE:
      return Ordering::kLoads;
    case ZYDIS_MNEMONIC_SFENCE:
      return Ordering::kStores;
    case ZYDIS_MNEMONIC_MFENCE:
    case ZYDIS_MNEMONIC_CPUID:
    case ZYDIS_MNEMONIC_SERIALIZE:
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_RSM:
    case ZYDIS_MNEMONIC_INVD:
    case ZYDIS_MNEMONIC_WBINVD:
    case ZYDIS_MNEMONIC_INVLPG:
    case ZYDIS_MNEMONIC_WRMSR:
    case ZYDIS_MNEMONIC_LGDT:
    case ZYDIS_MNEMONIC_LIDT:
    case ZYDIS_MNEMONIC_LLDT:
    case ZYDIS_MNEMONIC_LTR:
      return Ordering::kFull;
    default:
      return Ordering::kNone;
  }
}

Branch branch_of(const Decoded& from) {
  const bool direct = from.has_target();
  const bool far = from.instruction.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
  switch (from.instruction.meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
      return from.instruction.meta.branch_type == ZYDIS_BRANCH_TYPE_NONE ? Branch::kNone
                                                                         : Branch::kConditional;
    case ZYDIS_CATEGORY_UNCOND_BR:
      return far ? Branch::kFar : direct ? Branch::kJump : Branch::kIndirectJump;
    case ZYDIS_CATEGORY_CALL:
      return far ? Branch::kFar : direct ? Branch::kCall : Branch::kIndirectCall;
    case ZYDIS_CATEGORY_RET:
      return from.instruction.mnemonic == ZYDIS_MNEMONIC_RET && !far ? Branch::kReturn
                                                                     : Branch::kFar;
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
      return Branch::kFar;
    default:
      return Branch::kNone;
  }
}

// Those of them that ask nothing of the kernel, besides syscall.
bool is_return_or_trap(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_INT1:
    case ZYDIS_MNEMONIC_INT3:
      return true;
    default:
      return false;
  }
}

Operation operation_of(const ZydisDecodedInstruction& from) {
  switch (from.mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVZX:
    case ZYDIS_MNEMONIC_MOVNTI:
      return Operation::kMove;
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
      return Operation::kMoveSigned;
    case ZYDIS_MNEMONIC_LEA:
      return Operation::kLea;
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_INC:
      return Operation::kAdd;
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_DEC:
      return Operation::kSub;
    case ZYDIS_MNEMONIC_AND:
      return Operation::kAnd;
    case ZYDIS_MNEMONIC_OR:
      return Operation::kOr;
    case ZYDIS_MNEMONIC_XOR:
      return Operation::kXor;
    case ZYDIS_MNEMONIC_SHL:
      return Operation::kShiftLeft;
    case ZYDIS_MNEMONIC_SHR:
      return Operation::kShiftRight;
    case ZYDIS_MNEMONIC_SAR:
      return Operation::kShiftRightSigned;
    case ZYDIS_MNEMONIC_IMUL:
      return Operation::kMultiply;
    case ZYDIS_MNEMONIC_MUL:
      return Operation::kMultiplyWide;
    case ZYDIS_MNEMONIC_DIV:
      return Operation::kDivide;
    case ZYDIS_MNEMONIC_CDQ:
    case ZYDIS_MNEMONIC_CQO:
      return Operation::kSignFill;
    case ZYDIS_MNEMONIC_CWDE:
    case ZYDIS_MNEMONIC_CDQE:
      return Operation::kMoveSigned;
    case ZYDIS_MNEMONIC_ROL:
      return Operation::kRotateLeft;
    case ZYDIS_MNEMONIC_ROR:
      return Operation::kRotateRight;
    case ZYDIS_MNEMONIC_BSWAP:
      return Operation::kSwapBytes;
    case ZYDIS_MNEMONIC_NOT:
      return Operation::kNot;
    case ZYDIS_MNEMONIC_NEG:
      return Operation::kNegate;
    case ZYDIS_MNEMONIC_CMP:
      return Operation::kCompare;
    case ZYDIS_MNEMONIC_TEST:
      return Operation::kTest;
    case ZYDIS_MNEMONIC_XCHG:
      return Operation::kExchange;
    case ZYDIS_MNEMONIC_XADD:
      return Operation::kExchangeAdd;
    case ZYDIS_MNEMONIC_CMPXCHG:
      return Operation::kCompareExchange;
    case ZYDIS_MNEMONIC_PUSH:
      return Operation::kPush;
    case ZYDIS_MNEMONIC_POP:
      return Operation::kPop;
    case ZYDIS_MNEMONIC_LEAVE:
      return Operation::kLeave;
    case ZYDIS_MNEMONIC_CLD:
    case ZYDIS_MNEMONIC_STD:
      return Operation::kSetDirection;
    case ZYDIS_MNEMONIC_SYSCALL:
      return Operation::kSystemCall;
    case ZYDIS_MNEMONIC_CALL:
      return from.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR ? Operation::kClobber
                                                            : Operation::kCall;
    case ZYDIS_MNEMONIC_RET:
      return from.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR ? Operation::kClobber
                                                            : Operation::kReturn;
    default:
      // String moves share names with vector moves.
      return from.meta.category == ZYDIS_CATEGORY_STRINGOP ? Operation::kString
                                                           : Operation::kClobber;
  }
}

// Of conditional moves and of the instructions that set a byte.
Condition selection_of(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_CMOVZ:
    case ZYDIS_MNEMONIC_SETZ:
      return Condition::kEqual;
    case ZYDIS_MNEMONIC_CMOVNZ:
    case ZYDIS_MNEMONIC_SETNZ:
      return Condition::kNotEqual;
    case ZYDIS_MNEMONIC_CMOVNBE:
    case ZYDIS_MNEMONIC_SETNBE:
      return Condition::kAbove;
    case ZYDIS_MNEMONIC_CMOVBE:
    case ZYDIS_MNEMONIC_SETBE:
      return Condition::kNotAbove;
    case ZYDIS_MNEMONIC_CMOVB:
    case ZYDIS_MNEMONIC_SETB:
      return Condition::kBelow;
    case ZYDIS_MNEMONIC_CMOVNB:
    case ZYDIS_MNEMONIC_SETNB:
      return Condition::kNotBelow;
    case ZYDIS_MNEMONIC_CMOVS:
    case ZYDIS_MNEMONIC_SETS:
      return Condition::kSign;
    case ZYDIS_MNEMONIC_CMOVNS:
    case ZYDIS_MNEMONIC_SETNS:
      return Condition::kNotSign;
    case ZYDIS_MNEMONIC_CMOVL:
    case ZYDIS_MNEMONIC_SETL:
      return Condition::kLess;
    case ZYDIS_MNEMONIC_CMOVNL:
    case ZYDIS_MNEMONIC_SETNL:
      return Condition::kNotLess;
    case ZYDIS_MNEMONIC_CMOVNLE:
    case ZYDIS_MNEMONIC_SETNLE:
      return Condition::kGreater;
    case ZYDIS_MNEMONIC_CMOVLE:
    case ZYDIS_MNEMONIC_SETLE:
      return Condition::kNotGreater;
    default:
      return Condition::kNone;
  }
}

Condition condition_of(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_JZ:
      return Condition::kEqual;
    case ZYDIS_MNEMONIC_JNZ:
      return Condition::kNotEqual;
    case ZYDIS_MNEMONIC_JNBE:
      return Condition::kAbove;
    case ZYDIS_MNEMONIC_JBE:
      return Condition::kNotAbove;
    case ZYDIS_MNEMONIC_JB:
      return Condition::kBelow;
    case ZYDIS_MNEMONIC_JNB:
      return Condition::kNotBelow;
    default:
      return Condition::kNone;
  }
}

class Builder {
 public:
  Builder(const Decoded& from, uint64_t address) : from_(from), raw_(from.instruction) {
    to_.address = address;
    to_.length = raw_.length;
  }

  Instruction build() {
    to_.branch = branch_of(from_);
    to_.ordering = ordering_of(raw_);
    to_.operation = operation_of(raw_);
    to_.condition = condition_of(raw_.mnemonic);
    to_.ptwrite = raw_.mnemonic == ZYDIS_MNEMONIC_PTWRITE;
    to_.unlisted_stores = (has_variable_size(raw_) && may_store()) || to_.branch == Branch::kFar ||
                          raw_.mnemonic == ZYDIS_MNEMONIC_CLZERO ||
                          raw_.mnemonic == ZYDIS_MNEMONIC_ENTER ||
                          raw_.meta.category == ZYDIS_CATEGORY_IOSTRINGOP;
    if (from_.has_target()) {
      ZydisCalcAbsoluteAddress(&raw_, from_.begin(), to_.address, &to_.target);
    }
    for (const ZydisDecodedOperand& operand : from_) {
      add_registers(operand);
      add_access(operand);
    }
    std::stable_sort(to_.accesses.begin(), to_.accesses.begin() + to_.access_count,
                     [](const Access& a, const Access& b) {
                       return a.kind == AccessKind::kLoad && b.kind != AccessKind::kLoad;
                     });
    correct_registers();
    set_operands();
    return to_;
  }

 private:
  bool may_store() const {
    return std::any_of(from_.begin(), from_.end(), [](const ZydisDecodedOperand& operand) {
      return operand.type == ZYDIS_OPERAND_TYPE_MEMORY &&
             (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
    });
  }

  Address address_of(const ZydisDecodedOperand& operand) const {
    Address address;
    address.displacement = operand.mem.disp.value;
    address.wide = raw_.address_width == 64;
    if (operand.mem.base == ZYDIS_REGISTER_RIP || operand.mem.base == ZYDIS_REGISTER_EIP) {
      address.displacement =
          static_cast<int64_t>(static_cast<uint64_t>(address.displacement) + to_.next());
    } else {
      address.base = general(operand.mem.base);
      address.index = general(operand.mem.index);
      address.scale = std::max<uint8_t>(operand.mem.scale, 1);
    }
    if (operand.mem.segment == ZYDIS_REGISTER_FS) {
      address.segment = Register::kFsBase;
    } else if (operand.mem.segment == ZYDIS_REGISTER_GS) {
      address.segment = Register::kGsBase;
    }
    return address;
  }

  void add_registers(const ZydisDecodedOperand& operand) {
    if (only_hint(raw_)) {
      return;  // long nops name registers, but do nothing with them
    }
    if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
      to_.reads |= address_of(operand).registers();
      return;
    }
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) {
      return;
    }
    const RegisterMask mask = mask_of(general(operand.reg.value));
    if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0) {
      to_.writes |= mask;
    }
    // What is written in part or perhaps keeps the rest.
    const bool whole = operand.actions == ZYDIS_OPERAND_ACTION_WRITE && operand.size >= 32;
    if (!whole) {
      to_.reads |= mask;
    }
  }

  void add_access(const ZydisDecodedOperand& operand) {
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || only_hint(raw_)) {
      return;
    }
    if (operand.mem.type != ZYDIS_MEMOP_TYPE_MEM && operand.mem.type != ZYDIS_MEMOP_TYPE_VSIB) {
      return;
    }
    Access access;
    access.address = address_of(operand);
    access.size = operand.size / 8;
    access.stack = operand.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
                   operand.mem.segment == ZYDIS_REGISTER_SS;
    access.vector = is_vector();
    access.masked =
        is_masked_move(raw_.mnemonic) || (raw_.avx.mask.mode != ZYDIS_MASK_MODE_INVALID &&
                                          raw_.avx.mask.mode != ZYDIS_MASK_MODE_DISABLED);
    if (operand.mem.type == ZYDIS_MEMOP_TYPE_VSIB) {
      access.opaque = true;
      access.masked = true;
      access.size = operand.element_size / 8U;
    }
    if (has_variable_size(raw_)) {
      access.size = 0;
    }
    // The bit number goes beyond the operand.
    access.opaque |=
        is_bit_test(raw_.mnemonic) && from_.operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
    access.opaque |= raw_.mnemonic == ZYDIS_MNEMONIC_XLAT;
    access.opaque |= raw_.mnemonic == ZYDIS_MNEMONIC_ENTER;
    set_repeat(access);
    set_stack_place(operand, access);
    const auto conditional = [&](unsigned plain) {
      return (operand.actions & plain) == 0 && !access.masked && access.repeat == Repeat::kOnce;
    };
    const bool loads = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
    const bool stores = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
    if (loads && stores &&
        (from_.has(ZYDIS_ATTRIB_HAS_LOCK) || raw_.mnemonic == ZYDIS_MNEMONIC_XCHG)) {
      access.kind = AccessKind::kLocked;
      push(access);
      return;
    }
    if (loads) {
      access.conditional = conditional(ZYDIS_OPERAND_ACTION_READ);
      push(access);
    }
    if (stores) {
      access.kind = AccessKind::kStore;
      access.conditional = conditional(ZYDIS_OPERAND_ACTION_WRITE);
      access.non_temporal = is_non_temporal(raw_.mnemonic);
      push(access);
    }
  }

  void push(const Access& access) {
    if (to_.access_count == Instruction::kMaxAccesses) {
      to_.unlisted_stores = true;
      return;
    }
    to_.accesses[to_.access_count++] = access;
  }

  bool is_vector() const {
    for (const ZydisDecodedOperand& operand : from_) {
      if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) {
        const ZydisRegisterClass kind = ZydisRegisterGetClass(operand.reg.value);
        if (kind == ZYDIS_REGCLASS_XMM || kind == ZYDIS_REGCLASS_YMM ||
            kind == ZYDIS_REGCLASS_ZMM || kind == ZYDIS_REGCLASS_MMX ||
            kind == ZYDIS_REGCLASS_X87) {
          return true;
        }
      }
    }
    return false;
  }

  bool is_string() const { return raw_.meta.category == ZYDIS_CATEGORY_STRINGOP; }
  bool repeats() const {
    return from_.has(ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
  }
  bool compares() const {
    switch (raw_.mnemonic) {
      case ZYDIS_MNEMONIC_CMPSB:
      case ZYDIS_MNEMONIC_CMPSW:
      case ZYDIS_MNEMONIC_CMPSD:
      case ZYDIS_MNEMONIC_CMPSQ:
      case ZYDIS_MNEMONIC_SCASB:
      case ZYDIS_MNEMONIC_SCASW:
      case ZYDIS_MNEMONIC_SCASD:
      case ZYDIS_MNEMONIC_SCASQ:
        return true;
      default:
        return false;
    }
  }

  void set_repeat(Access& access) const {
    if (is_string() && repeats()) {
      access.repeat = compares() ? Repeat::kUntil : Repeat::kCount;
      access.opaque |= raw_.address_width != 64;
    }
  }

  // Zydis gives the stack pointer before the instruction for all of them.
  void set_stack_place(const ZydisDecodedOperand& operand, Access& access) const {
    if (access.stack) {
      access.address.wide = true;
      if ((operand.actions & ZYDIS_OPERAND_ACTION_WRITE) != 0) {
        access.address.displacement -= access.size;
      }
    } else if (raw_.mnemonic == ZYDIS_MNEMONIC_POP && access.address.base == Register::kRsp) {
      access.address.displacement += access.size;  // evaluated when rsp has moved
    }
  }

  void correct_registers() {
    if (is_string()) {
      const RegisterMask both = mask_of(Register::kRsi) | mask_of(Register::kRdi);
      to_.writes |= to_.reads & both;  // Zydis leaves them out where the data decides
      to_.reads |= mask_of(Register::kDirection);
      if (repeats()) {
        to_.writes |= mask_of(Register::kRcx);
        to_.reads |= mask_of(Register::kRcx);
      }
    }
    switch (raw_.mnemonic) {
      case ZYDIS_MNEMONIC_CLD:
      case ZYDIS_MNEMONIC_STD:
      case ZYDIS_MNEMONIC_POPF:
      case ZYDIS_MNEMONIC_POPFD:
      case ZYDIS_MNEMONIC_POPFQ:
        to_.writes |= mask_of(Register::kDirection);
        break;
      case ZYDIS_MNEMONIC_WRFSBASE:
      case ZYDIS_MNEMONIC_LFS:
        to_.writes |= mask_of(Register::kFsBase);
        break;
      case ZYDIS_MNEMONIC_WRGSBASE:
      case ZYDIS_MNEMONIC_LGS:
      case ZYDIS_MNEMONIC_SWAPGS:
        to_.writes |= mask_of(Register::kGsBase);
        break;
      case ZYDIS_MNEMONIC_WRMSR:
        to_.writes |= mask_of(Register::kFsBase) | mask_of(Register::kGsBase);
        break;
      case ZYDIS_MNEMONIC_CMPXCHG8B:
      case ZYDIS_MNEMONIC_CMPXCHG16B:
        to_.writes |= mask_of(Register::kRax) | mask_of(Register::kRdx);
        break;
      default:
        break;
    }
    for (const ZydisDecodedOperand& operand : from_) {
      if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER &&
          (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0) {
        if (operand.reg.value == ZYDIS_REGISTER_FS) {
          to_.writes |= mask_of(Register::kFsBase);
        } else if (operand.reg.value == ZYDIS_REGISTER_GS) {
          to_.writes |= mask_of(Register::kGsBase);
        }
      }
    }
    if (to_.operation == Operation::kSystemCall) {
      to_.writes |= mask_of(Register::kRax) | mask_of(Register::kRcx) | mask_of(Register::kR11);
      to_.reads |= mask_of(Register::kRax);
    } else if (to_.branch == Branch::kFar) {
      to_.writes = kAllRegisters;
      to_.other_gate = !is_return_or_trap(raw_.mnemonic);
    }
  }

  Operand operand_of(const ZydisDecodedOperand& from) {
    Operand operand;
    operand.size = static_cast<uint8_t>(std::min<unsigned>(from.size / 8U, 255));
    switch (from.type) {
      case ZYDIS_OPERAND_TYPE_REGISTER:
        operand.reg = general(from.reg.value);
        operand.high = is_high(from.reg.value);
        operand.kind =
            operand.reg == Register::kNone ? Operand::Kind::kNone : Operand::Kind::kRegister;
        break;
      case ZYDIS_OPERAND_TYPE_IMMEDIATE:
        operand.kind = Operand::Kind::kImmediate;
        to_.immediate = from.imm.value.s;
        break;
      case ZYDIS_OPERAND_TYPE_MEMORY:
        if (from.mem.type == ZYDIS_MEMOP_TYPE_AGEN) {
          operand.kind = Operand::Kind::kAddress;
          to_.lea = address_of(from);
          to_.lea.segment = Register::kNone;
        } else {
          operand.kind = Operand::Kind::kMemory;
        }
        break;
      default:
        break;
    }
    return operand;
  }

  void set_operands() {
    const auto& operands = from_.operands;
    if (to_.ptwrite || to_.branch == Branch::kIndirectJump) {
      to_.source = operand_of(operands[0]);
    }
    if (const Condition condition = selection_of(raw_.mnemonic); condition != Condition::kNone) {
      to_.selects = true;
      to_.condition = condition;
      to_.destination = operand_of(operands[0]);
      if (raw_.operand_count_visible == 2) {
        to_.source = operand_of(operands[1]);
      }
    }
    switch (to_.operation) {
      case Operation::kClobber:
      case Operation::kSystemCall:
      case Operation::kLeave:
      case Operation::kString:
        return;
      case Operation::kSetDirection:
        to_.immediate = raw_.mnemonic == ZYDIS_MNEMONIC_STD ? 1 : 0;
        return;
      case Operation::kCall:
        if (to_.branch == Branch::kIndirectCall) {
          to_.source = operand_of(operands[0]);
        }
        return;
      case Operation::kCompare:
      case Operation::kTest:
        to_.destination = operand_of(operands[0]);
        to_.source = operand_of(operands[1]);
        return;
      case Operation::kReturn:
        if (raw_.operand_count_visible != 0) {
          to_.immediate = static_cast<int64_t>(operands[0].imm.value.u);
        }
        return;
      case Operation::kPush:
        to_.source = operand_of(operands[0]);
        return;
      case Operation::kMultiplyWide:
      case Operation::kDivide:
        to_.source = operand_of(operands[0]);
        if (to_.source.size < 4) {
          to_.operation = Operation::kClobber;
        }
        return;
      case Operation::kSignFill:
        to_.source = {Operand::Kind::kRegister, Register::kRax,
                      static_cast<uint8_t>(raw_.mnemonic == ZYDIS_MNEMONIC_CQO ? 8 : 4), false};
        return;
      case Operation::kPop:
      case Operation::kNot:
      case Operation::kNegate:
      case Operation::kSwapBytes:
        to_.destination = operand_of(operands[0]);
        break;
      case Operation::kMultiply:
        set_multiply();
        break;
      default:
        if (raw_.mnemonic == ZYDIS_MNEMONIC_CWDE || raw_.mnemonic == ZYDIS_MNEMONIC_CDQE) {
          const auto size = static_cast<uint8_t>(raw_.mnemonic == ZYDIS_MNEMONIC_CDQE ? 8 : 4);
          to_.destination = {Operand::Kind::kRegister, Register::kRax, size, false};
          to_.source = {Operand::Kind::kRegister, Register::kRax, static_cast<uint8_t>(size / 2),
                        false};
          break;
        }
        to_.destination = operand_of(operands[0]);
        to_.source = operand_of(operands[1]);
        if (raw_.operand_count_visible == 1) {  // inc, dec, shifts by one
          to_.source = {Operand::Kind::kImmediate, Register::kNone, to_.destination.size, false};
          to_.immediate = 1;
        }
        break;
    }
    // Segment and control registers: known to be written, not followed.
    const bool one = to_.operation == Operation::kPop || to_.operation == Operation::kNot ||
                     to_.operation == Operation::kNegate || to_.operation == Operation::kSwapBytes;
    if (to_.destination.kind == Operand::Kind::kNone ||
        (to_.source.kind == Operand::Kind::kNone && !one)) {
      if (to_.operation != Operation::kPop) {
        to_.operation = Operation::kClobber;
      }
    }
  }

  // Two operands: like the others; three with an immediate: the second times it.
  void set_multiply() {
    const auto& operands = from_.operands;
    if (raw_.operand_count_visible == 2) {
      to_.destination = operand_of(operands[0]);
      to_.source = operand_of(operands[1]);
    } else if (raw_.operand_count_visible == 3) {
      to_.destination = operand_of(operands[0]);
      to_.source = operand_of(operands[1]);
      operand_of(operands[2]);  // the immediate
      to_.multiplies_immediate = true;
    } else {
      to_.operation = Operation::kClobber;
    }
  }

  const Decoded& from_;
  const ZydisDecodedInstruction& raw_;
  Instruction to_;
};

}  // namespace

Result<Instruction> decode(const uint8_t* bytes, size_t size, uint64_t address) {
  Decoded decoded;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder(), bytes, std::min(size, kMaxInstruction),
                                           &decoded.instruction, decoded.operands.data()))) {
    return fail(ErrorKind::kMalformed, fmt::format("no instruction at {:#x}", address));
  }
  return Builder(decoded, address).build();
}

}  // namespace tsomon::x86
