// What a system call of Linux (x86-64) writes into the program's memory, and whom it creates.
//
// Contract    Calls that are not in the table, or whose number is not known, may write anywhere and
//             create anybody. Every byte that the others may write is given.
// Relies on   What documented calls do. What is given is what the call itself does, until it
//             returns; requests that the kernel carries out later (io_submit, io_uring) are not
//             followed. A thread that ends writes to its own block and to the robust mutexes that
//             it still holds: not given.
// Thread-safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "decoders/x86/instruction.h"

namespace tsomon::pt {

// What is known of what a call that creates a thread gives it.
struct NewThread {
  x86::RegisterFile registers;  // before the call
  std::optional<uint64_t> flags;
  std::optional<uint64_t> thread_pointer;  // the base of fs, where the flags have CLONE_SETTLS
};

// What is known of the registers of a call: rdi, rsi, rdx, r10, r8, r9 as the arguments.
struct SystemCall {
  struct Argument {
    std::optional<uint64_t> value;
    bool own = false;  // a pointer into the thread's own stack
  };
  std::optional<uint64_t> number;
  std::array<Argument, 6> arguments;
  std::optional<NewThread> creates;  // of clone and clone3
};

struct KernelWrites {
  bool anywhere = false;
  std::vector<x86::ByteRange> ranges;  // besides what is on the thread's own stack
};

KernelWrites written_by(const SystemCall& call);
// Pages that it may put others in the place of, or give away until something is stored there:
// what is there from then on may be another's as well. Not those of a file's private mapping.
KernelWrites remapped_by(const SystemCall& call);

// Who runs in the program's memory from then on that did not before.
enum class Created : uint8_t {
  kNobody,
  kPerhapsThread,  // one of the process, or a failed try
  kOther,          // perhaps: another process in the same memory, or another program in this one
};
Created created_by(const SystemCall& call);

// Where clone3's structure has the flags and the thread pointer.
inline constexpr uint64_t kCloneFlagsAt = 0;
inline constexpr uint64_t kCloneThreadPointerAt = 56;
// Registers that a new thread has from its creator, as clone and clone3 pass them on.
inline constexpr x86::RegisterMask kPassedOn =
    x86::mask_of(x86::Register::kRbx) | x86::mask_of(x86::Register::kRdx) |
    x86::mask_of(x86::Register::kRbp) | x86::mask_of(x86::Register::kRsi) |
    x86::mask_of(x86::Register::kRdi) | x86::mask_of(x86::Register::kR8) |
    x86::mask_of(x86::Register::kR9) | x86::mask_of(x86::Register::kR10) |
    x86::mask_of(x86::Register::kR12) | x86::mask_of(x86::Register::kR13) |
    x86::mask_of(x86::Register::kR14) | x86::mask_of(x86::Register::kR15);
bool is_clone(uint64_t number);
bool is_clone3(uint64_t number);
// Whether the flags say that the new thread's fs base is the thread pointer of the call.
bool sets_thread_pointer(uint64_t flags);

// The thread does not come back.
bool ends_thread(const SystemCall& call);

}  // namespace tsomon::pt
