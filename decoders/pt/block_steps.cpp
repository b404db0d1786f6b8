#include "decoders/pt/block_steps.h"

#include <array>
#include <optional>

namespace tsomon::pt {
namespace {

using x86::Access;
using x86::AccessKind;
using x86::Address;
using x86::Branch;
using x86::Instruction;
using x86::Operand;
using x86::Operation;
using x86::Register;
using x86::RegisterMask;
using Kind = Step::Kind;

Ref constant(uint64_t value) { return {static_cast<int64_t>(value), kZeroSlot, 8}; }

uint64_t low_bytes(uint64_t value, unsigned size) {
  return size >= 8 ? value : value & ((uint64_t{1} << (8 * size)) - 1);
}

class Compiler {
 public:
  Compiler() { forget_changes(); }

  void add(const Instruction& instruction) {
    at_ = &instruction;
    if (followed(instruction)) {
      follow(instruction);
    } else if (instruction.selects && flags_ && selects_registers(instruction)) {
      select(instruction);
    } else if (complex(instruction)) {
      flush();
      step(Kind::kComplex);
      flags_.reset();
    } else {
      others(instruction);
    }
  }

  BlockSteps finish(const Instruction& last) {
    if (last.branch == Branch::kConditional && last.condition != x86::Condition::kNone && flags_) {
      at_ = &last;
      Step& tested = step(Kind::kTested);
      tested.a = flags_->a;
      tested.b = flags_->b;
      tested.size = flags_->size;
      tested.internal = !flags_->compared;
    }
    flush();
    return std::move(made_);
  }

 private:
  struct Flags {
    Ref a;
    Ref b;
    uint8_t size = 8;
    bool compared = true;  // otherwise only whether they are equal
    bool whole = true;     // all of them are those of a - b; otherwise only zero and sign
  };

  static bool complex(const Instruction& instruction) {
    switch (instruction.operation) {
      case Operation::kString:
      case Operation::kSystemCall:
      case Operation::kMultiplyWide:
      case Operation::kDivide:
      case Operation::kSignFill:
        return true;
      default:
        return false;
    }
  }

  static bool followed(const Instruction& instruction) {
    for (const Access& access : instruction) {
      if (access.opaque || access.size == 0 || access.size > 8 || access.masked ||
          access.conditional || access.repeat != x86::Repeat::kOnce) {
        return false;
      }
    }
    switch (instruction.operation) {
      case Operation::kClobber:
      case Operation::kExchangeAdd:
      case Operation::kCompareExchange:
        return false;
      default:
        return !complex(instruction);
    }
  }

  Step& step(Kind kind) {
    Step& made = made_.steps.emplace_back();
    made.kind = kind;
    made.instruction = at_;
    return made;
  }
  // A step that gives a value.
  Step& computed(Kind kind) {
    Step& made = step(kind);
    made.to = static_cast<uint16_t>(made_.slots++);
    return made;
  }

  Ref& reg(Register name) { return registers_[static_cast<unsigned>(name)]; }
  void set(Register name, Ref to) {
    reg(name) = to;
    changed_ |= x86::mask_of(name);
  }

  Ref plus(Ref from, uint64_t more) {
    from.offset = static_cast<int64_t>(static_cast<uint64_t>(from.offset) + more);
    if (more != 0 && from.slot != kZeroSlot) {
      from.bytes = 8;
    }
    return from;
  }

  Ref cut(Ref from, unsigned size) {
    if (from.slot == kZeroSlot) {
      return constant(low_bytes(static_cast<uint64_t>(from.offset), size));
    }
    if (size >= 8 || (from.offset == 0 && from.bytes <= size)) {
      return from;
    }
    Step& made = computed(Kind::kCut);
    made.a = from;
    made.size = static_cast<uint8_t>(size);
    return {0, made.to, static_cast<uint8_t>(size)};
  }

