// Has a trace an execution with its values? By running the machine of the definitions through every
// state that it can reach with these values. No inference: the twin of check_consistency().
#pragma once

#include <cstdint>
#include <optional>

#include "tso/model/relation.h"
#include "tso/model/trace.h"

namespace tsomon::testing {

// Loads, stores, locked operations and fences of whole locations, all with values; memory starts
// with zeros. Nothing when there are more than `max_states`.
std::optional<bool> naive_consistency(const Trace& trace, MemoryModel model, uint64_t max_states);

}  // namespace tsomon::testing
