#include "monitor/check.h"

#include <array>
#include <utility>
#include <vector>

namespace tsomon {
namespace {

constexpr std::array<std::pair<CheckProperty, const char*>, 4> kProperties = {{
    {CheckProperty::kSerializability, "serializability"},
    {CheckProperty::kRobustness, "robustness"},
    {CheckProperty::kScSerializability, "sc-serializability"},
    {CheckProperty::kAtomicSets, "atomic-sets"},
}};

uint32_t threads_with_events(const Trace& trace) {
  std::vector<bool> seen;
  uint32_t count = 0;
  for (const Event& event : trace.events) {
    if (event.thread >= seen.size()) {
      seen.resize(event.thread + 1, false);
    }
    count += seen[event.thread] ? 0 : 1;
    seen[event.thread] = true;
  }
  return count;
}

}  // namespace

const char* property_name(CheckProperty property) {
  return kProperties[static_cast<size_t>(property)].second;
}

std::optional<CheckProperty> check_property(std::string_view name) {
  for (const auto& [property, known] : kProperties) {
    if (name == known) {
      return property;
    }
  }
  return std::nullopt;
}

Result<CheckReport> check_trace(const Trace& trace, const CheckOptions& options) {
  CheckReport report;
  report.property = options.property;
  report.semantics = options.analysis.relation.semantics;
  report.events = trace.events.size();
  report.threads = threads_with_events(trace);
  AnalysisOptions analysis = options.analysis;
  switch (options.property) {
    case CheckProperty::kSerializability:
      analysis.property = Property::kSerializability;
      break;
    case CheckProperty::kRobustness:
      analysis.property = Property::kRobustness;
      break;
    case CheckProperty::kScSerializability:
      analysis.property = Property::kScSerializability;
      break;
    case CheckProperty::kAtomicSets:
      report.analysis = analyse_atomic_sets(trace);
      return report;
  }
  auto result = analyse(trace, analysis);
  if (!result) {
    return tl::unexpected<Error>(result.error());
  }
  report.analysis = std::move(*result);
  return report;
}

const char* verdict_name(const CheckReport& report) {
  switch (report.analysis.verdict) {
    case Verdict::kPossible:
      return "possible";
    case Verdict::kDefinite:
      return "definite";
    case Verdict::kInconclusive:
      return "inconclusive";
    case Verdict::kClean:
      break;
  }
  return report.property == CheckProperty::kRobustness ? "robust" : "serializable";
}

}  // namespace tsomon
