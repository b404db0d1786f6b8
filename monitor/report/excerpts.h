// The source lines of a finding's accesses, as HTML: a few lines around each, those that were executed marked with
// thread and event.
//
// Bounds      kMostExcerpts of a finding, kMostMarks marks of a line; long lines are cut.
// Complexity  O(accesses times their logarithm + lines shown). Thread-safety: none of `folders`.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "monitor/report/results.h"
#include "monitor/report/source_folders.h"

namespace tsomon::report {

constexpr size_t kMostExcerpts = 8;
constexpr size_t kMostMarks = 8;

// Of all findings.
std::vector<std::string> source_files_of(const Results& results);
// Empty: nothing of it was found.
std::string excerpts_html(const Finding& finding, SourceFolders* folders);

}  // namespace tsomon::report
