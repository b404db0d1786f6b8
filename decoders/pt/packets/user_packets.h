// A trace of kernel and user code as the trace of the user code alone.
//
// Purpose     Kernel code has no file to follow it through. Its packets are taken out: the stream
//             becomes what the processor would have written with the kernel excluded, so that only
//             the kernel's instructions are missing and no user code is lost.
// Method      A TIP into the kernel (a system call, or an interrupt with its FUP) becomes a TIP.PGD
//             without address, the TIP back a TIP.PGE; branches, addresses, PTWRITE and PEBS of the
//             kernel go; time and loss stay. Addresses are written in full.
// Calls       What the kernel calls and returns from is balanced on the processor's stack of
//             calls or clears it; a return of user code that stays compressed is to the address
//             that the traced call says.
// Errors      None: from the first byte that is no packet to the next PSB the stream is copied.
// Complexity  One pass; the result is at most 5 times as long.
// Thread-safety: pure function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tsomon::pt {

// Code in the upper half of the address space.
inline constexpr bool is_kernel(uint64_t ip) { return ip >> 63 != 0; }

std::string user_packets(std::string_view bytes);

}  // namespace tsomon::pt
