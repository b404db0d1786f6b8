// What the commands write, as the store takes it.
#include <algorithm>

#include <fmt/format.h>

#include "monitor/findings/result_json.h"
#include "monitor/report/json_fields.h"
#include "monitor/service/kept_analysis.h"
#include "monitor/service/predicted_kind.h"
#include "monitor/service/seen_findings.h"
#include "tso/support/printable.h"

namespace tsomon::service {
namespace {

using Json = nlohmann::ordered_json;
using report::array_of;
using report::text_of;

std::string error_of(const Json& object) {
  const auto error = object.find("error");
  return error != object.end() && error->is_object() ? text_of(*error, "message") : std::string();
}

void read_check(const SliceAnalysis& analysis, const Json& object, AnalysisEnd* end) {
  end->found = seen_by_check(object);
  std::erase_if(end->found, [](const SeenFinding& one) { return !one.definite; });
  for (SeenFinding& one : end->found) {
    one.property = analysis.property;
    one.count = 1;
  }
  end->result = fmt::format("{}, {} definite finding{}", text_of(object, "verdict"),
                            end->found.size(), end->found.size() == 1 ? "" : "s");
}

void read_explain(const Json& object, AnalysisEnd* end) {
  const Json& repairs = array_of(object, "eliminators");
  if (!repairs.empty()) {
    end->explanation = json_text(object);
  }
  end->result = fmt::format("{} repair{}", repairs.size(), repairs.size() == 1 ? "" : "s");
}

void read_predict(const Json& object, AnalysisEnd* end) {
  end->found = seen_by_predict(object);
  std::vector<std::string> parts;
  for (const PredictedKind& kind : kPredictedKinds) {
    const auto found =
        std::count_if(end->found.begin(), end->found.end(),
                      [&](const SeenFinding& one) { return one.property == kind.property; });
    if (found != 0) {
      parts.push_back(fmt::format("{} {}", found, found == 1 ? kind.property : kind.several));
    }
  }
  end->result = parts.empty() ? fmt::format("nothing ({})", text_of(object, "verdict"))
                              : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::vector<std::string> analysis_command(const std::string& program, const SliceAnalysis& analysis,
                                          double effort_seconds,
                                          const std::vector<std::string>& suppressions) {
  std::vector<std::string> command = {
      program, name_of(analysis.what), analysis.file, "--format", "capture", "--output", "json"};
  const auto add = [&](std::initializer_list<std::string> words) {
    command.insert(command.end(), words);
  };
  switch (analysis.what) {
    case SliceAnalysis::What::kCheck:
      add({"--property", analysis.property, "--jobs", "1", "--max-work",
           fmt::format("{:.0f}", std::max(effort_seconds, 1.0))});
      break;
    case SliceAnalysis::What::kExplain:
      add({"--property", analysis.property});
      break;
    case SliceAnalysis::What::kPredict:
      add({"--jobs", "1", "--witness-events", "1000"});
      for (const std::string& file : suppressions) {
        add({"--suppressions", file});
      }
      break;
  }
  return command;
}

AnalysisEnd end_of_output(const SliceAnalysis& analysis, const std::string& output) {
  AnalysisEnd end;
  const Json object = Json::parse(output.substr(0, output.find('\n')), nullptr, false);
  if (!object.is_object()) {
    end.result = "it said nothing that can be read";
    return end;
  }
  if (const std::string error = error_of(object); !error.empty()) {
    end.result = "not judged: " + printable(error);
    return end;
  }
  switch (analysis.what) {
    case SliceAnalysis::What::kCheck:
      read_check(analysis, object, &end);
      break;
    case SliceAnalysis::What::kExplain:
      read_explain(object, &end);
      break;
    case SliceAnalysis::What::kPredict:
      read_predict(object, &end);
      break;
  }
  return end;
}

}  // namespace tsomon::service
