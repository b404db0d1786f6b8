// One input of `tsomon check`, from its bytes to a report.
//
// Purpose     Chooses how to judge an input: as a stream, while it is read (StreamCheck), or whole,
//             where the question or the input does not allow that: robustness, no common time,
//             text traces whose lines go back in time.
// Errors      As load_trace(); also an input whose stated order contradicts itself.
// Memory      Text traces without intervals: that of StreamCheck. Others: the trace.
// Thread-safety: standard input apart, calls are independent.
#pragma once

#include <string>
#include <vector>

#include "monitor/check.h"
#include "monitor/load.h"

namespace tsomon {

struct CheckedInput {
  std::string input;  // as in messages
  Symbols symbols;    // with source locations as text
  CheckReport report;
  std::vector<std::string> warnings;
};

// `path` "-" is standard input.
Result<CheckedInput> check_input(const std::string& path, InputFormat format,
                                 const CheckOptions& options);

}  // namespace tsomon
