// What is cheap of `tsomon explain`: the best repair of one finding, in one line.
//
// Purpose     `check` says it under each finding that it shows, `explore` under each property that
//             is violated. Only a repair that the exact checker has verified on the events of the
//             finding is said; the whole answer is explain's.
// Bounds      Findings of at most kMostEvents events, kMostWork steps each. Past them nothing is
//             said: that is no statement about the finding.
// Thread-safety: pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "monitor/findings/reported_cycle.h"
#include "monitor/judge/check.h"

namespace tsomon {

inline constexpr size_t kMostEventsExplained = 500;
inline constexpr uint64_t kMostWorkExplained = 4'000'000;

// "a fence after #1 store x sb.c:3 and after #3 store y"; empty: none is known. Event numbers are
// those of the input.
std::string repair_line(const Finding& finding, const Symbols& symbols, const ReportNames& names,
                        Property property);

// The same of the first violation of a text trace.
std::string repair_line(const std::string& trace, Property property);

}  // namespace tsomon
