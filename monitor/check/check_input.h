// One input of `tsomon check`, from its bytes to a report.
//
// Purpose     Judges an input as a stream, while it is read (EventSource, StreamCheck), or whole,
//             where there is no common time. Several questions are asked in one reading.
// Samples     A sample in which every violation that is told needs an order that is not certain is
//             read once more for certain ones alone, if it is a file: from a pipe it is
//             inconclusive.
// Threads     With CheckOptions::jobs other than 1 a stream is read on a thread of its own.
// Errors      As EventSource; also an input whose stated order contradicts itself.
// Stops       A stop (tso/support/work.h), also while the input is waited for, leaves a report of
//             what was found until then; where nothing was judged yet, one that is inconclusive.
// Memory      That of StreamCheck; the trace where it is judged whole.
// Thread-safety: standard input apart, calls are independent.
#pragma once

#include <string>
#include <vector>

#include "monitor/findings/last_waits.h"
#include "monitor/input/load.h"
#include "monitor/judge/check.h"

namespace tsomon {

struct CheckedInput {
  std::string input;  // as in messages
  Symbols symbols;    // with source locations as text
  CheckReport report;
  std::vector<std::string> warnings;
  ReportNames names;  // for what the report mentions
};

// Likewise, with a report for each question, in their order.
struct CheckedProperties {
  std::string input;
  Symbols symbols;
  std::vector<CheckReport> reports;
  std::vector<std::string> warnings;
  ReportNames names;
  // Who waits for whom at the end. Empty also where that is not known: of an input that is not whole,
  // is judged without a common time, or was not read to its end.
  std::vector<StuckThread> stuck;
};

// `path` "-" is standard input. `onlooker`: of captures. The questions differ in their property alone.
Result<CheckedProperties> check_properties(const std::string& path, InputFormat format,
                                           const std::vector<CheckOptions>& questions,
                                           const PerfOptions& perf = {},
                                           const FileSearch& files = {},
                                           EventOnlooker* onlooker = nullptr);
Result<CheckedInput> check_input(const std::string& path, InputFormat format,
                                 const CheckOptions& options, const PerfOptions& perf = {},
                                 const FileSearch& files = {});

}  // namespace tsomon
