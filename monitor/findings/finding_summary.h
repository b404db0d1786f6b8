// A violation in one sentence, for whoever reads nothing else.
//
// Of units     "T0's unit withdraw is not atomic: T1's unit deposit comes between its load of balance and its store of
//              balance". The torn unit is one that the cycle leaves by an earlier access than it comes back to; the
//              first of them. Where there is none: which store commits late.
// Of events    What was still in a store buffer, and what was read meanwhile.
// Complexity   O(size). Thread-safety: pure functions.
#pragma once

#include <string>

#include "monitor/findings/reported_cycle.h"

namespace tsomon {

// Without an end of line.
std::string summary_text(const ReportedCycle& cycle);
// "SUMMARY: ...", the last line of a report: what a log is searched for. `verdict`: "definite".
std::string summary_line(const std::string& verdict, const ReportedCycle& cycle);

}  // namespace tsomon
