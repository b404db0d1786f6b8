// What accesses have read and written, as far as their hits show it.
//
// Sources     - Registers, exact: what an instruction stores from registers (those at its hit), and
//               what it has read and left in a register, seen at the thread's next hit, straight on
//               in the same function. Locked instructions that return the old contents (xadd,
//               xchg, cmpxchg) have that next hit right after them.
//             - Contents of memory at the hit, before the instruction. They are what the
//               instruction reads unless somebody stores in between.
//                 exact    while the process's memory is the thread's alone: one thread, no memory
//                          shared with other processes (`alone`), and the hit is of the very
//                          instruction: signals are not delivered before it was carried out.
//                          (What debuggers and the kernel write into the process is seen by no
//                          probe, here as elsewhere.)
//                 assumed  otherwise; taken only on request (Values::kMemory), and counted.
// Check       Where registers show what was read, contents of memory that were read as well are
//             compared with it: `differed` says how often the assumption would have been wrong.
// Misses      Accesses of more than 8 bytes, repeated ones; locked instructions told by the probe
//             after them: what they have written.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "decoders/x86/registers.h"
#include "monitor/attach/hit.h"
#include "monitor/attach/plan.h"
#include "tso/model/trace.h"

namespace tsomon::attach {

enum class Values : uint8_t { kNone, kExact, kMemory };

// Of loads and locked instructions.
struct ValueCounts {
  uint64_t registers = 0;
  uint64_t memory = 0;    // exact
  uint64_t assumed = 0;   // from memory
  uint64_t compared = 0;  // both known,
  uint64_t differed = 0;  // ... and not the same
};

// An access whose end is not known yet.
struct PendingAccess {
  Event event;
  int64_t lo = 0;
  std::optional<uint64_t> read;
  std::optional<uint64_t> written;
  uint32_t function = Interner::kNone;  // of the instruction, when its values are of interest
  uint32_t instruction = 0;
  uint64_t stack = 0;
  x86::RegisterFile before;        // the instruction
  std::optional<uint64_t> memory;  // contents at the hit
  bool memory_exact = false;
};

// From the registers at this hit back to those after each access that has been passed since the
// last.
void see_registers(const Plan& plan, const Site& site, const Hit& hit,
                   std::vector<PendingAccess>& pending);

// Nothing more will show: sets `read` and `written`.
void conclude_values(const Plan& plan, Values values, std::vector<PendingAccess>& pending,
                     ValueCounts& counts);

}  // namespace tsomon::attach
