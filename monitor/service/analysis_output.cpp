// What the commands write, as the store takes it.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "monitor/findings/result_json.h"
#include "monitor/report/json_fields.h"
#include "monitor/report/results.h"
#include "monitor/service/kept_analysis.h"
#include "monitor/service/predicted_kind.h"
#include "tso/support/printable.h"

namespace tsomon::service {
namespace {

using Json = nlohmann::ordered_json;
using report::array_of;
using report::text_of;

// By fingerprint, in one line each.
std::map<std::string, std::string> headlines_of(const Json& object) {
  report::Results results;
  results.add(object, "slice");
  results.finish();
  std::map<std::string, std::string> headlines;
  for (const report::Finding& finding : results.findings()) {
    headlines.emplace(finding.fingerprint, finding.headline);
  }
  return headlines;
}

std::string error_of(const Json& object) {
  const auto error = object.find("error");
  return error != object.end() && error->is_object() ? text_of(*error, "message") : std::string();
}

void read_check(const SliceAnalysis& analysis, const Json& object, AnalysisEnd* end) {
  const auto headlines = headlines_of(object);
  for (const Json& each : array_of(object, "findings")) {
    if (!each.is_object() || text_of(each, "verdict") != "definite") {
      continue;
    }
    SeenFinding& one = end->found.emplace_back();
    one.fingerprint = text_of(each, "fingerprint");
    one.property = analysis.property;
    one.definite = true;
    const auto headline = headlines.find(one.fingerprint);
    one.summary = headline == headlines.end() ? "found by `check`" : headline->second;
    one.json = json_text(each);
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
  const auto headlines = headlines_of(object);
  std::vector<std::string> parts;
  for (const PredictedKind& kind : kPredictedKinds) {
    uint64_t found = 0;
    for (const Json& each : array_of(object, kind.list)) {
      if (!each.is_object() || each.contains("suppressed_by")) {
        continue;
      }
      ++found;
      SeenFinding& one = end->found.emplace_back();
      one.predicted = true;
      one.fingerprint = text_of(each, "fingerprint");
      one.property = kind.property;
      const auto headline = headlines.find(one.fingerprint);
      one.summary = headline == headlines.end() ? kind.property : headline->second;
      one.json = json_text(each);
    }
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
  std::erase_if(end.found, [](const SeenFinding& one) { return one.fingerprint.empty(); });
  return end;
}

}  // namespace tsomon::service
