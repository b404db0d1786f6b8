// Uprobes whose hits come as samples of perf events, for kernels without BPF or without enough of
// it.
//
// Purpose     The same as bpf_uprobes.h, for more time at each hit: the kernel fills in and copies
//             a sample.
// How         All places of one attach() are one event of the tracing file system; perf opens that
//             for each thread and processor, and new threads inherit it (not child processes:
//             kernels from 5.13 on). An event for each place would take the kernel some tens of
//             milliseconds to remove, one after the other.
// Leaves      When this process is killed the probes go, but the names of the events
//             (tsomon_PID/...) stay in uprobe_events, without effect, until the next create().
// Misses      Processors that are switched on later.
// Loss        When a ring is full hits are dropped: lost(), which is a lower bound.
// Permission  Root: the tracing file system.
// Errors      kEnvironment with the remedy.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <memory>

#include "monitor/attach/uprobes.h"

namespace tsomon::attach {

// A ring for each processor. Works for one process: `pid`.
Result<std::unique_ptr<Uprobes>> create_perf_uprobes(pid_t pid,
                                                     size_t ring_bytes = size_t{4} << 20);

}  // namespace tsomon::attach