  Ref compute(Operation operation, Ref a, Ref b, unsigned size, unsigned operand = 0) {
    if (size == 8 && b.slot == kZeroSlot && operation == Operation::kAdd) {
      return plus(a, static_cast<uint64_t>(b.offset));
    }
    if (size == 8 && b.slot == kZeroSlot && operation == Operation::kSub) {
      return plus(a, 0 - static_cast<uint64_t>(b.offset));
    }
    Step& made = computed(Kind::kCompute);
    made.operation = operation;
    made.a = a;
    made.b = b;
    made.size = static_cast<uint8_t>(size);
    made.operand = static_cast<uint8_t>(operand);
    return {0, made.to, static_cast<uint8_t>(size)};
  }

  Ref indexed(Ref a, Ref b, unsigned scale, bool internal) {
    if (b.slot == kZeroSlot) {
      return plus(a, static_cast<uint64_t>(b.offset) * scale);
    }
    Step& made = computed(Kind::kIndexed);
    made.a = a;
    made.b = b;
    made.operand = static_cast<uint8_t>(scale);
    made.internal = internal;
    return {0, made.to, 8};
  }

  Ref address(const Address& from, bool internal = true) {
    Ref sum = from.base == Register::kNone ? constant(0) : reg(from.base);
    sum = plus(sum, static_cast<uint64_t>(from.displacement));
    if (from.index != Register::kNone) {
      sum = indexed(sum, reg(from.index), from.scale, internal);
    }
    if (!from.wide) {
      sum = cut(sum, 4);
    }
    if (from.segment != Register::kNone) {
      sum = indexed(sum, reg(from.segment), 1, internal);
    }
    return sum;
  }

  Ref load(const Access& access) {
    const Ref from = address(access.address);
    Step& made = computed(Kind::kLoad);
    made.a = from;
    made.size = static_cast<uint8_t>(access.size);
    made.access = &access;
    return {0, made.to, made.size};
  }
  void store(const Access& access, Ref value, bool recorded, bool pushed = false) {
    const Ref to = address(access.address);
    Step& made = step(Kind::kStore);
    made.a = to;
    made.b = value;
    made.size = static_cast<uint8_t>(access.size);
    made.access = &access;
    made.recorded = recorded;
    made.pushed = pushed;
  }

  static const Access* loading(const Instruction& instruction) {
    return instruction.access_count != 0 && instruction.accesses[0].kind != AccessKind::kStore
               ? &instruction.accesses[0]
               : nullptr;
  }
  static const Access* storing(const Instruction& instruction) {
    const auto* last = instruction.end() - 1;
    return instruction.access_count != 0 && last->kind != AccessKind::kLoad ? last : nullptr;
  }

  // Bits past the operand's size may be anything.
  Ref value(const Operand& operand, Ref loaded) {
    switch (operand.kind) {
      case Operand::Kind::kRegister:
        return operand.high ? compute(Operation::kShiftRight, reg(operand.reg), constant(8), 8)
                            : reg(operand.reg);
      case Operand::Kind::kImmediate:
        return constant(static_cast<uint64_t>(at_->immediate));
      case Operand::Kind::kMemory:
        return loaded;
      case Operand::Kind::kAddress:
        return address(at_->lea, false);
      case Operand::Kind::kNone:
        break;
    }
    return loaded;
  }

  void write(const Operand& operand, Ref value) {
    if (operand.size >= 4) {
      set(operand.reg, cut(value, operand.size));
      return;
    }
    const unsigned shift = operand.high ? 8 : 0;
    const uint64_t mask = low_bytes(~uint64_t{0}, operand.size) << shift;
    const Ref kept = compute(Operation::kAnd, reg(operand.reg), constant(~mask), 8);
    Ref part = cut(value, operand.size);
    if (shift != 0) {
      part = compute(Operation::kShiftLeft, part, constant(shift), 8);
    }
    set(operand.reg, compute(Operation::kOr, kept, part, 8));
  }

