// A violation in one sentence, for whoever reads nothing else.
//
// Of units     "T0's unit withdraw is not atomic: T1's unit deposit comes between its load of balance and its store of
//              balance". The torn unit is one that the cycle leaves by an earlier access than it comes back to; the
//              first of them. Where there is none: which store commits late.
// Alike        One fault may close cycles of several kinds, each with a fingerprint: the interrupted unit is the same, and the part of
//              it, but the other unit is met at another of its accesses. Fingerprints keep them apart, as what others have
//              suppressed or took as known must not grow; TornParts says to whoever reads which belong together.
// Of events    What was still in a store buffer, and what was read meanwhile.
// Complexity   O(size). Thread-safety: pure functions; of TornParts none.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "monitor/findings/reported_cycle.h"

namespace tsomon {

// Without an end of line.
std::string summary_text(const ReportedCycle& cycle);
// "SUMMARY: ...", the last line of a report: what a log is searched for. `verdict`: "definite".
std::string summary_line(const std::string& verdict, const ReportedCycle& cycle);

// Which violations, in the order of their numbers, interrupt units of the same label between accesses at the same two source
// locations.
class TornParts {
 public:
  // The first violation that interrupts a part that this one does; 0: it is the first itself, or interrupts none.
  uint64_t first_like(const ReportedCycle& cycle, uint64_t number);

 private:
  std::map<std::string, uint64_t> first_;
};

}  // namespace tsomon
