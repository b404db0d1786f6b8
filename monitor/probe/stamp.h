// Time stamps: what orders a stamp with the access it stamps.
//
// A stamp is   lfence ; rdtsc ; lfence.
//   Before it  LFENCE completes only when every earlier instruction has, and RDTSC does not begin
//              before (Intel SDM vol. 2B, RDTSC and LFENCE). An earlier load therefore has its
//              value, an earlier store has executed: it sits in the store buffer with address and
//              data, which is what an event of kind "store" means (its issue). Nothing is said
//              about its commit, and the stamp does not drain the buffer, so the order in which
//              stores reach memory is not disturbed.
//   After it   LFENCE lets no later instruction begin before the earlier ones, RDTSC among them,
//              have completed. Hence an access after the stamp executes after the counter was read.
//   AMD        Both hold where LFENCE is dispatch serialising, which Linux makes it wherever the
//              processor has the switch, and which Zen 3 and later always are.
//   RDTSCP     would do in the place of the first two, but virtual machines hide it, and it takes
//              longer (55 against 49 cycles on an AMD EPYC of the Zen 5 kind).
//   Locked     A locked instruction and MFENCE are ordered before every later load. The stamp that
//   and fences follows them comes after a dummy load: the load cannot be performed before the
//   locked
//              store is visible, or the buffer is empty, and the stamp waits for the load.
//
// So, with t the stamps of one thread in program order:
//   atomics    lo and hi are taken around the access: it executed inside [lo, hi].
//   plain      the hook runs before the access: the access lies in [stamp before, stamp after], the
//              two records with stamps around it in the thread's stream. The option
//              stamp_every=N says how many plain accesses lie between two stamps.
//   locks      one stamp while the lock is held: after it was taken, before it is given back. By
//              mutual exclusion the stamps of one lock are in the order of its critical sections.
//   fences     lo before, hi after the buffer is empty. That of an unlock ends with the thread's
//   next
//              stamp: the return from the unlock is a load, which comes after the locked
//              instruction.
//
// Margin      None is added. Counters of different processors are compared directly; clock.h says
//             when that is allowed.
// Cost        Some 60 cycles on a current AMD server inside a virtual machine (docs/probe.md).
#pragma once

#include <cstdint>

namespace tsomon::probe {

inline uint64_t stamp() {
  uint32_t low = 0;
  uint32_t high = 0;
  asm volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
  return (static_cast<uint64_t>(high) << 32) | low;
}

// The stamp after a locked instruction or MFENCE.
inline uint64_t stamp_after_locked() {
  uint64_t loaded = 0;
  asm volatile("movq (%%rsp), %0" : "=r"(loaded) : : "memory");
  return stamp();
}

}  // namespace tsomon::probe
