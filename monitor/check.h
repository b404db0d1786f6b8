// From a loaded trace to a verdict and its report.
//
// Purpose     What `tsomon check` says about one input (interfaces.md), for programs and for
// people. Event numbers in every report count the events of the input from 0, units and locks
// included. Thread-safety: pure functions of their arguments.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "tso/analysis.h"
#include "tso/atomic_sets.h"
#include "tso/trace.h"

namespace tsomon {

enum class CheckProperty : uint8_t {
  kSerializability,
  kRobustness,
  kScSerializability,
  kAtomicSets,
};

// The name as --property takes it.
const char* property_name(CheckProperty property);
std::optional<CheckProperty> check_property(std::string_view name);

struct CheckOptions {
  CheckProperty property = CheckProperty::kSerializability;
  AnalysisOptions analysis;  // its `property` is set from the one above
};

struct CheckReport {
  CheckProperty property = CheckProperty::kSerializability;
  Semantics semantics = Semantics::kExact;
  Analysis analysis;
  uint64_t events = 0;
  uint32_t threads = 0;  // that have events
};

Result<CheckReport> check_trace(const Trace& trace, const CheckOptions& options);

// "serializable", "robust", "possible", "definite" or "inconclusive".
const char* verdict_name(const CheckReport& report);

nlohmann::ordered_json report_json(const std::string& input, const Trace& trace,
                                   const CheckReport& report);

// Several lines: verdict, cycle with source locations, witness. `all` findings or only the first.
std::string report_text(const std::string& input, const Trace& trace, const CheckReport& report,
                        bool all);

}  // namespace tsomon
