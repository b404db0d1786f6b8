// What one hit of a uprobe costs the thread that takes it, on this machine, now.
//
// Measured with a probe of this process, the best of several series: what else the machine does
// makes single ones longer. The probe is on an instruction that the kernel carries out in a place
// of its own and steps over, as it does with loads and stores; what it imitates (nop, push, jumps)
// costs a fraction of that. `tsomon doctor` measures more (monitor/doctor/doctor_hits.cpp).
// Cost        Some 100 milliseconds, most of it for setting and removing the probe.
// Errors      kEnvironment.
// Thread-safety: one call at a time.
#pragma once

#include "monitor/attach/uprobes.h"
#include "tso/support/result.h"

namespace tsomon::attach {

// Nanoseconds. Of the probes that choose_uprobes() chooses; `probes`: for this process, and for nothing else.
Result<double> uprobe_hit_cost();
Result<double> uprobe_hit_cost(Uprobes& probes);

}  // namespace tsomon::attach