  void follow(const Instruction& instruction) {
    switch (instruction.operation) {
      case Operation::kPush:
      case Operation::kPop:
      case Operation::kCall:
      case Operation::kReturn:
      case Operation::kLeave:
        follow_stack(instruction);
        return;
      case Operation::kSetDirection:
        set(Register::kDirection, constant(static_cast<uint64_t>(instruction.immediate)));
        return;
      default:
        follow_data(instruction);
    }
  }

  void follow_stack(const Instruction& instruction) {
    const Access* first = loading(instruction);
    const Access* last = storing(instruction);
    const Ref stack = reg(Register::kRsp);
    switch (instruction.operation) {
      case Operation::kPush: {
        const Ref loaded = instruction.source.is_memory() ? load(*first) : constant(0);
        if (instruction.source.kind == Operand::Kind::kNone) {
          others(instruction);
          return;
        }
        store(*last, value(instruction.source, loaded), true, true);
        set(Register::kRsp, plus(stack, 0 - uint64_t{last->size}));
        return;
      }
      case Operation::kPop: {
        const Ref loaded = load(*first);
        set(Register::kRsp, plus(stack, first->size));
        if (instruction.destination.is_register()) {
          write(instruction.destination, loaded);
        } else if (last != nullptr) {
          // Its address has been made for the stack pointer as it was.
          set(Register::kRsp, stack);
          store(*last, loaded, true);
          set(Register::kRsp, plus(stack, first->size));
        }
        forget(instruction.writes &
               (x86::mask_of(Register::kFsBase) | x86::mask_of(Register::kGsBase)));
        return;
      }
      case Operation::kCall: {
        Ref target = constant(0);
        if (instruction.branch == Branch::kIndirectCall) {
          target = value(instruction.source, first != nullptr ? load(*first) : constant(0));
          Step& made = step(Kind::kTarget);
          made.a = target;
        }
        store(*last, constant(instruction.next()), true, true);
        set(Register::kRsp, plus(stack, 0 - uint64_t{last->size}));
        step(Kind::kCall).a = reg(Register::kRsp);
        flags_.reset();
        return;
      }
      case Operation::kReturn: {
        Step& made = step(Kind::kRecord);
        made.a = address(first->address);
        made.access = first;
        step(Kind::kReturn).a = stack;
        set(Register::kRsp,
            plus(stack, first->size + static_cast<uint64_t>(instruction.immediate)));
        flags_.reset();
        return;
      }
      default: {  // leave
        const Ref loaded = load(*first);
        set(Register::kRsp, plus(reg(Register::kRbp), 8));
        set(Register::kRbp, loaded);
        return;
      }
    }
  }

