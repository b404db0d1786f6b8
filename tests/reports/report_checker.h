// Judges one JSON report of `tsomon check` against the trace it is about.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tests/reports/plain_trace.h"

namespace tsomon::reports {

struct Question {
  std::string property;
  std::string semantics;
  bool values = true;  // the witness agrees with recorded values; the plain relation need not
  bool short_history = false;  // less may be known
};

// What is wrong with the report, "" when nothing is. Checked are the fields that are always there;
// the units and edges of the cycle; that the witness is an execution of an x86-TSO machine (issues
// in program order, commits first in first out, fences and locked operations with an empty buffer),
// keeps what the trace proves, and orders both ends of every edge of the cycle as the edge says;
// and that the events of the witness alone, ordered as it has them, make a cycle of units.
std::string find_fault(const PlainTrace& trace, const std::string& file, const Question& question,
                       const nlohmann::json& report);

// 0, 1 or 3: the exit status that goes with the report's verdict.
int status_of(const nlohmann::json& report);

}  // namespace tsomon::reports
