#include "decoders/x86/dataflow.h"

namespace tsomon::x86 {
namespace {

uint64_t low_bytes(uint64_t value, unsigned size) {
  return size >= 8 ? value : value & ((uint64_t{1} << (8 * size)) - 1);
}

uint64_t sign_extend(uint64_t value, unsigned size) {
  if (size >= 8) {
    return value;
  }
  const unsigned unused = 64 - 8 * size;
  return static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused);
}

Value operand_value(const Instruction& instruction, const Operand& operand,
                    const RegisterFile& registers, Value loaded) {
  if (operand.size > 8) {
    return std::nullopt;
  }
  switch (operand.kind) {
    case Operand::Kind::kRegister:
      if (!registers.has(operand.reg)) {
        return std::nullopt;
      }
      return low_bytes(registers.value(operand.reg) >> (operand.high ? 8 : 0), operand.size);
    case Operand::Kind::kImmediate:
      return static_cast<uint64_t>(instruction.immediate);
    case Operand::Kind::kMemory:
      return loaded ? Value(low_bytes(*loaded, operand.size)) : loaded;
    case Operand::Kind::kAddress:
      return instruction.lea.evaluate(registers);
    case Operand::Kind::kNone:
      break;
  }
  return std::nullopt;
}

// A register after a write of `size` bytes.
void write_register(const Operand& operand, Value value, RegisterFile& registers) {
  if (!value) {
    registers.forget(mask_of(operand.reg));
    return;
  }
  if (operand.size >= 4) {  // 4 bytes: the upper half becomes zero
    registers.set(operand.reg, low_bytes(*value, operand.size));
    return;
  }
  if (!registers.has(operand.reg)) {
    return;
  }
  const unsigned shift = operand.high ? 8 : 0;
  const uint64_t mask = low_bytes(~uint64_t{0}, operand.size) << shift;
  registers.set(operand.reg, (registers.value(operand.reg) & ~mask) | ((*value << shift) & mask));
}

Value shifted(Operation operation, uint64_t a, uint64_t count, unsigned size) {
  count &= size == 8 ? 63U : 31U;
  switch (operation) {
    case Operation::kShiftLeft:
      return a << count;
    case Operation::kShiftRight:
      return low_bytes(a, size) >> count;
    default:
      return static_cast<uint64_t>(static_cast<int64_t>(sign_extend(a, size)) >>
                                   static_cast<int>(count));
  }
}

uint64_t rotated(uint64_t a, uint64_t count, unsigned size) {
  const unsigned bits = 8 * size;
  count %= bits;
  a = low_bytes(a, size);
  return count == 0 ? a : a << count | a >> (bits - count);
}

bool same_register(const Instruction& instruction) {
  return instruction.destination.is_register() && instruction.source.is_register() &&
         instruction.destination.reg == instruction.source.reg &&
         instruction.destination.high == instruction.source.high;
}

// The new value of the destination; bits past its size have no meaning.
Value result(const Instruction& instruction, const RegisterFile& before, Value loaded) {
  const Operand& destination = instruction.destination;
  const Operation operation = instruction.operation;
  if ((operation == Operation::kXor || operation == Operation::kSub) &&
      same_register(instruction)) {
    return 0;  // whatever it held
  }
  const auto source = [&] {
    return operand_value(instruction, instruction.source, before, loaded);
  };
  const auto old = [&] { return operand_value(instruction, destination, before, loaded); };
  switch (operation) {
    case Operation::kMove:
    case Operation::kLea:
    case Operation::kExchange:
      return source();
    case Operation::kMoveSigned: {
      const Value value = source();
      return value ? combine(operation, *value, 0, instruction.source.size) : value;
    }
    case Operation::kNot:
    case Operation::kNegate:
    case Operation::kSwapBytes: {
      const Value a = old();
      return a ? combine(operation, *a, 0, destination.size) : a;
    }
    default:
      break;
  }
  const Value a = instruction.multiplies_immediate
                      ? Value(static_cast<uint64_t>(instruction.immediate))
                      : old();
  const Value b = source();
  if (!a || !b) {
    return std::nullopt;
  }
  if (operation == Operation::kCompareExchange) {
    const Value expected = before.get(Register::kRax);
    if (!expected) {
      return std::nullopt;
    }
    return low_bytes(*a, destination.size) == low_bytes(*expected, destination.size) ? b : a;
  }
  return combine(operation, *a, *b, destination.size);
}

// Bytes that push and pop move: those of the stack access, which is the last of a push, the first
// of a pop.
uint64_t moved(const Instruction& instruction) {
  for (const Access& access : instruction) {
    if (access.stack) {
      return access.size;
    }
  }
  return 8;
}

// What is added to the stack pointer, where it is a constant.
std::optional<uint64_t> stack_change(const Instruction& instruction) {
  switch (instruction.operation) {
    case Operation::kPush:
    case Operation::kCall:
      return 0 - moved(instruction);
    case Operation::kPop:
      if (instruction.destination.is_register() && instruction.destination.reg == Register::kRsp) {
        return std::nullopt;
      }
      return moved(instruction);
    case Operation::kReturn:
      return moved(instruction) + static_cast<uint64_t>(instruction.immediate);
    default:
      return std::nullopt;
  }
}

// Two registers at once: rdx and rax.
void step_wide(const Instruction& instruction, RegisterFile& registers, Value loaded) {
  const unsigned size = instruction.source.size;
  const Value source = operand_value(instruction, instruction.source, registers, loaded);
  const Value low = registers.get(Register::kRax);
  const Value high = registers.get(Register::kRdx);
  registers.forget(instruction.writes);
  if (!source || !low) {
    return;
  }
  __extension__ using Wide = unsigned __int128;
  const auto set = [&](Register name, Wide value) {
    registers.set(name, low_bytes(static_cast<uint64_t>(value), size));
  };
  if (instruction.operation == Operation::kMultiplyWide) {
    const Wide product = Wide{low_bytes(*low, size)} * *source;
    set(Register::kRax, product);
    set(Register::kRdx, product >> (8 * size));
  } else if (instruction.operation == Operation::kSignFill) {
    registers.set(Register::kRax, *low);
    set(Register::kRdx, static_cast<uint64_t>(static_cast<int64_t>(sign_extend(*low, size)) >> 63));
  } else if (high && *source != 0) {
    const Wide number = Wide{low_bytes(*high, size)} << (8 * size) | low_bytes(*low, size);
    set(Register::kRax, number / *source);
    set(Register::kRdx, number % *source);
  }
}

void step_string(const Instruction& instruction, RegisterFile& registers) {
  uint64_t size = 0;
  Repeat repeat = Repeat::kOnce;
  for (const Access& access : instruction) {
    size = access.size;
    repeat = access.repeat;
    if (access.opaque || !access.address.wide) {
      registers.forget(instruction.writes);
      return;
    }
  }
  const Value count = repeat == Repeat::kOnce ? Value(1) : registers.get(Register::kRcx);
  const Value down = registers.get(Register::kDirection);
  if (repeat == Repeat::kUntil || !count || !down) {
    registers.forget(instruction.writes);
  } else {
    const uint64_t change = *down != 0 ? 0 - *count * size : *count * size;
    for (const Register pointer : {Register::kRsi, Register::kRdi}) {
      if ((instruction.writes & mask_of(pointer)) != 0 && registers.has(pointer)) {
        registers.set(pointer, registers.value(pointer) + change);
      }
    }
    // lods writes rax.
    registers.forget(instruction.writes & mask_of(Register::kRax));
  }
  if (repeat == Repeat::kCount) {
    registers.set(Register::kRcx, 0);
  }
}

}  // namespace

