// Fences and atomic blocks that the exploration puts into the program.
//
// Purpose     What a repair would do is tried without a change of the source: a full fence behind
//             a store, a part of the code that no other thread's steps interrupt.
// Blocks      A thread is in a block from its first operation at one of the block's places to the
//             first one at a place of none, or to the end of its unit; at places of which nothing
//             is said it stays. Its store buffer is empty when it enters and when it leaves, as
//             with a lock. If it has to wait inside, the run ends (End::kInterrupted): a block that
//             is atomic begins when it can come to its end, which other runs show.
// Thread-safety: as state.h.
#pragma once

#include "monitor/explore/runtime/state.h"

namespace tsomon::explore {

inline bool is_repaired() { return channel->fence_count != 0 || channel->atomic_count != 0; }
// The thread has come to the operation; fences that are due are steps of their own.
void before_repaired(Thread& thread, const Operation& operation);
// Its turn has come.
void at_repaired(Thread& thread, const Operation& operation);
// Takes the others away from enabled_now and commits_now while a thread is inside a block.
void keep_blocks_whole();

}  // namespace tsomon::explore
