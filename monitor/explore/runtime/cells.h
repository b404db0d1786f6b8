// Cells that were accessed, and the values of objects of synchronisation.
//
// Errors      More than 8,192 cells end the run.
// Complexity  O(1) for each.
// Thread-safety: as state.h.
#pragma once

#include "monitor/explore/runtime/state.h"

namespace tsomon::explore {

void begin_cells();
// What they are now is what every later execution begins with: locks may be held already.
void keep_cells();
void forget_cells();  // all but those that were kept

// The value of the object that the operation is on, to be written.
Value& object_value(const Operation& operation);
// What the cell held before the first operation that is told of.
Value initial_of(const Operation& operation);
// The value of the cell as `thread` sees it; its buffer is not in memory.
Value view(const Thread& thread, const Operation& operation);

}  // namespace tsomon::explore
