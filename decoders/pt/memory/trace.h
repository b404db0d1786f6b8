// Intel PT as a trace: what the checkers read.
//
// Purpose     Paths with their accesses become events: loads, stores, locked operations, full
//             fences, branches, units. Each lies in the interval of its block, narrowed by its
//             neighbours in the thread.
// Units       Calls of functions and what lies between markers (units.h). A unit that is open where
//             something is missing, or where the path goes on elsewhere (a signal handler), ends
//             there: it is incomplete.
// Unknown     An access whose address is not known, that a mask or a condition may have left out,
//             or that was begun before a signal handler and ended after it (rep), is no event; it
//             is counted, and the trace is then not complete. Accesses through the stack pointer
//             are left out, as memory of the thread itself; that holds for programs that keep to
//             themselves what is on their stacks. So are accesses that certainly go to frames of
//             the thread's stack that no pointer has left (kOwnStack), where only their place
//             relative to the stack pointer is known.
// Incomplete  Then the trace is `sampled` (tso/model/trace.h), since what is certain stays so.
//             Accesses and fences that are missing take orders away, and a unit that was cut off
//             has fewer of them. One thing a missing store would add: a load that it was forwarded
//             to looks as if it had read memory, which orders it before later stores of others, and
//             before later loads of its thread. So a load that comes after a store to an unknown
//             address, after a gap, the kernel or code that was not traced may have taken place at
//             any later time, until a fence or a locked operation has emptied the store buffer.
// Values      None: PT has no data.
// Memory      The whole trace.
// Complexity  O(n log n). Thread-safety: pure function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decoders/pt/code/units.h"
#include "decoders/pt/memory/accesses.h"
#include "tso/model/trace.h"

namespace tsomon::pt {

struct TraceOptions {
  UnitOptions units;
  std::vector<RegisterSample> samples;
  bool branches = false;
  bool memory = false;  // AccessOptions, as the next ones; of processes with one thread only
  bool frames_before = false;
  bool quick = false;    // registers_only
  bool partial = false;  // only a part of the program's code or threads was traced
  // Every thread that can write to the processes' memory was traced all the time: then values are
  // carried through memory where the paths prove that it has not changed (cross_thread_propagation.h).
  bool all_threads = false;
};

struct TraceCounts {
  uint64_t by_instruction = 0;  // accesses by what gave their address
  uint64_t forward = 0;
  uint64_t backward = 0;
  uint64_t through_stack = 0;   // values that were on the thread's stack meanwhile
  uint64_t through_memory = 0;  // ... in other memory
  uint64_t unknown = 0;
  uint64_t stack = 0;
  uint64_t loader = 0;
  uint64_t incomplete_units = 0;
  uint64_t placed_samples = 0;  // of TraceOptions::samples

  void add(const TraceCounts& more);
};

struct DecodedTrace {
  Trace trace;  // by the start of the intervals
  TraceCounts counts;
  std::vector<std::string> problems;  // what is missing, one line each
};

DecodedTrace make_trace(const Flow& flow, const TraceOptions& options = {});

}  // namespace tsomon::pt
