#include "decoders/pt/path_walk.h"

#include <algorithm>
#include <bit>

#include "decoders/pt/code.h"
#include "decoders/x86/dataflow.h"

namespace tsomon::pt {
namespace {

using x86::Access;
using x86::AccessKind;
using x86::Address;
using x86::Branch;
using x86::Condition;
using x86::Instruction;
using x86::Operation;
using x86::Register;
using x86::RegisterFile;
using x86::RegisterMask;
using Kind = Step::Kind;

constexpr size_t kNested = 8;  // signal handlers inside each other

Term fact(uint64_t value) { return {value, 0, kViaFact}; }

}  // namespace

PathWalk::PathWalk(int process, const AccessOptions& options)
    : process_(process),
      options_(options),
      slots_(kFirstTemporary),
      stack_({options.frames_before, options.memory}),
      closed_frames_(process, options.constants) {
  forget_registers(x86::kAllRegisters);
}

void PathWalk::forget_registers(RegisterMask names) {
  for (RegisterMask left = names; left != 0; left &= left - 1) {
    slots_[static_cast<size_t>(__builtin_ctz(left))] = terms_.leaf(8);
  }
  if ((names & x86::mask_of(Register::kRsp)) != 0) {
    const uint32_t node = reg(Register::kRsp).node;
    terms_.name(node);
    stack_.restart(node);
  }
}

void PathWalk::gap() {
  forget_registers(x86::kAllRegisters);
  memory_.words.clear();
  settled_.clear();
  interrupted_.clear();
  returns_from_signal_ = false;
  has_target_ = false;
  tested_.condition = Condition::kNone;
  last_ = nullptr;
}

void PathWalk::elsewhere(uint64_t ip) {
  const auto goes_on_at = [](const CodeBlock* block) -> std::array<uint64_t, 2> {
    if (block == nullptr) {
      return {0, 0};
    }
    const Instruction& last = block->instructions.back();
    switch (last.branch) {
      case Branch::kNone:
      case Branch::kFar:
        return {last.next(), 0};
      case Branch::kConditional:
        return {last.next(), last.target};
      case Branch::kJump:
      case Branch::kCall:
        return {last.target, 0};
      default:
        return {0, 0};
    }
  };
  const bool returns = std::exchange(returns_from_signal_, false);
  const auto ips = goes_on_at(last_);
  last_ = nullptr;
  has_target_ = false;
  tested_.condition = Condition::kNone;
  if (returns && ip != 0 && interrupted_.back().intact &&
      (interrupted_.back().ips[0] == ip || interrupted_.back().ips[1] == ip)) {
    std::copy(interrupted_.back().registers.begin(), interrupted_.back().registers.end(),
              slots_.begin());
    stack_ = std::move(interrupted_.back().stack);
    interrupted_.pop_back();
    stack_.forget_below(reg(Register::kRsp));
    store_anywhere();
    return;
  }
  if (returns) {
    interrupted_.pop_back();
  }
  if (interrupted_.size() == kNested) {
    interrupted_.pop_front();
  }
  Interrupted& interrupted = interrupted_.emplace_back(Interrupted{{}, stack_, ips, 0, true});
  std::copy_n(slots_.begin(), x86::kRegisters, interrupted.registers.begin());
  // Neither handlers nor other code of the thread have another thread pointer.
  forget_registers(x86::kAllRegisters & ~x86::mask_of(Register::kFsBase));
  interrupted.frame = reg(Register::kRsp).node;
  memory_.words.clear();
}

void PathWalk::block(const CodeBlock& block, const PlacedSample* samples,
                     const PlacedSample* samples_end) {
  block_ip_ = block.ip();
  branch_to(block_ip_);
  returns_from_signal_ = false;
  if (stack_.asks_for_frame()) {
    find_frame(block_ip_);
  }
  if (samples == samples_end) {
    run(block.steps);
  } else {
    const Instruction* const first = block.instructions.data();
    size_t done = 0;
    for (; samples != samples_end; ++samples) {
      if (samples->instruction != done) {
        run(steps_of(first + done, first + samples->instruction));
        done = samples->instruction;
      }
      sample(samples->registers);
    }
    run(steps_of(first + done, first + block.instructions.size()));
  }
  last_ = &block;
}

// The code may say that nobody has a pointer into the frame that was there before.
void PathWalk::find_frame(uint64_t ip) {
  const auto size = closed_frames_.return_address(ip);
  stack_.answer(size ? std::optional(stack_.stack_pointer() + *size) : std::nullopt);
}

void PathWalk::sample(const RegisterFile& registers) {
  for (RegisterMask left = registers.known; left != 0; left &= left - 1) {
    const auto name = static_cast<Register>(__builtin_ctz(left));
    Term& now = reg(name);
    if (now.known()) {
      continue;
    }
    terms_.learn(now, registers.value(name), 8, kViaFact);
    if (!stack_.owns(now.node)) {
      now = fact(registers.value(name));
    }
  }
}

void PathWalk::written(const Instruction& instruction, uint64_t value) {
  if (instruction.ptwrite && instruction.source.is_register() && instruction.source.size == 8) {
    RegisterFile one;
    one.set(instruction.source.reg, value);
    sample(one);
  }
}

// What going on at `ip` says of what the branch before depended on.
void PathWalk::branch_to(uint64_t ip) {
  if (std::exchange(has_target_, false)) {
    terms_.equal(target_, fact(ip));
  }
  const Condition condition = std::exchange(tested_.condition, Condition::kNone);
  if (condition == Condition::kNone || last_ == nullptr ||
      (tested_.a.known() && tested_.b.known())) {
    return;
  }
  const Instruction& branch = last_->instructions.back();
  if (branch.target == branch.next() || (ip != branch.target && ip != branch.next())) {
    return;
  }
  const bool taken = ip == branch.target;
  const Term a = terms_.resolve(tested_.a);
  const Term b = terms_.resolve(tested_.b);
  if (!a.known() && !b.known() && tested_.size < 8) {
    return;
  }
  const auto equal = [&] {
    if (a.known() && b.known()) {
      return;
    }
    Term left = terms_.cut(a, tested_.size);
    Term right = terms_.cut(b, tested_.size);
    (left.known() ? left : right).via |= kViaFact;
    terms_.equal(left, right);
  };
  const auto not_above = [&](uint64_t less) {
    const uint64_t most = b.offset & Terms::most_of(tested_.size);
    if (b.known() && !a.known() && tested_.compared && most >= less) {
      terms_.bound(terms_.cut(a, tested_.size), most - less);
    }
  };
  switch (condition) {
    case Condition::kEqual:
      return taken ? equal() : void();
    case Condition::kNotEqual:
      return taken ? void() : equal();
    case Condition::kAbove:
      return taken ? void() : not_above(0);
    case Condition::kNotAbove:
      return taken ? not_above(0) : void();
    case Condition::kBelow:
      return taken ? not_above(1) : void();
    case Condition::kNotBelow:
      return taken ? void() : not_above(1);
    default:
      return;
  }
}

void PathWalk::run(const BlockSteps& block) {
  if (slots_.size() < block.slots) {
    slots_.resize(block.slots);
  }
  Term* const slots = slots_.data();
  const auto at = [slots](Ref ref) {
    return slots[ref.slot].plus(static_cast<uint64_t>(ref.offset));
  };
  const Step* const end = block.steps.data() + block.steps.size();
  for (const Step* step = block.steps.data(); step != end; ++step) {
    switch (step->kind) {
      case Kind::kCompute: {
        const Term a = at(step->a);
        const Term b = at(step->b);
        Term made = terms_.make(step->operation, a, b, step->size, step->operand);
        if (!step->internal && !made.known() && !is_own(made) && !aligned(*step, a, b, made)) {
          leak(a);
          leak(b);
        }
        slots[step->to] = made;
        break;
      }
      case Kind::kCut: {
        const Term a = at(step->a);
        const Term made = terms_.cut(a, step->size);
        if (made.node != a.node) {
          leak(a);
        }
        slots[step->to] = made;
        break;
      }
      case Kind::kIndexed: {
        const Term a = at(step->a);
        const Term b = terms_.resolve(at(step->b));
        if (b.known()) {
          slots[step->to] = a.plus(b.offset * step->operand);
          slots[step->to].via |= b.via;
          break;
        }
        const Term scaled =
            step->operand == 1 ? b
                               : terms_.make(Operation::kShiftLeft, b,
                                             Terms::constant(static_cast<uint64_t>(std::countr_zero(
                                                 static_cast<unsigned>(step->operand)))),
                                             8);
        const Term made = terms_.make(Operation::kAdd, a, scaled, 8);
        if (!step->internal && !is_own(made)) {
          leak(a);
          leak(b);
        }
        slots[step->to] = made;
        break;
      }
      case Kind::kLeaf:
        slots[step->to] = terms_.leaf(8);
        break;
      case Kind::kLoad: {
        const Term from = at(step->a);
        if (step->recorded) {
          record(from, *step->access);
        }
        slots[step->to] = load(from, step->size);
        break;
      }
      case Kind::kRecord:
        record(at(step->a), *step->access);
        break;
      case Kind::kTouch:
        record(at(step->a), *step->access);
        touch(at(step->a), step->access->size);
        break;
      case Kind::kStore:
        if (step->recorded) {
          record(at(step->a), *step->access);
        }
        store(at(step->a), step->size, at(step->b), step->pushed);
        break;
      case Kind::kStoreUnknown:
        record(at(step->a), *step->access);
        store_unknown(at(step->a), step->access->size);
        break;
      case Kind::kOpaque:
        opaque(*step);
        break;
      case Kind::kStackPointer:
        if (is_own(at(step->b))) {
          stack_.move(at(step->b), terms_);
        }
        move_stack(slots[step->a.slot], step->a.offset);
        break;
      case Kind::kCall:
        if (is_own(at(step->a))) {
          stack_.move(at(step->a), terms_);
          stack_.call(static_cast<int64_t>(at(step->a).offset));
        }
        break;
      case Kind::kReturn:
        if (is_own(at(step->a))) {
          stack_.move(at(step->a), terms_);
          stack_.leave(static_cast<int64_t>(at(step->a).offset));
        }
        break;
      case Kind::kLeak:
        leak(at(step->a));
        break;
      case Kind::kSet:
        slots[step->to] = at(step->a);
        for (; step + 1 != end && step[1].kind == Kind::kSet; ++step) {
          slots[step[1].to] = at(step[1].a);
        }
        break;
      case Kind::kSetStack:
        slots[step->to] = at(step->a);
        move_stack(reg(Register::kRsp), 0);
        break;
      case Kind::kSetAtOnce:
        set_registers(step, end);
        break;
      case Kind::kComplex:
        complex(*step->instruction);
        break;
      case Kind::kTested:
        tested_ = {at(step->a), at(step->b), step->instruction->condition, step->size,
                   !step->internal};
        break;
      case Kind::kDecide:
        decide(*step);
        break;
      case Kind::kSelect:
        select(*step);
        break;
      case Kind::kTarget:
        target_ = at(step->a);
        has_target_ = true;
        break;
    }
  }
}

// A pointer into the stack that is rounded down stays one, where the stack pointer is known.
bool PathWalk::aligned(const Step& step, Term pointer, Term mask, Term& made) const {
  const Term now = terms_.settled(pointer);
  if (step.operation != Operation::kAnd || step.size != 8 || !is_own(pointer) || !mask.known() ||
      !now.known()) {
    return false;
  }
  made = pointer.plus((now.offset & mask.offset) - now.offset);
  made.via |= now.via | mask.via;
  return is_own(made);
}

void PathWalk::decide(const Step& step) {
  const Term a = terms_.resolve(at(step.a));
  const Term b = terms_.resolve(at(step.b));
  decided_.reset();
  if (a.known() && b.known()) {
    decided_ = x86::holds(step.instruction->condition, a.offset, b.offset, step.size);
    decided_via_ = a.via | b.via;
  }
}

void PathWalk::select(const Step& step) {
  const Term a = at(step.a);
  const Term b = at(step.b);
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
    places_.push_back({{}, 0, false, false});
  }
  const Term from = on_stack(at(step.a));
  const bool own = is_own(from);
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
  std::array<Term, x86::kRegisters> values;
  const Step* const first = step;
  size_t count = 0;
  for (; step != end && step->kind == Kind::kSetAtOnce; ++step) {
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
void PathWalk::move_stack(Term& to, int64_t offset) {
  if (!ThreadStack::is_near(to.plus(static_cast<uint64_t>(offset)))) {
    to = terms_.leaf(8);
  }
  if (stack_.move_inside(to.plus(static_cast<uint64_t>(offset)))) {
    return;
  }
  if (to.known()) {
    const Term leaf = terms_.leaf(8);
    terms_.learn(leaf, to.offset, 8, to.via);
    to = leaf;
  }
  terms_.name(to.node);
  stack_.move(to.plus(static_cast<uint64_t>(offset)), terms_);
}

void PathWalk::complex(const Instruction& instruction) {
  if (instruction.operation == Operation::kString) {
    string(instruction);
    return;
  }
  if (instruction.operation == Operation::kSystemCall) {
    system_call();
    return;
  }
  uint32_t via = 0;
  x86::Value loaded;
  RegisterMask addressed = 0;
  for (const Access& access : instruction) {
    const Address& from = access.address;
    addressed |= from.registers();
    Term address = Terms::constant(static_cast<uint64_t>(from.displacement));
    const auto add = [&](Register name, unsigned scale) {
      if (name != Register::kNone) {
        const Term scaled = terms_.make(Operation::kMultiply, reg(name), Terms::constant(scale), 8);
        address = terms_.make(Operation::kAdd, address, scale == 1 ? reg(name) : scaled, 8);
      }
    };
    add(from.base, 1);
    add(from.index, from.scale);
    if (!from.wide) {
      address = terms_.cut(address, 4);
    }
    add(from.segment, 1);
    record(address, access);
    const Term value = load(address, access.size);
    if (value.known()) {
      loaded = value.offset;
      via |= value.via;
    }
  }
  RegisterFile file;
  for (RegisterMask left = instruction.reads; left != 0; left &= left - 1) {
    const auto name = static_cast<Register>(__builtin_ctz(left));
    const Term value = terms_.resolve(reg(name));
    if (value.known()) {
      file.set(name, value.offset);
      via |= value.via;
    }
  }
  step_forward(instruction, file, loaded);
  // What the results are made of.
  for (RegisterMask left = instruction.reads & ~(addressed & ~instruction.writes); left != 0;
       left &= left - 1) {
    leak(reg(static_cast<Register>(__builtin_ctz(left))));
  }
  for (RegisterMask left = instruction.writes; left != 0; left &= left - 1) {
    const auto name = static_cast<Register>(__builtin_ctz(left));
    reg(name) = file.has(name) ? Term{file.value(name), 0, via} : terms_.leaf(8);
  }
}

void PathWalk::string(const Instruction& instruction) {
  const Term count = terms_.resolve(reg(Register::kRcx));
  const Term down = terms_.resolve(reg(Register::kDirection));
  for (const Access& access : instruction) {
    const Term address =
        reg(access.address.base).plus(static_cast<uint64_t>(access.address.displacement));
    Place place;
    place.address = address;
    place.own = is_own(address) && stack_.is_private(address);
    place.followed = !access.opaque && access.repeat != x86::Repeat::kUntil &&
                     access.address.segment == Register::kNone && access.address.wide;
    const bool once = access.repeat == x86::Repeat::kOnce;
    if (!once) {
      repeats_.push_back({count, down});
      place.repeats = static_cast<uint32_t>(repeats_.size());
    }
    places_.push_back(place);
    const bool up = down.known() && down.offset == 0;
    const bool stores = access.kind != AccessKind::kLoad;
    if (place.followed && once) {
      stores ? store_unknown(address, access.size) : touch(address, access.size);
    } else if (place.followed && up && count.known() && count.offset < (uint64_t{1} << 32)) {
      const uint64_t size = count.offset * access.size;
      if (size != 0) {
        stores ? store_unknown(address, size) : touch(address, size);
      }
    } else {
      leak(address);
      if (stores) {
        if (is_own(address)) {
          stack_.forget_all();
        }
        store_anywhere();
      }
    }
  }
  RegisterFile file;
  if (count.known()) {
    file.set(Register::kRcx, count.offset);
  }
  if (down.known()) {
    file.set(Register::kDirection, down.offset);
  }
  // Pointers only move.
  file.set(Register::kRsi, 0);
  file.set(Register::kRdi, 0);
  step_forward(instruction, file);
  const uint32_t via = count.via | down.via;
  for (RegisterMask left = instruction.writes; left != 0; left &= left - 1) {
    const auto name = static_cast<Register>(__builtin_ctz(left));
    if (!file.has(name)) {
      leak(reg(name));
      reg(name) = terms_.leaf(8);
    } else if (name == Register::kRsi || name == Register::kRdi) {
      reg(name) = reg(name).plus(file.value(name));
      reg(name).via |= via;
    } else {
      reg(name) = {file.value(name), 0, via};
    }
  }
}

void PathWalk::system_call() {
  constexpr uint64_t kSigreturn = 15;
  const Term number = terms_.resolve(reg(Register::kRax));
  RegisterFile file;
  if (number.known()) {
    file.set(Register::kRax, number.offset);
  }
  const Term stack = reg(Register::kRsp);
  if (number.known() && number.offset == kSigreturn && !interrupted_.empty() &&
      stack.node == interrupted_.back().frame && stack.offset == 8) {
    returns_from_signal_ = true;
  } else {
    for (const Register argument : {Register::kRdi, Register::kRsi, Register::kRdx, Register::kR10,
                                    Register::kR8, Register::kR9}) {
      leak(reg(argument));
    }
    store_anywhere();
  }
  RegisterMask changed = changed_by_system_call(file);
  if (returns_from_signal_) {
    changed = 0;  // decided by where the path goes on
  }
  forget_registers(changed);
}

}  // namespace tsomon::pt
