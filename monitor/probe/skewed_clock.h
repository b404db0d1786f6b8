// For tests: processors whose time-stamp counters disagree.
//
// The option clock_test=LIST has for each processor, separated by ',', what its stamps differ by:
//   OFFSET                    cycles
//   OFFSET/DRIFT              and DRIFT more in each million cycles since the start
//   OFFSET/DRIFT/STEP/AFTER   and STEP more once AFTER million cycles have passed
// All are integers and may be negative, but for AFTER. Processors that the list does not have, and
// entries that are empty, are as they are. Only stamps are skewed: what looks at the clock to see
// whether a stamp is recent reads the true counter.
//
// Thread-safety: set once, before other threads; the rest is pure.
#pragma once

#include <cstdint>

namespace tsomon::probe {

bool is_skew(const char* text);
// From here on stamps are skewed; nullptr: they are not.
void skew_clock(const char* text);

}  // namespace tsomon::probe
