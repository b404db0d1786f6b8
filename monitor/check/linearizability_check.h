// The linearizability of an input, from its bytes to a report.
//
// Purpose     What `tsomon check --property linearizability` does with one history.
// Errors      As read_history() and linearizability::check(); the error names the input.
// Memory      The bytes of the input, and its history.
// Thread-safety: standard input apart, calls are independent.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "decoders/histories/reader.h"
#include "monitor/findings/finding_filter.h"
#include "offline/linearizability/check.h"

namespace tsomon {

struct CheckedLinearizability {
  std::string input;  // as in messages
  History history;
  linearizability::Report report;
};

// `path` "-" is standard input.
Result<CheckedLinearizability> check_linearizability_of(const std::string& path,
                                                        HistoryFormat format,
                                                        const linearizability::Options& options);

// `file` as the user named it. `hidden` is told of what was found, and says whether it is shown.
nlohmann::ordered_json linearizability_json(const std::string& file,
                                            const CheckedLinearizability& checked,
                                            HiddenFindings* hidden = nullptr);
std::string linearizability_text(const CheckedLinearizability& checked,
                                 HiddenFindings* hidden = nullptr);

}  // namespace tsomon
