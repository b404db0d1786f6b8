// Which thread, or which buffer, goes on where the schedule does not say it.
//
// Thread-safety: as state.h.
#pragma once

#include "monitor/explore/runtime/state.h"

namespace tsomon::explore {

// At the start of a run, with the seed of the request.
void begin_policy();
// One of enabled_now and commits_now, which are not both empty.
Choice choose_by_policy();

}  // namespace tsomon::explore
