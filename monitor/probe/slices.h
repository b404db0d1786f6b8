// Programs that are watched for a while: which threads take part in a slice, from when to when.
//
// Slice       What is recorded between a beginning and an end that somebody outside asks for (control.h): a capture
//             of its own. While there is none nothing is recorded, and programs built with --dormant run plain code.
// Joining     A thread takes part from its first hook on at which none of its units is open and no signal handler of it runs:
//             it empties its store buffer and begins as a thread of the capture. So no store of it that was
//             not recorded becomes visible later, and no unit is recorded in part. What other threads do
//             meanwhile is not recorded: readers take no order from values (docs/theory.md, section 10).
// Choice      Where functions are left out (twins.h), a unit that plain code begins is recorded with what comes first in it, and not
//             at all if nothing does: a program may do little else than begin and end units of functions that are left out.
//             Handlers of signals that come in the moment between the two are not recorded.
// Leaving     Once the slice is about to end, a thread that would begin an outermost unit leaves instead.
//             Units that are open get some time to end; those that take longer are cut.
// Ended       Threads find out when they next ask for room: their encoders have none any more. Until then they
//             write into chunks that stay theirs. They keep chunk and context for the next slice.
// Misses      A unit that was left by longjmp counts as open: its thread does not take part any more. Threads that
//             run handlers on stacks of their own making (makecontext) may join within one.
// Thread-safety: what a thread does with itself; the rest on the thread of control.h.
#pragma once

#include <atomic>
#include <cstdint>

#include "monitor/probe/context.h"
#include "monitor/probe/records.h"

namespace tsomon::probe {

// Slices of this process can be asked for. What it records otherwise is one piece, from its start.
extern bool controlled;
int64_t now();  // microseconds of CLOCK_MONOTONIC
// The slice that is recorded or was last. 0: none yet.
extern std::atomic<uint32_t> slice;
// Units may begin without a look at the slice.
extern bool quick_units;

// Whether the thread belongs to what is recorded now.
inline bool takes_part(const Thread* thread) {
  return thread->slice.load(std::memory_order_relaxed) == slice.load(std::memory_order_relaxed);
}

// The calling thread, which is not recorded now. True: it is from now on.
bool join_slice();
// It is not recorded from now on. False: a handler has interrupted it, perhaps in a hook, which goes on.
bool leave_slice();
// A slice that is armed begins in the functions that it waits for: what calls the runtime at `pc` may be plain code, which runs all
// the time, or a twin that runs since an earlier slice.
bool may_begin_slice(uint64_t pc);
// Functions are left out of the slice.
extern bool choosy;
// A boundary of a unit that is not recorded, or not yet. True: that is all. Else nothing was done.
bool wait_with_boundary(RecordType type, uint64_t label, uint64_t pc);
// The calling thread is about to record, or a handler interrupts it: what it waits with comes first.
void record_waiting();
// The calling thread has filled so many bytes in this slice. A slice with a bound may be about to end because of it: whoever asked
// for it finds out later, when much more could have been recorded, or lost.
void filled(uint64_t bytes);
// At the beginning of a unit: one of both, where it is time for it.
void join_or_leave(uint64_t pc);

// The handler of a signal begins; what leave_signal() takes.
HandlerPlace enter_signal(const void* interrupted);
void leave_signal(const HandlerPlace& before);

// On the thread of control.h, in this order.
// Before begin_slice(): all functions are watched once a thread takes part, who sees to that itself. Before anything else
// is watched disarm_slice(), where `watched` says whether to, if nobody came. False: the kernel refused.
void arm_slice();
void begin_slice(bool chooses, uint64_t most_bytes);
bool disarm_slice(bool watched);
bool somebody_takes_part();  // or did
bool slice_is_closed();
int64_t close_slice();  // when it was closed, in microseconds, as now() counts
bool units_are_open();  // of threads that take part
// After everything was written.
struct SliceThreads {
  uint32_t joined = 0;
  uint32_t cut_units = 0;  // outermost ones that were open
};
SliceThreads end_slice();

void forget_slices();  // after fork

}  // namespace tsomon::probe
