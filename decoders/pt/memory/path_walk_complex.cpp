// Instructions that PathWalk takes as a whole: string instructions, system calls, and those with
// several results.
#include <algorithm>

#include "decoders/pt/memory/path_walk.h"
#include "decoders/x86/dataflow.h"

namespace tsomon::pt {
namespace {

using x86::Access;
using x86::AccessKind;
using x86::Address;
using x86::Instruction;
using x86::Operation;
using x86::Register;
using x86::RegisterFile;
using x86::RegisterMask;

}  // namespace

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
    SymbolicValue address = SymbolicValues::constant(static_cast<uint64_t>(from.displacement));
    const auto add = [&](Register name, unsigned scale) {
      if (name != Register::kNone) {
        const SymbolicValue scaled =
            terms_.make(Operation::kMultiply, reg(name), SymbolicValues::constant(scale), 8);
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
    const SymbolicValue value = load(address, access.size);
    if (value.known()) {
      loaded = value.offset;
      via |= value.via;
    }
  }
  RegisterFile file;
  for (RegisterMask left = instruction.reads; left != 0; left &= left - 1) {
    const auto name = static_cast<Register>(__builtin_ctz(left));
    const SymbolicValue value = terms_.resolve(reg(name));
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
    reg(name) = file.has(name) ? SymbolicValue{file.value(name), 0, via} : terms_.leaf(8);
  }
}

void PathWalk::string(const Instruction& instruction) {
  const SymbolicValue count = terms_.resolve(reg(Register::kRcx));
  const SymbolicValue down = terms_.resolve(reg(Register::kDirection));
  for (const Access& access : instruction) {
    const SymbolicValue address =
        reg(access.address.base).plus(static_cast<uint64_t>(access.address.displacement));
    Place place;
    place.address = address;
    place.stack = is_own(address);
    place.own = place.stack && stack_.is_private(address);
    place.followed = !access.opaque && access.repeat != x86::Repeat::kUntil &&
                     access.address.segment == Register::kNone && access.address.wide;
    const bool once = access.repeat == x86::Repeat::kOnce;
    if (!once) {
      repeats_.push_back({count, down});
      place.repeats = static_cast<uint32_t>(repeats_.size());
    }
    *place_++ = place;
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

// Before a call; `in_memory`: rdi points to what clone has in registers.
PathWalk::NewThreadTerms PathWalk::new_thread(bool in_memory) {
  NewThreadTerms made;
  std::copy_n(slots_.begin(), made.registers.size(), made.registers.begin());
  made.flags = reg(Register::kRdi);
  made.thread_pointer = reg(Register::kR8);
  if (in_memory) {
    const SymbolicValue at = on_stack(reg(Register::kRdi));
    const auto word = [&](uint64_t offset) {
      const SymbolicValue place = at.plus(offset);
      return is_own(place) ? stack_.load(place, 8, terms_) : terms_.leaf(8);
    };
    made.flags = word(kCloneFlagsAt);
    made.thread_pointer = word(kCloneThreadPointerAt);
  }
  return made;
}

void PathWalk::system_call() {
  constexpr uint64_t kSigreturn = 15;
  const SymbolicValue number = terms_.resolve(reg(Register::kRax));
  RegisterFile file;
  if (number.known()) {
    file.set(Register::kRax, number.offset);
  }
  constexpr std::array<Register, 6> kArguments{Register::kRdi, Register::kRsi, Register::kRdx,
                                               Register::kR10, Register::kR8,  Register::kR9};
  const bool creates = number.known() && (is_clone(number.offset) || is_clone3(number.offset));
  if (options_.reach || globals_) {
    Call call;
    call.number = number;
    SystemCall known;
    known.number = number.known() ? std::optional(number.offset) : std::nullopt;
    for (size_t i = 0; i < kArguments.size(); ++i) {
      const SymbolicValue argument = on_stack(reg(kArguments[i]));
      call.arguments[i] = argument;
      call.own[i] = is_own(argument);
      const SymbolicValue value = terms_.settled(argument);
      known.arguments[i] = {value.known() ? std::optional(value.offset) : std::nullopt,
                            call.own[i]};
    }
    if (creates) {
      call.creates = new_thread(is_clone3(number.offset));
    }
    if (options_.reach) {
      calls_.push_back(call);
    }
    if (globals_) {
      globals_->store(written_by(known));
    }
  }
  const SymbolicValue stack = reg(Register::kRsp);
  if (number.known() && number.offset == kSigreturn && !interrupted_.empty() &&
      stack.node == interrupted_.back().frame && stack.offset == 8) {
    returns_from_signal_ = true;
  } else {
    for (const Register argument : kArguments) {
      leak(reg(argument));
    }
    if (creates) {
      for (RegisterMask left = kPassedOn; left != 0; left &= left - 1) {
        leak(slots_[static_cast<size_t>(__builtin_ctz(left))]);
      }
    }
    store_by_others();
  }
  RegisterMask changed = changed_by_system_call(file);
  if (returns_from_signal_) {
    changed = 0;  // decided by where the path goes on
  } else if (creates && globals_) {
    // All threads have paths of their own: this one's goes on with the creator.
    changed =
        x86::mask_of(Register::kRax) | x86::mask_of(Register::kRcx) | x86::mask_of(Register::kR11);
  }
  forget_registers(changed);
}

}  // namespace tsomon::pt
