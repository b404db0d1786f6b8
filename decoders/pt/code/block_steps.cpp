#include "decoders/pt/code/block_steps.h"

#include <optional>

#include "decoders/pt/code/step_builder.h"

namespace tsomon::pt {
namespace {

using x86::Access;
using x86::AccessKind;
using x86::Branch;
using x86::Instruction;
using x86::Operand;
using x86::Operation;
using x86::Register;
using x86::RegisterMask;
using StepKind = Step::Kind;

class Compiler : private StepBuilder {
 public:
  void add(const Instruction& instruction) {
    start(instruction);
    if (followed(instruction)) {
      follow(instruction);
    } else if (instruction.selects && flags_ && selects_registers(instruction)) {
      select(instruction);
    } else if (instruction.operation == Operation::kMultiplyWide &&
               instruction.source.is_register()) {
      multiply_wide(instruction);
    } else if (complex(instruction)) {
      flush();
      step(StepKind::kComplex);
      flags_.reset();
    } else {
      others(instruction);
    }
  }

  BlockSteps finish(const Instruction& last) {
    if (last.branch == Branch::kConditional && last.condition != x86::Condition::kNone && flags_) {
      start(last);
      Step& tested = step(StepKind::kTested);
      tested.a = flags_->a;
      tested.b = flags_->b;
      tested.size = flags_->size;
      tested.internal = !flags_->compared;
    }
    return StepBuilder::finish();
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
        return constant(static_cast<uint64_t>(current().immediate));
      case Operand::Kind::kMemory:
        return loaded;
      case Operand::Kind::kAddress:
        return address(current().lea, false);
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
          Step& made = step(StepKind::kTarget);
          made.a = target;
        }
        store(*last, constant(instruction.next()), true, true);
        set(Register::kRsp, plus(stack, 0 - uint64_t{last->size}));
        step(StepKind::kCall).a = reg(Register::kRsp);
        flags_.reset();
        return;
      }
      case Operation::kReturn: {
        Step& made = step(StepKind::kRecord);
        made.a = address(first->address);
        made.access = first;
        step(StepKind::kReturn).a = stack;
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
            last_step() != nullptr && last_step()->kind == StepKind::kCompute) {
          last_step()->internal = true;
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
        Step& made = step(StepKind::kStackPointer);
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

  void multiply_wide(const Instruction& instruction) {
    const Ref a = reg(Register::kRax);
    const Ref b = reg(instruction.source.reg);
    Step& made = computed(StepKind::kMultiplyWide);
    made.a = a;
    made.b = b;
    made.size = instruction.source.size;
    set(Register::kRax, {0, made.to, 8});
    set(Register::kRdx, {0, another(), 8});
    flags_.reset();
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
    Step& decide = step(StepKind::kDecide);
    decide.a = flags_->a;
    decide.b = flags_->b;
    decide.size = flags_->size;
    Step& made = computed(StepKind::kSelect);
    made.a = old;
    made.b = other;
    made.size = destination.size;
    write(destination, {0, made.to, made.size});
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
        Step& made = step(StepKind::kOpaque);
        made.a = at;
        made.access = &access;
        continue;
      }
      Step& made = step(stores ? StepKind::kStoreUnknown : StepKind::kTouch);
      made.a = at;
      made.access = &access;
    }
    const bool tells_nothing = instruction.operation == Operation::kCompare ||
                               instruction.operation == Operation::kTest ||
                               (instruction.branch != Branch::kNone && instruction.writes == 0);
    for (RegisterMask data = tells_nothing ? 0
                                           : instruction.reads & ~(addressed & ~instruction.writes);
         data != 0; data &= data - 1) {
      step(StepKind::kLeak).a = reg(static_cast<Register>(__builtin_ctz(data)));
    }
    if (instruction.branch == Branch::kIndirectJump) {
      // Loaded once more: only the value is wanted.
      Ref target =
          reg(instruction.source.reg == Register::kNone ? Register::kRax : instruction.source.reg);
      if (instruction.source.is_memory() && instruction.access_count == 1) {
        target = load(instruction.accesses[0]);
        last_step()->recorded = false;
      }
      if (instruction.source.is_memory() || instruction.source.is_register()) {
        step(StepKind::kTarget).a = target;
      }
    }
    forget(instruction.writes);
    if (instruction.unlisted_stores) {
      Step& made = step(StepKind::kOpaque);
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
        step(StepKind::kLeak).a = reg(name);
        base = name == access.address.base ? reg(name) : base;
      }
    }
    Step& made = step(StepKind::kOpaque);
    made.a = base;
    made.access = &access;
    made.internal = true;
  }

  std::optional<Flags> flags_;
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
