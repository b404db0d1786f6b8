#include "decoders/pt/code/step_builder.h"

#include <algorithm>
#include <utility>

namespace tsomon::pt {
namespace {

bool gives_one_value(Step::Kind kind) {
  switch (kind) {
    case Step::Kind::kCompute:
    case Step::Kind::kCut:
    case Step::Kind::kIndexed:
    case Step::Kind::kLeaf:
    case Step::Kind::kLoad:
    case Step::Kind::kSelect:
      return true;
    default:
      return false;
  }
}

}  // namespace

using x86::Access;
using x86::Address;
using x86::Operation;
using x86::Register;
using x86::RegisterMask;
using StepKind = Step::Kind;

Step& StepBuilder::step(StepKind kind) {
  Step& made = made_.steps.emplace_back();
  made.kind = kind;
  made.instruction = at_;
  return made;
}

Step& StepBuilder::computed(StepKind kind) {
  Step& made = step(kind);
  made.to = static_cast<uint16_t>(made_.slots++);
  return made;
}

Ref StepBuilder::plus(Ref from, uint64_t more) {
  from.offset = static_cast<int64_t>(static_cast<uint64_t>(from.offset) + more);
  if (more != 0 && from.slot != kZeroSlot) {
    from.bytes = 8;
  }
  return from;
}

Ref StepBuilder::cut(Ref from, unsigned size) {
  if (from.slot == kZeroSlot) {
    return constant(low_bytes(static_cast<uint64_t>(from.offset), size));
  }
  if (size >= 8 || (from.offset == 0 && from.bytes <= size)) {
    return from;
  }
  Step& made = computed(StepKind::kCut);
  made.a = from;
  made.size = static_cast<uint8_t>(size);
  return {0, made.to, static_cast<uint8_t>(size)};
}

Ref StepBuilder::compute(Operation operation, Ref a, Ref b, unsigned size, unsigned operand) {
  if (size == 8 && b.slot == kZeroSlot && operation == Operation::kAdd) {
    return plus(a, static_cast<uint64_t>(b.offset));
  }
  if (size == 8 && b.slot == kZeroSlot && operation == Operation::kSub) {
    return plus(a, 0 - static_cast<uint64_t>(b.offset));
  }
  Step& made = computed(StepKind::kCompute);
  made.operation = operation;
  made.a = a;
  made.b = b;
  made.size = static_cast<uint8_t>(size);
  made.operand = static_cast<uint8_t>(operand);
  return {0, made.to, static_cast<uint8_t>(size)};
}

Ref StepBuilder::indexed(Ref a, Ref b, unsigned scale, bool internal) {
  if (b.slot == kZeroSlot) {
    return plus(a, static_cast<uint64_t>(b.offset) * scale);
  }
  Step& made = computed(StepKind::kIndexed);
  made.a = a;
  made.b = b;
  made.operand = static_cast<uint8_t>(scale);
  made.internal = internal;
  return {0, made.to, 8};
}

Ref StepBuilder::address(const Address& from, bool internal) {
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

Ref StepBuilder::load(const Access& access) {
  const Ref from = address(access.address);
  Step& made = computed(StepKind::kLoad);
  made.a = from;
  made.size = static_cast<uint8_t>(access.size);
  made.access = &access;
  return {0, made.to, made.size};
}

void StepBuilder::store(const Access& access, Ref value, bool recorded, bool pushed) {
  const Ref to = address(access.address);
  Step& made = step(StepKind::kStore);
  made.a = to;
  made.b = value;
  made.size = static_cast<uint8_t>(access.size);
  made.access = &access;
  made.recorded = recorded;
  made.pushed = pushed;
}

void StepBuilder::forget(RegisterMask names) {
  for (; names != 0; names &= names - 1) {
    const Ref leaf{0, computed(StepKind::kLeaf).to, 8};
    set(static_cast<Register>(__builtin_ctz(names)), leaf);
  }
}

// The changed registers. In an order in which none is overwritten that is still to be read, where
// there is one.
void StepBuilder::flush() {
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
    const StepKind kind = free != 0 ? StepKind::kSet : StepKind::kSetAtOnce;
    for (RegisterMask names = free != 0 ? free : changed_; names != 0; names &= names - 1) {
      const auto to = static_cast<uint16_t>(__builtin_ctz(names));
      const bool stack = kind == StepKind::kSet && to == static_cast<uint16_t>(Register::kRsp);
      if (kind == StepKind::kSet && !stack && write_at_once(to, registers_[to])) {
        continue;
      }
      Step& made = step(stack ? StepKind::kSetStack : kind);
      made.to = to;
      made.a = registers_[made.to];
    }
    changed_ &= free != 0 ? ~free : 0;
  }
  forget_changes();
}

// Whether the step that makes the value can put it into the register itself: what the register held
// before must not be read after it.
bool StepBuilder::write_at_once(uint16_t to, Ref value) {
  if (value.slot < kFirstTemporary || value.offset != 0) {
    return false;
  }
  const auto making = std::find_if(made_.steps.rbegin(), made_.steps.rend(), [&](const Step& step) {
    return step.to == value.slot && gives_one_value(step.kind);
  });
  if (making == made_.steps.rend()) {
    return false;
  }
  const auto behind = making.base();
  if (std::any_of(behind, made_.steps.end(), [&](const Step& step) {
        return step.a.slot == to || step.b.slot == to || step.to == to ||
               step.kind == StepKind::kComplex;
      })) {
    return false;
  }
  const auto rename = [&](Ref& ref) { ref.slot = ref.slot == value.slot ? to : ref.slot; };
  making->to = to;
  for (auto step = behind; step != made_.steps.end(); ++step) {
    rename(step->a);
    rename(step->b);
  }
  for (Ref& other : registers_) {
    rename(other);
  }
  return true;
}

void StepBuilder::forget_changes() {
  for (uint16_t i = 0; i < x86::kRegisters; ++i) {
    registers_[i] = {0, i, 8};
  }
  changed_ = 0;
}

BlockSteps StepBuilder::finish() {
  flush();
  return std::move(made_);
}

}  // namespace tsomon::pt