  void follow_data(const Instruction& instruction) {
    const Access* first = loading(instruction);
    const Access* last = storing(instruction);
    const Operand& destination = instruction.destination;
    const Operand& source = instruction.source;
    const bool stores = destination.is_memory() || (source.is_memory() && last != nullptr);
    if ((destination.is_memory() || source.is_memory()) && instruction.access_count == 0) {
      others(instruction);
      return;
    }
    const Ref loaded = first != nullptr ? load(*first) : constant(0);
    const unsigned size = destination.size;
    Ref result;
    bool flags = false;
    switch (instruction.operation) {
      case Operation::kCompare:
        flags_ =
            Flags{value(destination, loaded), value(source, loaded), destination.size, true, true};
        return;
      case Operation::kTest:
        flags_.reset();
        if (destination.is_register() && source.is_register() && destination.reg == source.reg &&
            destination.high == source.high) {
          flags_ = Flags{value(destination, loaded), constant(0), destination.size, false, true};
        }
        return;
      case Operation::kMove:
      case Operation::kLea:
        result = value(source, loaded);
        if (source.is_register() || source.is_memory()) {
          result = cut(result, source.size);
        }
        break;
      case Operation::kMoveSigned:
        result =
            compute(Operation::kMoveSigned, value(source, loaded), constant(0), size, source.size);
        break;
      case Operation::kNegate:
        flags_ = Flags{constant(0), value(destination, loaded), destination.size, false, true};
        [[fallthrough]];
      case Operation::kNot:
      case Operation::kSwapBytes:
        result = compute(instruction.operation, value(destination, loaded), constant(0), size);
        break;
      case Operation::kExchange: {
        result = cut(value(source, loaded), source.size);
        const Ref old = cut(value(destination, loaded), size);
        if (source.is_register()) {
          write(source, old);
        } else if (source.is_memory() && last != nullptr) {
          store(*last, old, false);
        }
        break;
      }
      default: {
        const bool zero = (instruction.operation == Operation::kXor ||
                           instruction.operation == Operation::kSub) &&
                          destination.is_register() && source.is_register() &&
                          destination.reg == source.reg && destination.high == source.high;
        const Ref a = instruction.multiplies_immediate
                          ? constant(static_cast<uint64_t>(instruction.immediate))
                          : value(destination, loaded);
        result =
            zero ? constant(0) : compute(instruction.operation, a, value(source, loaded), size);
        if (destination.is_register() && destination.reg == Register::kRsp && result.offset == 0 &&
            !made_.steps.empty() && made_.steps.back().kind == Kind::kCompute) {
          made_.steps.back().internal = true;
        }
        flags = instruction.operation == Operation::kAdd ||
                instruction.operation == Operation::kSub ||
                instruction.operation == Operation::kAnd ||
                instruction.operation == Operation::kOr || instruction.operation == Operation::kXor;
        flags_.reset();
        break;
      }
    }
    if (destination.is_register()) {
      const Ref stack = reg(Register::kRsp);
      write(destination, result);
      if (destination.reg == Register::kRsp && reg(Register::kRsp).slot != stack.slot) {
        Step& made = step(Kind::kStackPointer);
        made.a = reg(Register::kRsp);
        made.b = stack;
      }
    } else if (stores && destination.is_memory()) {
      store(*last, result, first == nullptr || first != last);
    }
    if (flags) {
      const bool whole =
          instruction.operation != Operation::kAdd && instruction.operation != Operation::kSub;
      flags_ = Flags{result, constant(0), destination.size, false, whole};
    }
  }

  static bool selects_registers(const Instruction& instruction) {
    const bool sets = instruction.source.kind == Operand::Kind::kNone;
    return instruction.destination.is_register() && (sets || instruction.source.is_register());
  }

  void select(const Instruction& instruction) {
    using x86::Condition;
    const Condition condition = instruction.condition;
    const bool decided = flags_->whole || condition == Condition::kEqual ||
                         condition == Condition::kNotEqual || condition == Condition::kSign ||
                         condition == Condition::kNotSign;
    if (!decided) {
      others(instruction);
      return;
    }
    const Operand& destination = instruction.destination;
    const bool sets = instruction.source.kind == Operand::Kind::kNone;
    const Ref old = sets ? constant(0) : cut(value(destination, constant(0)), destination.size);
    const Ref other =
        sets ? constant(1) : cut(value(instruction.source, constant(0)), destination.size);
    Step& decide = step(Kind::kDecide);
    decide.a = flags_->a;
    decide.b = flags_->b;
    decide.size = flags_->size;
    Step& made = computed(Kind::kSelect);
    made.a = old;
    made.b = other;
    made.size = destination.size;
    write(destination, {0, made.to, made.size});
  }

  // Registers that get something.
  void forget(RegisterMask names) {
    for (; names != 0; names &= names - 1) {
      const Ref leaf{0, computed(Kind::kLeaf).to, 8};
      set(static_cast<Register>(__builtin_ctz(names)), leaf);
    }
  }

