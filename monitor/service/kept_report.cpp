#include "monitor/service/kept_report.h"

#include <algorithm>
#include <ctime>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "monitor/report/json_fields.h"
#include "monitor/report/render.h"
#include "monitor/report/results.h"
#include "monitor/service/predicted_kind.h"
#include "tso/support/printable.h"

namespace tsomon::service {
namespace {

using Json = nlohmann::ordered_json;

const char* verdict_of(const KeptFinding& finding) {
  return finding.predicted ? "predicted" : finding.definite ? "definite" : "possible";
}

std::string targets_of(const KeptFinding& finding) {
  std::set<std::string> names;
  for (const KeptFinding::Sighting& sighting : finding.sightings) {
    names.insert(printable(sighting.place.target));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

Json object_of(const std::string& text) {
  Json object = Json::parse(text, nullptr, false);
  return object.is_object() ? object : Json::object();
}

std::string shown_text(const Json& object, const char* key) {
  return printable(report::text_of(object, key));
}

// "a.cpp:1 to a.cpp:7".
std::string span_of(const Json& block, const char* between = " to ") {
  std::vector<std::string> ends;
  for (const std::string& each : report::texts_of(report::array_of(block, "locations"))) {
    ends.push_back(printable(each));
  }
  return fmt::format("{}", fmt::join(ends, between));
}

std::string repair_lines(const Json& repair) {
  const auto verified = repair.find("verified");
  const bool is_known = verified != repair.end() && verified->is_boolean();
  std::string lines = fmt::format("    repair, {}:\n", !is_known               ? "not verified"
                                                       : verified->get<bool>() ? "verified"
                                                                               : "refuted");
  report::for_each_object(report::array_of(repair, "blocks"), [&](const Json& block) {
    lines += fmt::format("        make atomic: unit {}, {}\n", shown_text(block, "unit"),
                         span_of(block));
    if (const auto lock = block.find("lock"); lock != block.end() && lock->is_object()) {
      lines += fmt::format("        lock: hold {} over it\n", shown_text(*lock, "name"));
    }
  });
  report::for_each_object(report::array_of(repair, "fences"), [&](const Json& fence) {
    lines += fmt::format("        fence after {}\n", shown_text(fence, "location"));
  });
  return lines;
}

// The cause is what the best repair takes away.
std::string explanation_lines(const std::string& explanation) {
  const Json object = object_of(explanation);
  std::string lines;
  report::for_each_object(report::array_of(object, "eliminators"), [&](const Json& repair) {
    if (lines.empty()) {
      report::for_each_object(report::array_of(repair, "blocks"), [&](const Json& block) {
        lines += fmt::format("    cause: unit {} is interrupted between {}\n",
                             shown_text(block, "unit"), span_of(block, " and "));
      });
      report::for_each_object(report::array_of(repair, "fences"), [&](const Json& fence) {
        lines += fmt::format("    cause: the store at {} may commit late\n",
                             shown_text(fence, "location"));
      });
    }
    lines += repair_lines(repair);
  });
  return lines;
}

const char* state_name(SliceAnalysis::State state) {
  return state == SliceAnalysis::State::kBegun  ? "begun"
         : state == SliceAnalysis::State::kDone ? "done"
                                                : "left";
}

std::string analysis_line(const SliceAnalysis& analysis) {
  return fmt::format("        {}{}{}: {}\n", name_of(analysis.what),
                     analysis.property.empty() ? "" : " ", printable(analysis.property),
                     analysis.state == SliceAnalysis::State::kBegun
                         ? fmt::format("begun {} times", analysis.tries)
                         : printable(analysis.result));
}

// The list of `predict` that a finding of this property is in.
const char* list_of(const std::string& property) {
  const auto* const kind =
      std::find_if(kPredictedKinds.begin(), kPredictedKinds.end(),
                   [&](const PredictedKind& each) { return property == each.property; });
  return kind == kPredictedKinds.end() ? kPredictedKinds.front().list : kind->list;
}

}  // namespace

std::string time_text(int64_t time) {
  const auto seconds = static_cast<std::time_t>(time / 1'000'000);
  std::tm parts{};
  if (::gmtime_r(&seconds, &parts) == nullptr) {
    return "?";
  }
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", int64_t{parts.tm_year} + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string kept_lines(const KeptFinding& finding, const std::string& suppressed) {
  return fmt::format(
      "{} {} {}: {} times in {} slices of {}, {} to {}{}\n    {}\n", printable(finding.fingerprint),
      verdict_of(finding), printable(finding.property), finding.count, finding.slices,
      targets_of(finding), time_text(finding.first_seen), time_text(finding.last_seen),
      suppressed.empty() ? "" : fmt::format(" (suppressed: {})", printable(suppressed)),
      printable(finding.summary));
}

std::string kept_report(const KeptFinding& finding, const std::string& suppressed) {
  std::string out = kept_lines(finding, suppressed);
  for (const KeptFinding::Sighting& sighting : finding.sightings) {
    out +=
        fmt::format("    {} on {}, build {}: {} times, {} to {}\n",
                    printable(sighting.place.target), printable(sighting.place.host),
                    sighting.place.build.empty() ? "not known" : printable(sighting.place.build),
                    sighting.count, time_text(sighting.first_seen), time_text(sighting.last_seen));
  }
  for (const std::string& file : finding.files) {
    out += fmt::format("    slice {}\n", printable(file));
    for (const SliceAnalysis& analysis : finding.analyses) {
      out += analysis.file == file ? analysis_line(analysis) : std::string();
    }
  }
  if (finding.predicted) {
    out +=
        "    predicted from these slices: it was not seen, but could have been in another "
        "schedule, "
        "unless something that the slice does not show rules that out\n";
  }
  out += explanation_lines(finding.explanation);
  report::Results results;
  results.add(kept_result_json(finding, {}), "store");
  results.finish();
  std::ostringstream text;
  report::write_text(results, text);
  return out + "\n" + text.str();
}

Json kept_json(const KeptFinding& finding, const std::string& suppressed) {
  Json object = {{"fingerprint", finding.fingerprint},
                 {"property", finding.property},
                 {"verdict", verdict_of(finding)},
                 {"count", finding.count},
                 {"slices", finding.slices},
                 {"first_seen", time_text(finding.first_seen)},
                 {"last_seen", time_text(finding.last_seen)},
                 {"summary", finding.summary}};
  if (!suppressed.empty()) {
    object["suppressed_by"] = suppressed;
  }
  Json& sightings = object["sightings"] = Json::array();
  for (const KeptFinding::Sighting& sighting : finding.sightings) {
    sightings.push_back({{"target", sighting.place.target},
                         {"host", sighting.place.host},
                         {"build", sighting.place.build},
                         {"count", sighting.count},
                         {"first_seen", time_text(sighting.first_seen)},
                         {"last_seen", time_text(sighting.last_seen)}});
  }
  object["files"] = finding.files;
  if (!finding.explanation.empty()) {
    object["explanation"] = object_of(finding.explanation);
  }
  Json& analyses = object["analyses"] = Json::array();
  for (const SliceAnalysis& analysis : finding.analyses) {
    analyses.push_back({{"file", analysis.file},
                        {"what", name_of(analysis.what)},
                        {"property", analysis.property},
                        {"state", state_name(analysis.state)},
                        {"tries", analysis.tries},
                        {"crashes", analysis.crashes},
                        {"result", analysis.result}});
  }
  return object;
}

Json kept_result_json(const KeptFinding& finding, const std::string& suppressed) {
  Json whole = object_of(finding.json);
  whole.update(kept_json(finding, suppressed));
  if (finding.predicted) {
    return {{"file", targets_of(finding)},
            {"verdict", verdict_of(finding)},
            {"complete", false},
            {"tool", "tsomon findings"},
            {"kinds", Json::array({finding.property})},
            {list_of(finding.property), Json::array({std::move(whole)})}};
  }
  return {{"file", targets_of(finding)},    {"property", finding.property},
          {"verdict", verdict_of(finding)}, {"complete", false},
          {"tool", "tsomon findings"},      {"findings", Json::array({std::move(whole)})}};
}

std::string incident_lines(const Incident& incident) {
  std::string lines =
      fmt::format("{} {} {}: {}: {} of {} slices are kept\n", incident.number,
                  time_text(incident.happened), printable(incident.place.target),
                  printable(incident.reason), incident.files.size(), incident.slices);
  for (const std::string& file : incident.files) {
    lines += fmt::format("    slice {}\n", printable(file));
  }
  return lines;
}

Json incident_json(const Incident& incident) {
  return {{"incident", incident.number},     {"time", time_text(incident.happened)},
          {"target", incident.place.target}, {"host", incident.place.host},
          {"build", incident.place.build},   {"reason", incident.reason},
          {"slices", incident.slices},       {"files", incident.files}};
}

}  // namespace tsomon::service
