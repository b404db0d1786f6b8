// The conflict graph of a finding's cycle, or who waits for whom, as a small SVG: nodes, and edges named in words.
//
// Bounds      Of more than kMostNodes nodes those in the middle are left out, which the picture says.
// Complexity  O(size). Thread-safety: pure functions.
#pragma once

#include <string>

#include "monitor/report/results.h"

namespace tsomon::report {

// `id` is unique in the page. Empty: there is no cycle.
std::string cycle_svg(const Finding& finding, const std::string& id);

}  // namespace tsomon::report
