// Where a path begins, goes on and stops, and what facts say of it.
#include "decoders/pt/memory/path_walk.h"

#include <algorithm>
#include <utility>

#include "decoders/pt/code/code.h"

namespace tsomon::pt {
namespace {

using x86::Condition;
using x86::Instruction;
using x86::Register;
using x86::RegisterFile;
using x86::RegisterMask;

constexpr size_t kNested = 8;  // signal handlers inside each other

SymbolicValue fact(uint64_t value) { return {value, 0, kViaFact}; }

}  // namespace

PathWalk::PathWalk(int process, const AccessOptions& options)
    : process_(process),
      options_(options),
      slots_(kFirstTemporary),
      stack_({options.frames_before, options.memory}),
      escape_analysis_(process, options.constants) {
  if (options.proofs != nullptr && options.constants != nullptr) {
    globals_.emplace(process, *options.proofs, *options.constants);
  }
  forget_registers(x86::kAllRegisters);
  std::copy_n(slots_.begin(), first_.size(), first_.begin());
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
  if (globals_) {
    globals_->forget_all();
  }
  settled_.clear();
  interrupted_.clear();
  returns_from_signal_ = false;
  has_target_ = false;
  tested_.condition = Condition::kNone;
  last_ = nullptr;
}

void PathWalk::elsewhere(uint64_t ip) {
  if (globals_) {
    globals_->forget_all();
  }
  const bool returns = std::exchange(returns_from_signal_, false);
  const auto ips = last_ == nullptr ? std::array<uint64_t, 2>{} : last_->goes_on_at();
  last_ = nullptr;
  has_target_ = false;
  tested_.condition = Condition::kNone;
  if (returns && ip != 0 && interrupted_.back().intact &&
      (interrupted_.back().ips[0] == ip || interrupted_.back().ips[1] == ip)) {
    // The kernel restores all but the bases of segments.
    const std::array<SymbolicValue, 2> bases{reg(Register::kFsBase), reg(Register::kGsBase)};
    std::copy(interrupted_.back().registers.begin(), interrupted_.back().registers.end(),
              slots_.begin());
    reg(Register::kFsBase) = bases[0];
    reg(Register::kGsBase) = bases[1];
    stack_ = std::move(interrupted_.back().stack);
    interrupted_.pop_back();
    stack_.forget_below(reg(Register::kRsp));
    store_by_others();
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
  enter(block);
  const Instruction* const first = block.instructions.data();
  size_t done = 0;
  for (; samples != samples_end; ++samples) {
    if (samples->instruction < done || samples->instruction >= block.instructions.size()) {
      continue;  // of no place before us
    }
    if (samples->instruction != done) {
      run(steps_of(first + done, first + samples->instruction));
      done = samples->instruction;
    }
    sample(samples->registers);
    if (samples->thread_pointer) {
      const SymbolicValue at = new_thread(true).thread_pointer;
      terms_.learn(at, *samples->thread_pointer, 8, kViaFact);
    }
  }
  run(steps_of(first + done, first + block.instructions.size()));
  last_ = &block;
}

// The code may say that nobody has a pointer into the frame that was there before.
void PathWalk::find_frame(uint64_t ip) {
  const auto size = escape_analysis_.return_address(ip);
  stack_.answer(size ? std::optional(stack_.stack_pointer() + *size) : std::nullopt);
}

void PathWalk::sample(const RegisterFile& registers) {
  for (RegisterMask left = registers.known; left != 0; left &= left - 1) {
    const auto name = static_cast<Register>(__builtin_ctz(left));
    SymbolicValue& now = reg(name);
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
    terms_.learn(target_, ip, 8, kViaFact);
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
  const SymbolicValue a = terms_.resolve(tested_.a);
  const SymbolicValue b = terms_.resolve(tested_.b);
  if (!a.known() && !b.known() && tested_.size < 8) {
    return;
  }
  const auto equal = [&] {
    if (a.known() && b.known()) {
      return;
    }
    SymbolicValue left = terms_.cut(a, tested_.size);
    SymbolicValue right = terms_.cut(b, tested_.size);
    (left.known() ? left : right).via |= kViaFact;
    terms_.equal(left, right);
  };
  const auto not_above = [&](uint64_t less) {
    const uint64_t most = b.offset & SymbolicValues::most_of(tested_.size);
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

}  // namespace tsomon::pt