Value combine(Operation operation, uint64_t a, uint64_t b, unsigned size) {
  switch (operation) {
    case Operation::kMoveSigned:
      return sign_extend(a, size);
    case Operation::kNot:
      return ~a;
    case Operation::kNegate:
      return 0 - a;
    case Operation::kSwapBytes:
      return size >= 4 ? Value(__builtin_bswap64(a) >> (64 - 8 * size)) : std::nullopt;
    case Operation::kAdd:
    case Operation::kExchangeAdd:
      return a + b;
    case Operation::kSub:
      return a - b;
    case Operation::kAnd:
      return a & b;
    case Operation::kOr:
      return a | b;
    case Operation::kXor:
      return a ^ b;
    case Operation::kMultiply:
      return a * b;
    case Operation::kShiftLeft:
    case Operation::kShiftRight:
    case Operation::kShiftRightSigned:
      return shifted(operation, a, b, size);
    case Operation::kRotateLeft:
      return rotated(a, b, size);
    case Operation::kRotateRight:
      return rotated(a, 0 - b, size);
    default:
      return std::nullopt;
  }
}

RegisterMask changed_by_system_call(const RegisterFile& before) {
  constexpr uint64_t kSigreturn = 15;
  constexpr uint64_t kClone = 56;
  constexpr uint64_t kVfork = 58;
  constexpr uint64_t kExecve = 59;
  constexpr uint64_t kArchPrctl = 158;
  constexpr uint64_t kExecveat = 322;
  const auto number = before.get(Register::kRax);
  if (!number) {
    return kAllRegisters;
  }
  RegisterMask changed =
      mask_of(Register::kRax) | mask_of(Register::kRcx) | mask_of(Register::kR11);
  // A child may come back from these with a stack and a thread pointer of its own.
  constexpr uint64_t kClone3 = 435;
  if (*number == kSigreturn || *number == kExecve || *number == kExecveat || *number == kClone ||
      *number == kClone3 || *number == kVfork) {
    changed = kAllRegisters;
  } else if (*number == kArchPrctl) {
    changed |= mask_of(Register::kFsBase) | mask_of(Register::kGsBase);
  }
  return changed;
}

