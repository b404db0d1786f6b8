// Runs of a TSO machine on random accesses, with values, as long as wanted.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "tso/model/trace.h"

namespace tsomon::testing {

struct RunShape {
  uint32_t threads = 4;
  uint32_t locations = 4;
  uint32_t operations = 20'000;
  uint32_t values = 0;  // how many different ones are written; 0: every store writes its own
  uint32_t lag = 1;     // how much rarer a commit is than going on
};

// Loads and stores equally often, one operation in fifty a fence or a locked one; which thread goes
// on, and what commits, is random. `recorded`, if given, says what is written down for the value
// that the n-th reading operation got.
Trace simulated_run(const RunShape& shape, uint64_t seed,
                    const std::function<uint64_t(uint32_t n, uint64_t value)>& recorded = {});

}  // namespace tsomon::testing
