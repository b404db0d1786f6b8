// The registers and the memory of a process that is traced.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sys/uio.h>
#include <sys/user.h>

#include "decoders/x86/registers.h"

namespace tsomon::testing {

// Bytes that were read.
inline size_t read_memory(int pid, uint64_t address, void* to, size_t size) {
  const iovec here{to, size};
  const iovec there{reinterpret_cast<void*>(address), size};
  const ssize_t got = ::process_vm_readv(pid, &here, 1, &there, 1, 0);
  return got < 0 ? 0 : static_cast<size_t>(got);
}

inline x86::RegisterFile register_file(const user_regs_struct& from) {
  x86::RegisterFile file;
  const uint64_t general[] = {from.rax, from.rcx, from.rdx, from.rbx, from.rsp, from.rbp,
                              from.rsi, from.rdi, from.r8,  from.r9,  from.r10, from.r11,
                              from.r12, from.r13, from.r14, from.r15};
  for (unsigned i = 0; i < 16; ++i) {
    file.set(static_cast<x86::Register>(i), general[i]);
  }
  file.set(x86::Register::kFsBase, from.fs_base);
  file.set(x86::Register::kGsBase, from.gs_base);
  file.set(x86::Register::kDirection, (from.eflags >> 10) & 1U);
  return file;
}

}  // namespace tsomon::testing
