// What one hit costs the thread that takes it, on this machine, now.
//
// Measured with probes of this process, the best of several series: what else the machine does
// makes single ones longer. A hit of a uprobe is measured on an instruction that the kernel carries
// out in a place of its own and steps over, as it does with loads and stores; what it imitates
// (nop, push, jumps) costs about half. Cost        Some 100 milliseconds each, most of it for
// setting and removing the probe. Errors      kEnvironment. Thread-safety: one call at a time.
#pragma once

#include "tso/result.h"

namespace tsomon::attach {

Result<double> uprobe_hit_cost();      // nanoseconds
Result<double> breakpoint_hit_cost();  // nanoseconds

}  // namespace tsomon::attach
