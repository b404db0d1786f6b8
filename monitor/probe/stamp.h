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
//              locked store is visible, or the buffer is empty, and the stamp waits for the load.
//
// So, with t the stamps of one thread in program order:
//   atomics    lo and hi are taken around the access: it executed inside [lo, hi].
//   plain      the hook runs before the access: the access lies in [stamp before, stamp after], the
//              two records with stamps around it in the thread's stream. The option
//              stamp_every=N says how many plain accesses lie between two stamps.
//   locks      one stamp while the lock is held: after it was taken, before it is given back. By
//              mutual exclusion the stamps of one lock are in the order of its critical sections.
//   fences     lo before, hi after the buffer is empty. That of an unlock ends with the thread's
//              next stamp: the return from the unlock is a load, which comes after the locked
//              instruction.
//
// Margin      Counters of different processors may differ by a bound that clock_meter.h measures
//             and the capture carries; readers add it. There is a time common to all processors,
//             so that a stamp s taken at time t has t <= s <= t + margin.
// In order    A stamp that is smaller than an earlier one of its thread (on another processor), or
//             than the last one under the lock that the thread has just taken, becomes that one, or
//             one more: last_stamps.h. With r the earlier stamp, taken at time u <= t, and s the
//             own one, t <= s <= max(r, s) <= max(u, t) + margin = t + margin: what is promised of
//             a stamp holds of the maximum, too. A lock is handed over, a thread started or joined
//             in more than one cycle, so it holds of r + 1.
// Cost        Some 60 cycles on a current AMD server inside a virtual machine
//             (docs/design/probe.md).
#pragma once

#include <cstdint>

namespace tsomon::probe {

inline uint64_t raw_stamp() {
  uint32_t low = 0;
  uint32_t high = 0;
  asm volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
  return (static_cast<uint64_t>(high) << 32) | low;
}

#ifdef TSOMON_CLOCK_TEST
// Tests let the processors disagree (skewed_clock.h).
extern bool clock_is_skewed;
uint64_t skewed_stamp();
inline uint64_t stamp() {
  return __builtin_expect(clock_is_skewed, 0) ? skewed_stamp() : raw_stamp();
}
#else
inline uint64_t stamp() { return raw_stamp(); }
#endif

// The stamp after a locked instruction or MFENCE.
inline uint64_t stamp_after_locked() {
  uint64_t loaded = 0;
  asm volatile("movq (%%rsp), %0" : "=r"(loaded) : : "memory");
  return stamp();
}

}  // namespace tsomon::probe
