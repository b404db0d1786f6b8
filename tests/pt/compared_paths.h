// Decoded paths against what the processor executed, step by step.
#pragma once

#include <cstddef>

#include "decoders/pt/flow/flow.h"
#include "tests/pt/stepped_run.h"
#include "tests/pt/trace_encoder.h"

namespace tsomon::test {

// Undamaged: the same instructions, each within its interval. Gives the number of differences.
size_t compare_all(const SteppedRun& run, const pt::Flow& flow);

// Damaged: what lies between two gaps is a piece of what was executed, in its order. Gives the
// share of the steps that was found.
double compare_pieces(const SteppedRun& run, const pt::Flow& flow);

}  // namespace tsomon::test