  // Instructions whose values are not followed.
  void others(const Instruction& instruction) {
    RegisterMask addressed = 0;
    for (const Access& access : instruction) {
      addressed |= access.address.registers();
      const bool stores = access.kind != AccessKind::kLoad;
      if (access.opaque || access.repeat != x86::Repeat::kOnce) {
        opaque(access);
        continue;
      }
      const Ref at = address(access.address);
      if (access.size == 0) {  // from there on
        Step& made = step(Kind::kOpaque);
        made.a = at;
        made.access = &access;
        continue;
      }
      Step& made = step(stores ? Kind::kStoreUnknown : Kind::kTouch);
      made.a = at;
      made.access = &access;
    }
    const bool tells_nothing = instruction.operation == Operation::kCompare ||
                               instruction.operation == Operation::kTest ||
                               (instruction.branch != Branch::kNone && instruction.writes == 0);
    for (RegisterMask data = tells_nothing ? 0
                                           : instruction.reads & ~(addressed & ~instruction.writes);
         data != 0; data &= data - 1) {
      step(Kind::kLeak).a = reg(static_cast<Register>(__builtin_ctz(data)));
    }
    if (instruction.branch == Branch::kIndirectJump) {
      // Loaded once more: only the value is wanted.
      Ref target =
          reg(instruction.source.reg == Register::kNone ? Register::kRax : instruction.source.reg);
      if (instruction.source.is_memory() && instruction.access_count == 1) {
        target = load(instruction.accesses[0]);
        made_.steps.back().recorded = false;
      }
      if (instruction.source.is_memory() || instruction.source.is_register()) {
        step(Kind::kTarget).a = target;
      }
    }
    forget(instruction.writes);
    if (instruction.unlisted_stores) {
      Step& made = step(Kind::kOpaque);
      made.recorded = false;
      made.a = constant(0);
    }
    if (instruction.branch != Branch::kConditional && !instruction.selects) {
      flags_.reset();
    }
  }

  // An access around its base.
  void opaque(const Access& access) {
    Ref base = constant(0);
    for (const Register name : {access.address.base, access.address.index}) {
      if (name != Register::kNone) {
        step(Kind::kLeak).a = reg(name);
        base = name == access.address.base ? reg(name) : base;
      }
    }
    Step& made = step(Kind::kOpaque);
    made.a = base;
    made.access = &access;
    made.internal = true;
  }

  // The changed registers. In an order in which none is overwritten that is still to be read, where
  // there is one.
  void flush() {
    while (changed_ != 0) {
      RegisterMask free = 0;
      for (RegisterMask names = changed_; names != 0; names &= names - 1) {
        const auto name = static_cast<unsigned>(__builtin_ctz(names));
        bool read = false;
        for (RegisterMask others = changed_ & ~(RegisterMask{1} << name); others != 0;
             others &= others - 1) {
          read |= registers_[static_cast<unsigned>(__builtin_ctz(others))].slot == name;
        }
        free |= read ? 0 : RegisterMask{1} << name;
      }
      const Kind kind = free != 0 ? Kind::kSet : Kind::kSetAtOnce;
      for (RegisterMask names = free != 0 ? free : changed_; names != 0; names &= names - 1) {
        const auto to = static_cast<uint16_t>(__builtin_ctz(names));
        const bool stack = kind == Kind::kSet && to == static_cast<uint16_t>(Register::kRsp);
        Step& made = step(stack ? Kind::kSetStack : kind);
        made.to = to;
        made.a = registers_[made.to];
      }
      changed_ &= free != 0 ? ~free : 0;
    }
    forget_changes();
  }

  void forget_changes() {
    for (uint16_t i = 0; i < x86::kRegisters; ++i) {
      registers_[i] = {0, i, 8};
    }
    changed_ = 0;
  }

  BlockSteps made_;
  std::array<Ref, x86::kRegisters> registers_;
  RegisterMask changed_ = 0;
  std::optional<Flags> flags_;
  const Instruction* at_ = nullptr;
};

}  // namespace

BlockSteps steps_of(const Instruction* from, const Instruction* to) {
  Compiler compiler;
  const Instruction* last = from;
  for (const Instruction* at = from; at != to; ++at) {
    compiler.add(*at);
    last = at;
  }
  return compiler.finish(*last);
}

}  // namespace tsomon::pt