bool holds(Condition condition, uint64_t a, uint64_t b, unsigned size) {
  a = low_bytes(a, size);
  b = low_bytes(b, size);
  const auto left = static_cast<int64_t>(sign_extend(a, size));
  const auto right = static_cast<int64_t>(sign_extend(b, size));
  const auto difference = static_cast<int64_t>(sign_extend(low_bytes(a - b, size), size));
  switch (condition) {
    case Condition::kNone:
      break;
    case Condition::kEqual:
      return a == b;
    case Condition::kNotEqual:
      return a != b;
    case Condition::kAbove:
      return a > b;
    case Condition::kNotAbove:
      return a <= b;
    case Condition::kBelow:
      return a < b;
    case Condition::kNotBelow:
      return a >= b;
    case Condition::kSign:
      return difference < 0;
    case Condition::kNotSign:
      return difference >= 0;
    case Condition::kLess:
      return left < right;
    case Condition::kNotLess:
      return left >= right;
    case Condition::kGreater:
      return left > right;
    case Condition::kNotGreater:
      return left <= right;
  }
  return false;
}

void step_forward(const Instruction& instruction, RegisterFile& registers, Value loaded) {
  switch (instruction.operation) {
    case Operation::kClobber:
    case Operation::kCompareExchange:
      registers.forget(instruction.writes);
      return;
    case Operation::kCompare:
    case Operation::kTest:
      return;
    case Operation::kSystemCall:
      registers.forget(changed_by_system_call(registers));
      return;
    case Operation::kSetDirection:
      registers.set(Register::kDirection, static_cast<uint64_t>(instruction.immediate));
      return;
    case Operation::kString:
      step_string(instruction, registers);
      return;
    case Operation::kMultiplyWide:
    case Operation::kDivide:
    case Operation::kSignFill:
      step_wide(instruction, registers, loaded);
      return;
    case Operation::kLeave: {
      const Value frame = registers.get(Register::kRbp);
      registers.set_or_forget(Register::kRsp, frame ? Value(*frame + 8) : frame);
      registers.set_or_forget(Register::kRbp, loaded);
      return;
    }
    case Operation::kPush:
    case Operation::kCall:
    case Operation::kPop:
    case Operation::kReturn:
      if (const auto change = stack_change(instruction); change && registers.has(Register::kRsp)) {
        registers.set(Register::kRsp, registers.value(Register::kRsp) + *change);
      }
      if (instruction.operation == Operation::kPop && instruction.destination.is_register()) {
        write_register(instruction.destination, loaded, registers);
      }
      registers.forget(instruction.writes &
                       (mask_of(Register::kFsBase) | mask_of(Register::kGsBase)));
      return;
    default:
      break;
  }
  const Value value = result(instruction, registers, loaded);
  if ((instruction.operation == Operation::kExchange ||
       instruction.operation == Operation::kExchangeAdd) &&
      instruction.source.is_register()) {
    const Value old = operand_value(instruction, instruction.destination, registers, loaded);
    write_register(instruction.source, old, registers);
  }
  if (instruction.destination.is_register()) {
    write_register(instruction.destination, value, registers);
  }
}

