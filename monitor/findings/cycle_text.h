// A reported cycle (reported_cycle.h) as text.
//
// Folding     The first and the last units of a long cycle, accesses of a unit and steps of a witness
//             are shown, and how many are left out. TextShape::verbose: all.
// Verbose     Of an access also the bytes that its name stands for, its time stamps, and the calls
//             that lead to it, as far as they are known. Of an edge the stamps, the values and the
//             locks that the two units hold there. Locks that were taken before a unit began, and
//             those of units too long to be listed, are not known here.
// Columns     The witness has one for each thread, and the memory in the middle. Where that is wider
//             than the terminal, columns are narrower and their texts go on in further lines; where
//             they would be too narrow, the steps stand one below the other, each with its thread.
//             Other lines are as long as what they say.
// Complexity  O(size). Thread-safety: pure functions.
#pragma once

#include <string>

#include "monitor/findings/reported_cycle.h"
#include "monitor/findings/text_shape.h"

namespace tsomon {

// "store x := 1".
std::string access_text(const ReportedAccess& access);
// "#12     store x := 1                       a.cpp:3"
std::string access_line(const ReportedAccess& access);
// As lines, each behind the indentation, the access first; the others only of a verbose text.
std::string access_lines(const ReportedAccess& access, const std::string& indent,
                         const std::string& before, const TextShape& shape);
// Several lines, indented. witness_text() is empty where there is no witness.
std::string cycle_text(const ReportedCycle& cycle, const TextShape& shape = {});
std::string witness_text(const ReportedCycle& cycle, const TextShape& shape = {});

}  // namespace tsomon
