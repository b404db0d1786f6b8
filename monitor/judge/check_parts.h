// What the checks of whole traces and of streams have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "monitor/judge/check.h"
#include "tso/model/units.h"

namespace tsomon {

// Adds what an analysis of (a slice of) the input found.
void add_analysis(Analysis&& analysis, const Trace& trace, const std::vector<uint64_t>* index,
                  CheckReport* report);

// Of an input that may lack events: what is definite only by values, by looking at all executions,
// or by loads that may have been forwarded from a missing store, is possible.
void distrust_losses(CheckReport* report);

uint32_t threads_with_events(const Trace& trace);

enum class Extent : uint8_t { kSlice, kWhole };
// kWhole: of an input as a whole, which may be long; what is decided without the exact search need
// not come from it (offline/check/crossing_units.h).
Result<Analysis> analyse_property(const Trace& trace, const CheckOptions& options,
                                  Extent extent = Extent::kSlice);

}  // namespace tsomon
