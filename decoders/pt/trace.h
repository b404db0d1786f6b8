// Intel PT as a trace: what the checkers read.
//
// Purpose     Paths with their accesses become events: loads, stores, locked operations, full
//             fences, branches, units. Each lies in the interval of its block, narrowed by its
//             neighbours in the thread.
// Units       Calls of the functions in `units`: from their first instruction to the return, tail
//             calls and recursion included. A unit that is open where something is missing, or
//             where the path goes on elsewhere (a signal handler), ends there: it is incomplete.
// Unknown     An access whose address is not known is no event; it is counted, and the trace is
// then
//             not complete. Accesses through the stack pointer are left out, as memory of the
//             thread itself; that holds for programs that keep to themselves what is on their
//             stacks.
// Values      None: PT has no data.
// Memory      The whole trace.
// Complexity  O(n log n). Thread-safety: pure function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decoders/pt/accesses.h"
#include "tso/trace.h"

namespace tsomon::pt {

struct UnitFunction {
  std::string label;
  uint64_t entry = 0;
  int process = 0;
};

struct TraceOptions {
  std::vector<UnitFunction> units;
  std::vector<RegisterSample> samples;
  bool branches = false;
  bool memory = false;  // AccessOptions
};

struct TraceCounts {
  uint64_t by_instruction = 0;  // accesses by what gave their address
  uint64_t forward = 0;
  uint64_t backward = 0;
  uint64_t unknown = 0;
  uint64_t stack = 0;
  uint64_t incomplete_units = 0;
};

struct DecodedTrace {
  Trace trace;  // by the start of the intervals
  TraceCounts counts;
  std::vector<std::string> problems;  // what is missing, one line each
};

DecodedTrace make_trace(const Flow& flow, const TraceOptions& options = {});

}  // namespace tsomon::pt
