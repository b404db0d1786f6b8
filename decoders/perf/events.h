// What a perf.data shows of a program's accesses and units, as a trace.
//
// Purpose     Samples that name data become accesses, probes at the begin and end of functions
//             become units:
//
//   breakpoints     A hit is an access to the bytes that the breakpoint watches. With write
//                   breakpoints it is a store. Hits of read-write ones do not say which they are;
//                   where the same bytes have a write breakpoint, too, a hit of both is a store and
//                   a hit of the first alone a load (only if both count every occurrence, exclude
//                   the same, begin with the program's exec, and no sample was lost). Otherwise
//                   the access is left out and counted, never guessed.
//   uprobes         The entry probe of a function and its return probe are begin and end of a
//                   unit: tracepoints that `perf probe` made, and events of the uprobe PMU. Only
//                   pairs count: a call whose return was not seen is no unit.
//   perf mem        A sample with a data address and a data source that says load or store: one
//                   byte of the access (its size is not recorded), locked or not. They are left out
//                   where the file has breakpoints: their place among those is not certain.
//   threads         Creation of a thread (FORK inside a process) orders parent and child.
//
// Time        A hit of a breakpoint is reported by an exception after the access and before the
//             next instruction. So the access lies between the last stamp that the kernel took for
//             its thread before (of a hit, any other sample, a context switch) and its own.
//             Delivering an exception drains the store buffer, so a fence follows each hit: the
//             order of hits is certain where these intervals do not overlap. perf record
//             --switch-events makes them shorter for threads that wait. (Watching a program this
//             way hides what its store buffers would do.) perf mem gives no such bound: its
//             accesses begin at any time, and loads, which a store that was not sampled may have
//             been forwarded to, end at any time.
// Sampling    What was sampled is never all. Why what is certain here stays certain in the whole
//             run: accesses and fences that are missing take edges away; they add none, since no
//             load here is taken for one that was not forwarded (hits are drained, the others are
//             open to the end), and a unit of which a part is missing has fewer edges. So a cycle
//             of certain orders is a cycle of the run. An order that is open here may be fixed
//             there: nothing else can be said, and nothing is ever serializable. Units that overlap
//             a time in which samples were lost (LOST, LOST_SAMPLES, THROTTLE) are dissolved.
// Processes   Every address space has its own locations: the first one is shown as it is, the
//             others with their number from bit 57 on. Memory that processes share counts as
//             different.
// Assumes     The clock of the records is the same on all CPUs, as perf's default clock is with a
//             synchronised time-stamp counter; and that the bytes of a breakpoint are one location.
// Memory      The accesses and units, some 60 bytes for each; the executable mappings. A file
//             that is read has no fixed bound: samples are ordered by when their interval begins.
// Complexity  O(n log n).
// Errors      As Reader::open().
// Thread-safety: pure function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tso/model/trace.h"
#include "tso/support/result.h"

namespace tsomon::perf {

// Code in memory. Addresses carry the number of the address space, as those of the events.
struct CodeMapping {
  uint64_t begin = 0;
  uint64_t size = 0;
  uint64_t file_offset = 0;
  std::string path;
  std::string build_id;  // raw bytes; empty: not known
};

struct SampledTrace {
  Trace trace;  // by the start of the intervals; source locations are pcs as in a capture
  std::vector<CodeMapping> mappings;  // later ones win where they overlap
  std::vector<std::string> problems;  // what is damaged or lost
  std::vector<std::string> notes;     // what was left out, and why
};

Result<SampledTrace> read_samples(std::string_view bytes);

}  // namespace tsomon::perf
