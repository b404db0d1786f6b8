// What the trailer says of a thread, against what there is of it.
//
// Complexity  Linear in the thread's chunks. Thread-safety: pure functions of their arguments.
#pragma once

#include <vector>

#include "decoders/capture/chunks.h"
#include "decoders/capture/partial.h"
#include "decoders/capture/reader.h"

namespace tsomon::capture {

// `chunks`: those of the thread, by sequence. What differs goes to the problems of the capture, and
// records that were dropped to its losses.
void compare_with_total(const EndEntry& total, const std::vector<const Chunk*>& chunks,
                        const PartialChunks& partial, Capture& capture);

}  // namespace tsomon::capture
