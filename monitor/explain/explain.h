// The inputs of `tsomon explain`, from their bytes to a report.
//
// Purpose     Reads inputs with violations and inputs without, checks the former, asks
//             offline/explain what would have ruled the violations out, and puts it into words.
// Errors      As EventSource. A stop or a bound that is met is reported as such.
// Memory      All traces, up to kMaxEvents each.
// Thread-safety: standard input apart, calls are independent.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "monitor/events/event_source.h"
#include "monitor/judge/check.h"
#include "offline/explain/repairs.h"
#include "tso/model/trace.h"
#include "tso/support/result.h"
#include "tso/support/work.h"

namespace tsomon {

struct ExplainOptions {
  static constexpr uint64_t kMaxEvents = uint64_t{1} << 20;

  CheckOptions check;  // the property, and how the trace is read
  InputFormat format = InputFormat::kAuto;
  FileSearch files;  // of what is recorded
  bool minimize = false;
  WorkBounds bounds;  // of the search for repairs; reading and checking have their own
};

// An input that was read as a whole.
struct ExplainedInput {
  std::string file;   // as it was named
  std::string input;  // as in messages
  Trace trace;
  std::vector<std::string> notes;  // why it is not complete
  std::vector<std::string> warnings;
  BasisSource basis = BasisSource::kWritten;
  Damage damage = Damage::kNone;  // as EventSource has it
  std::string nothing_counts;     // likewise
  std::string other_writers;      // likewise
  ReportNames names;
  CheckReport report;  // empty for a passing one
};

struct Explanation {
  std::vector<ExplainedInput> violating;
  std::vector<ExplainedInput> passing;
  explain::Repairs repairs;
  Property property = Property::kSerializability;

  uint64_t violations() const;
  bool complete() const;
};

Result<ExplainedInput> read_for_explaining(const std::string& file, const ExplainOptions& options);

// What the texts of locations say of places in the source.
explain::PlaceOf places_of(const ReportNames& names);

// Checks the first ones and looks for repairs.
Result<Explanation> explain_inputs(std::vector<ExplainedInput> inputs,
                                   std::vector<ExplainedInput> passing,
                                   const ExplainOptions& options);

struct ExploredRepairs;  // explain_explored.h
// `explored`: nullptr, the repairs were not tried on the program.
std::string explanation_text(const Explanation& explanation,
                             const ExploredRepairs* explored = nullptr);
nlohmann::ordered_json explanation_json(const Explanation& explanation,
                                        const ExploredRepairs* explored = nullptr);

}  // namespace tsomon
