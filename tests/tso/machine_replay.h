// Witnesses on the abstract machine: a slice of a trace as a small program, driven step by step.
#pragma once

#include <string>
#include <vector>

#include "tso/check/analysis.h"
#include "tso/model/trace.h"
#include "tso/order/execution.h"

namespace tsomon::testing {

struct MachineReplay {
  std::string refusal;  // empty: the machine takes every step, and ends with nothing left to do
  bool cyclic = false;  // by the machine's own reads-from and coherence orders
  // Loads in the order of the steps, with what the machine read.
  std::vector<std::pair<uint32_t, uint64_t>> loads;
};

// Locations must be single ones (no mixed sizes); memory starts at 0. Stores without a value write
// a number of their own.
MachineReplay replay_on_machine(const Trace& trace, const RelationOptions& options,
                                Property property, const std::vector<Step>& steps);

}  // namespace tsomon::testing
