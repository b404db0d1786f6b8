// Where a debugger stops in a replay: `break tsomon_explore_step` (docs/guide/debugger.md).
//
// Purpose     Called at each step of a run whose output is shown, with memory as it is then: before a step, as the
//             thread sees it, its own stores included; before a commit, as a thread with an empty buffer does.
// Thread-safety: of the thread whose turn it is.
#pragma once

#include <cstdint>

// `thread`, by its number in the schedule, is about to execute the operation that returns to `pc` (0: none). A plain
// store is a step when its thread comes to its next operation.
extern "C" void tsomon_explore_step(uint32_t thread, uint64_t pc);
// Its oldest store is about to take effect: `size` bytes at `address` become `value`, of
// which these are the lowest eight.
extern "C" void tsomon_explore_commit(uint32_t thread, uint64_t address, uint64_t size,
                                      uint64_t value);
