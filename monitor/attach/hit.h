// A hit: one thread of the target came by a probe.
//
// Time        Nanoseconds of the kernel's CLOCK_MONOTONIC, read in the trap. It is one clock for
//             all processors whatever it is made of, so nothing depends on how good the time-stamp
//             counters are. The kernel reads it without a lock there, and says that such a reading
//             may be off while the clock's rate is being adjusted; kClockError bounds that: the
//             rate changes by at most 500 parts in a million, for at most the few milliseconds
//             between two updates.
// Order       With t the times of one thread's hits, in program order:
//               probe        the trap is taken before the instruction, its time is read before
//                            the kernel returns to carry the instruction out, and that return
//                            (IRET) is serialising: the access begins after t.
//               next hit     the thread traps again only after the access has retired, and the
//                            clock is read after a barrier that waits for earlier loads and for
//                            stores to be issued: the access is performed (a load) or issued (a
//                            store) before t of the next hit.
//             An access therefore lies in [t, next t], widened by kClockError.
// Buffers     Each trap also drains the store buffer of the thread that takes it. That is an effect
//             of watching, not of the program, so it is *not* told to the checkers as a fence: what
//             they say holds for the executions of the same accesses without the traps. Late
//             commits are not to be observed between two probes, they are concluded.
// Thread-safety: plain data.
#pragma once

#include <cstdint>
#include <optional>

#include "decoders/x86/registers.h"

namespace tsomon::attach {

inline constexpr int64_t kClockError = 4'000;  // nanoseconds

struct Hit {
  int64_t time = 0;
  uint32_t thread = 0;  // as the kernel numbers it
  uint32_t source = 0;  // number of the site, or of the watch point
  enum class Kind : uint8_t {
    kProbe,  // before its instruction
    kWatch,  // after the access
    kSleep,  // the thread gives its processor up by itself, or ends
  };
  Kind kind = Kind::kProbe;
  uint64_t ip = 0;  // of a watch point: after the instruction
  x86::RegisterFile registers;
  std::optional<uint64_t> memory;  // contents of a location, before the instruction
};

// The clock of hits, now.
int64_t hit_clock();

}  // namespace tsomon::attach
