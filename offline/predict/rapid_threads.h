// Threads that RAPID's traces name in two ways: T122 where it acts, 122 where it is started.
//
// Purpose     Forks and joins of a number without events of its own mean the thread with a T in
//             front, where the trace has that one.
// Windows     Of a part of a trace those that act elsewhere are not seen: what was changed is put
//             back before the events become part of another window.
// Thread-safety: changes the trace.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tso/model/trace.h"

namespace tsomon::predict {

// The events that were changed, with their addresses before.
std::vector<std::pair<uint32_t, uint64_t>> unite_rapid_threads(EventBlock& trace,
                                                               const Interner& names);

}  // namespace tsomon::predict
