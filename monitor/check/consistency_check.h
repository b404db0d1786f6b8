// The consistency of the values of an input, from its bytes to a report.
//
// Purpose     What `tsomon check --property consistency --order thread` does with one input: a
//             trace of any format, or a file of the axe checker with several tests.
// Errors      As load_trace() and AxeReader; the error names the input. Tests before it have been
//             judged.
// Thread-safety: standard input apart, calls are independent.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "monitor/findings/finding_filter.h"
#include "monitor/input/load.h"
#include "offline/consistency/consistency.h"

namespace tsomon {

struct CheckedConsistency {
  std::string input;             // as in messages
  std::optional<uint64_t> test;  // of an axe file, from 0
  Trace trace;
  ConsistencyReport report;
  std::vector<std::string> warnings;
  BasisSource basis = BasisSource::kWritten;  // of a recording without a value read nothing follows
};

// Calls `judged` for every test, in order. `path` "-" is standard input.
Result<bool> check_consistency_of(const std::string& path, InputFormat format,
                                  const ConsistencyOptions& options,
                                  const std::function<void(const CheckedConsistency&)>& judged,
                                  const FileSearch& files = {});

// "sc", "tso", "inconsistent" or "inconclusive".
const char* consistency_name(ConsistencyVerdict verdict);

// `file` as the user named it. `hidden` is told of what was found, and says whether it is shown.
nlohmann::ordered_json consistency_json(const std::string& file, const CheckedConsistency& checked,
                                        HiddenFindings* hidden = nullptr);
std::string consistency_text(const CheckedConsistency& checked, HiddenFindings* hidden = nullptr);

}  // namespace tsomon
