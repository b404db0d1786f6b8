// What happened in a finding, or would, as pictures (diagram.h).
//
// Purpose     The witness with its late commits and the cycle over it; of a prediction the order of the recording and the
//             order that was predicted; of an exploration the schedule.
// Misses      What the results do not describe: of predictions the accesses in between are turns without a text.
// Complexity  O(size) times its logarithm. Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "monitor/report/diagram.h"
#include "monitor/report/results.h"

namespace tsomon::report {

// One after the other, or side by side; none: the finding has nothing in order.
std::vector<Diagram> diagrams_of(const Finding& finding);

// Threads of the accesses, the cycle and the turns, by name: lanes, and colours, of all pictures of a finding.
std::vector<std::string> lanes_of(const Finding& finding);
// Of one of them.
size_t lane_of(const std::vector<std::string>& lanes, const std::string& thread);

// "#3 overwritten by #9, conflict in the order of the trace": the edge that leaves a unit of the cycle.
std::string edge_words(const Finding& finding, const Unit& unit);
// "unit take of T1", "an access of T2".
std::string unit_words(const Unit& unit);

}  // namespace tsomon::report
