// Threads that RAPID's traces name in two ways: T122 where it acts, 122 where it is started.
//
// Purpose     Forks and joins of a number without events of its own mean the thread with a T in
//             front, where the trace has that one.
// Thread-safety: changes the trace.
#pragma once

#include "tso/model/trace.h"

namespace tsomon::predict {

void unite_rapid_threads(Trace& trace);

}  // namespace tsomon::predict
