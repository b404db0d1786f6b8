// The steps of a block on PathWalk's state.
#include <bit>

#include "decoders/pt/memory/path_walk.h"
#include "decoders/x86/dataflow.h"

namespace tsomon::pt {
namespace {

using x86::AccessKind;
using x86::Operation;
using x86::Register;
using StepKind = Step::Kind;

}  // namespace

void PathWalk::run(const BlockSteps& block) {
  if (slots_.size() < block.slots) {
    slots_.resize(block.slots);
  }
  SymbolicValue* const slots = slots_.data();
  const auto at = [slots](Ref ref) {
    return SymbolicValue::read(slots[ref.slot]).plus(static_cast<uint64_t>(ref.offset));
  };
  const auto put = [slots](uint16_t to, SymbolicValue term) { term.write(slots[to]); };
  const Step* const end = block.steps.data() + block.steps.size();
  for (const Step* step = block.steps.data(); step != end; ++step) {
    switch (step->kind) {
      case StepKind::kCompute: {
        const SymbolicValue a = at(step->a);
        const SymbolicValue b = at(step->b);
        if ((a.node | b.node) == 0) {
          put(step->to, terms_.known(step->operation, a, b, step->size, step->operand));
          break;
        }
        const SymbolicValue made = terms_.make(step->operation, a, b, step->size, step->operand);
        const bool of_stack = stack_.owns(a.node) || stack_.owns(b.node);
        put(step->to, of_stack ? made_of_stack(*step, a, b, made) : made);
        break;
      }
      case StepKind::kCut: {
        const SymbolicValue a = at(step->a);
        if (a.known()) {
          put(step->to, {a.offset & SymbolicValues::most_of(step->size), 0, a.via});
          break;
        }
        const SymbolicValue made = terms_.cut(a, step->size);
        if (made.node != a.node) {
          leak(a);
        }
        put(step->to, made);
        break;
      }
      case StepKind::kIndexed: {
        const SymbolicValue a = at(step->a);
        const SymbolicValue b = terms_.resolve(at(step->b));
        put(step->to,
            b.known() ? SymbolicValue{a.offset + b.offset * step->operand, a.node, a.via | b.via}
                      : indexed(*step, a, b));
        break;
      }
      case StepKind::kLeaf:
        put(step->to, terms_.leaf(8));
        break;
      case StepKind::kLoad: {
        const SymbolicValue from = at(step->a);
        if (step->recorded) {
          record(from, *step->access);
        }
        put(step->to, load(from, step->size));
        break;
      }
      case StepKind::kRecord:
        record(at(step->a), *step->access);
        break;
      case StepKind::kTouch:
        record(at(step->a), *step->access);
        touch(at(step->a), step->access->size);
        break;
      case StepKind::kStore:
        if (step->recorded) {
          record(at(step->a), *step->access);
        }
        store(at(step->a), step->size, at(step->b), step->pushed);
        break;
      case StepKind::kStoreUnknown:
        record(at(step->a), *step->access);
        store_unknown(at(step->a), step->access->size);
        break;
      case StepKind::kOpaque:
        opaque(*step);
        break;
      case StepKind::kStackPointer:
        if (is_own(at(step->b))) {
          stack_.move(at(step->b), terms_);
        }
        move_stack(slots[step->a.slot], step->a.offset);
        break;
      case StepKind::kCall: {
        const SymbolicValue to = at(step->a);
        if (is_own(to)) {
          stack_.move(to, terms_);
          stack_.call(static_cast<int64_t>(to.offset));
        }
        break;
      }
      case StepKind::kReturn: {
        const SymbolicValue to = at(step->a);
        if (is_own(to)) {
          stack_.move(to, terms_);
          stack_.leave(static_cast<int64_t>(to.offset));
        }
        break;
      }
      case StepKind::kLeak:
        leak(at(step->a));
        break;
      case StepKind::kSet:
        put(step->to, at(step->a));
        for (; step + 1 != end && step[1].kind == StepKind::kSet; ++step) {
          put(step[1].to, at(step[1].a));
        }
        break;
      case StepKind::kSetStack:
        put(step->to, at(step->a));
        if (!ThreadStack::is_near(slots[step->to]) || !stack_.move_inside(slots[step->to])) {
          move_stack(reg(Register::kRsp), 0);
        }
        break;
      case StepKind::kSetAtOnce:
        set_registers(step, end);
        break;
      case StepKind::kComplex:
        complex(*step->instruction);
        break;
      case StepKind::kMultiplyWide:
        multiply_wide(*step);
        break;
      case StepKind::kTested:
        // Of known values a branch says nothing.
        if (at(step->a).node != 0 || at(step->b).node != 0) {
          tested_ = {at(step->a), at(step->b), step->instruction->condition, step->size,
                     !step->internal};
        }
        break;
      case StepKind::kDecide:
        decide(*step);
        break;
      case StepKind::kSelect:
        select(*step);
        break;
      case StepKind::kTarget:
        target_ = at(step->a);
        has_target_ = !target_.known();
        break;
      default:
        __builtin_unreachable();
    }
  }
}

// Made of pointers into the stack: one itself, or they go where they are not followed.
SymbolicValue PathWalk::made_of_stack(const Step& step, SymbolicValue a, SymbolicValue b,
                                      SymbolicValue made) {
  if (made.known() || step.internal || is_own(made)) {
    return made;
  }
  if (step.operation == Operation::kAnd && step.size == 8) {
    if (const auto pointer = aligned(a, b)) {
      return *pointer;
    }
  }
  leak(a);
  leak(b);
  return made;
}

// A pointer into the stack that is rounded down stays one, where its low bits are known.
std::optional<SymbolicValue> PathWalk::aligned(SymbolicValue pointer, SymbolicValue mask) const {
  const uint64_t low = ~mask.offset;
  if (!mask.known() || (low & (low + 1)) != 0 || !is_own(pointer)) {
    return std::nullopt;
  }
  const auto bits = terms_.low_bits(pointer, low);
  if (!bits) {
    return std::nullopt;
  }
  SymbolicValue made = pointer.plus(0 - *bits);
  made.via |= mask.via;
  return is_own(made) ? std::optional(made) : std::nullopt;
}

// With an index `b` that is not known.
SymbolicValue PathWalk::indexed(const Step& step, SymbolicValue a, SymbolicValue b) {
  const auto shift = static_cast<uint64_t>(std::countr_zero(static_cast<unsigned>(step.operand)));
  const SymbolicValue scaled =
      shift == 0 ? b : terms_.make(Operation::kShiftLeft, b, SymbolicValues::constant(shift), 8);
  const SymbolicValue made = terms_.make(Operation::kAdd, a, scaled, 8);
  if (!step.internal && !is_own(made)) {
    leak(a);
    leak(b);
  }
  return made;
}

void PathWalk::multiply_wide(const Step& step) {
  __extension__ using Wide = unsigned __int128;
  const SymbolicValue a = terms_.resolve(at(step.a));
  const SymbolicValue b = terms_.resolve(at(step.b));
  if (a.known() && b.known()) {
    const uint64_t most = SymbolicValues::most_of(step.size);
    const Wide product = Wide{a.offset & most} * (b.offset & most);
    slots_[step.to] = {static_cast<uint64_t>(product) & most, 0, a.via | b.via};
    slots_[step.to + 1U] = {static_cast<uint64_t>(product >> (8 * step.size)) & most, 0,
                            a.via | b.via};
    return;
  }
  leak(a);
  leak(b);
  slots_[step.to] = terms_.leaf(8);
  slots_[step.to + 1U] = terms_.leaf(8);
}

void PathWalk::decide(const Step& step) {
  const SymbolicValue a = terms_.resolve(at(step.a));
  const SymbolicValue b = terms_.resolve(at(step.b));
  decided_.reset();
  if (a.known() && b.known()) {
    decided_ = x86::holds(step.instruction->condition, a.offset, b.offset, step.size);
    decided_via_ = a.via | b.via;
  }
}

void PathWalk::select(const Step& step) {
  const SymbolicValue a = at(step.a);
  const SymbolicValue b = at(step.b);
  if (decided_) {
    slots_[step.to] = *decided_ ? b : a;
    slots_[step.to].via |= decided_via_;
    return;
  }
  leak(a);
  leak(b);
  slots_[step.to] = terms_.leaf(step.size);
}

void PathWalk::opaque(const Step& step) {
  if (step.recorded) {
    *place_++ = {{}, 0, false, false, false};
  }
  const SymbolicValue from = on_stack(at(step.a));
  const bool own = is_own(from);
  if (step.recorded) {
    place_[-1].stack = own && !step.internal;
  }
  if (step.recorded && step.access->kind == AccessKind::kLoad) {
    if (own) {
      stack_.leak_content(from, ThreadStack::kEverything);
    }
  } else if (own && step.internal) {
    stack_.forget_all();
    store_anywhere();
  } else if (own) {
    store_unknown(from, ThreadStack::kEverything);
  } else {
    store_anywhere();
  }
}

void PathWalk::set_registers(const Step*& step, const Step* end) {
  std::array<SymbolicValue, x86::kRegisters> values;
  const Step* const first = step;
  size_t count = 0;
  for (; step != end && step->kind == StepKind::kSetAtOnce; ++step) {
    values[count++] = at(step->a);
  }
  --step;
  for (size_t i = 0; i < count; ++i) {
    slots_[first[i].to] = values[i];
    if (first[i].to == static_cast<uint16_t>(Register::kRsp)) {
      move_stack(reg(Register::kRsp), 0);
    }
  }
}

// The stack pointer becomes `to` plus an offset. What is relative to it needs a node.
void PathWalk::move_stack(SymbolicValue& to, int64_t offset) {
  if (!ThreadStack::is_near(to.plus(static_cast<uint64_t>(offset)))) {
    to = terms_.leaf(8);
  }
  if (stack_.move_inside(to.plus(static_cast<uint64_t>(offset)))) {
    return;
  }
  if (to.known()) {
    const SymbolicValue leaf = terms_.leaf(8);
    terms_.learn(leaf, to.offset, 8, to.via);
    to = leaf;
  }
  terms_.name(to.node);
  stack_.move(to.plus(static_cast<uint64_t>(offset)), terms_);
}

}  // namespace tsomon::pt
