// Findings that are about the same thing.
//
// Purpose     Many races of one variable are one thing to look at: findings are grouped by the variables of their accesses
//             where these have names, else by the function of their first place, else by their kind.
// Complexity  O(size) times its logarithm. Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "monitor/report/results.h"

namespace tsomon::report {

struct Group {
  std::string kind;  // "variable", "function", "kind of finding"
  std::string name;
  std::vector<size_t> members;  // of the findings, those that matter most first
  uint64_t times = 0;           // of all of them
};

// In the order of their first members.
std::vector<Group> groups_of(const std::vector<Finding>& findings);

}  // namespace tsomon::report