Value stored_value(const Instruction& instruction, const RegisterFile& before, Value loaded) {
  const auto cut = [](Value value, unsigned size) {
    return value && size <= 8 ? Value(low_bytes(*value, size)) : std::nullopt;
  };
  switch (instruction.operation) {
    case Operation::kPush:
      return cut(operand_value(instruction, instruction.source, before, loaded),
                 static_cast<unsigned>(moved(instruction)));
    case Operation::kPop:
      return instruction.destination.is_memory() ? cut(loaded, instruction.destination.size)
                                                 : std::nullopt;
    case Operation::kCall:
      return instruction.next();
    case Operation::kClobber:
    case Operation::kString:
    case Operation::kSystemCall:
    case Operation::kCompare:
    case Operation::kTest:
      return std::nullopt;
    case Operation::kExchange:
      // Either operand may be the memory.
      return cut(instruction.destination.is_memory()
                     ? operand_value(instruction, instruction.source, before, loaded)
                     : operand_value(instruction, instruction.destination, before, loaded),
                 instruction.destination.size);
    default:
      return instruction.destination.is_memory()
                 ? cut(result(instruction, before, loaded), instruction.destination.size)
                 : std::nullopt;
  }
}

Value loaded_value(const Instruction& instruction, const RegisterFile& after) {
  Operand copy = instruction.destination;
  switch (instruction.operation) {
    case Operation::kMove:
      if (!instruction.source.is_memory()) {
        return std::nullopt;
      }
      copy.size = instruction.source.size;
      break;
    case Operation::kPop:
      break;
    case Operation::kLeave:
      return after.get(Register::kRbp);
    case Operation::kExchange:
    case Operation::kExchangeAdd:
      if (copy.is_memory()) {
        copy = instruction.source;
      } else if (!instruction.source.is_memory()) {
        return std::nullopt;
      }
      break;
    case Operation::kCompareExchange:
      if (!copy.is_memory()) {
        return std::nullopt;
      }
      copy = {Operand::Kind::kRegister, Register::kRax, copy.size, false};
      break;
    default:
      return std::nullopt;
  }
  return copy.is_register() ? operand_value(instruction, copy, after, {}) : std::nullopt;
}

void step_backward(const Instruction& instruction, RegisterFile& registers) {
  const RegisterFile after = registers;
  registers.forget(instruction.operation == Operation::kSystemCall ? kAllRegisters
                                                                   : instruction.writes);
  const Value stack = after.get(Register::kRsp);
  const Operand& destination = instruction.destination;
  const Operand& source = instruction.source;
  if (const auto change = stack_change(instruction)) {
    if (stack) {
      registers.set(Register::kRsp, *stack - *change);
    }
    return;
  }
  if (instruction.operation == Operation::kLeave) {
    if (stack) {
      registers.set(Register::kRbp, *stack - 8);
    }
    return;
  }
  if (!destination.is_register() || destination.size != 8 || !after.has(destination.reg)) {
    return;
  }
  const uint64_t value = after.value(destination.reg);
  const bool by_immediate = source.kind == Operand::Kind::kImmediate;
  // The other operand, when it still is what it was.
  const auto other = [&]() -> Value {
    if (by_immediate) {
      return static_cast<uint64_t>(instruction.immediate);
    }
    return source.is_register() && source.reg != destination.reg ? after.get(source.reg)
                                                                 : std::nullopt;
  };
  switch (instruction.operation) {
    case Operation::kMove:
      if (source.is_register() && source.size == 8) {
        registers.set(source.reg, value);
      }
      return;
    case Operation::kExchange:
      if (source.is_register()) {
        registers.set(source.reg, value);
        if (const Value swapped = after.get(source.reg)) {
          registers.set(destination.reg, *swapped);
        }
      }
      return;
    case Operation::kLea: {
      const Address& from = instruction.lea;
      if (!from.wide || from.base == Register::kNone || from.index != Register::kNone) {
        return;
      }
      registers.set(from.base, value - static_cast<uint64_t>(from.displacement));
      return;
    }
    case Operation::kAdd:
      if (const Value b = other()) {
        registers.set(destination.reg, value - *b);
      }
      return;
    case Operation::kSub:
      if (const Value b = other()) {
        registers.set(destination.reg, value + *b);
      }
      return;
    case Operation::kXor:
      if (const Value b = other()) {
        registers.set(destination.reg, value ^ *b);
      }
      return;
    case Operation::kNot:
      registers.set(destination.reg, ~value);
      return;
    case Operation::kNegate:
      registers.set(destination.reg, 0 - value);
      return;
    default:
      return;
  }
}

}  // namespace tsomon::x86
