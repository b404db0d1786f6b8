// Accesses from registers carried forwards: the quick way of find_accesses().
#pragma once

#include <vector>

#include "decoders/pt/memory/accesses.h"

namespace tsomon::pt {

void find_by_registers(const ThreadPath& path, const std::vector<PlacedSample>& samples,
                       const ReadOnlyData* constants, AccessSink& sink);

}  // namespace tsomon::pt
