#include <cctype>
#include <set>

#include <fmt/format.h>

#include "monitor/findings/result_json.h"
#include "monitor/report/json_list.h"
#include "monitor/report/render.h"
#include "tso/support/printable.h"

namespace tsomon::report {
namespace {

using Json = nlohmann::ordered_json;

// A path as an URI, RFC 3986: of an absolute one with its scheme.
std::string uri_of(const std::string& path) {
  std::string uri = path.rfind('/', 0) == 0 ? "file://" : "";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && (std::isalnum(byte) != 0 ||
                        std::string_view("/-._~+@,=").find(c) != std::string_view::npos)) {
      uri += c;
    } else {
      uri += fmt::format("%{:02X}", byte);
    }
  }
  return uri;
}

// A name may look like a placeholder, "{0}", or like a link, "[text](target)": it is neither.
Json literal_message(const std::string& text) {
  const std::string shown = printable(text);
  const size_t last_link = shown.rfind("](");
  std::string literal;
  for (size_t i = 0; i < shown.size(); ++i) {
    const size_t end = shown[i] == '{' ? shown.find_first_not_of("0123456789", i + 1) : 0;
    if (end != std::string::npos && end > i + 1 && shown[end] == '}') {
      literal += "{" + shown.substr(i, end + 1 - i) + "}";
      i = end;
    } else {
      const bool link = shown[i] == '[' && last_link != std::string::npos && i < last_link;
      literal += link ? "\\[" : std::string(1, shown[i]);
    }
  }
  return {{"text", literal}};
}

Json location_of(const Place& place, const std::string& message) {
  Json location = Json::object();
  if (!place.file.empty()) {
    location["physicalLocation"] = {{"artifactLocation", {{"uri", uri_of(place.file)}}}};
    if (place.line != 0) {
      location["physicalLocation"]["region"] = {{"startLine", place.line}};
    }
  }
  const std::string& name = place.function.empty() ? place.text : place.function;
  if (!name.empty()) {
    location["logicalLocations"] = Json::array({{{"fullyQualifiedName", printable(name)}}});
  }
  if (!message.empty()) {
    location["message"] = literal_message(message);
  }
  return location;
}

// A flow for each thread; the numbers of the steps say in which order they happen.
Json flows_of(const Finding& finding) {
  const Threads threads(finding);
  std::vector<Json> locations(threads.names().size(), Json::array());
  uint64_t number = 0;
  for (const Step& step : steps_of(finding)) {
    const Access& access = *finding.access(step.event);
    locations[threads.number(access.thread)].push_back(
        {{"location", location_of(access.place, access.thread + " " + step_text(access, step))},
         {"executionOrder", ++number}});
  }
  Json flows = Json::array();
  for (size_t i = 0; i < locations.size(); ++i) {
    if (!locations[i].empty()) {
      flows.push_back(
          {{"id", printable(threads.names()[i])}, {"locations", std::move(locations[i])}});
    }
  }
  return flows;
}

std::string message_of(const Finding& finding) {
  std::string text = finding.verdict + ": " + finding.headline;
  for (const std::string& detail : finding.details) {
    text += ". " + detail;
  }
  if (!finding.repair.empty()) {
    text += ". What would rule it out: " + finding.repair;
  }
  if (!finding.replay.empty()) {
    text += ". tsomon explore --replay '" + finding.replay + "'";
  }
  return text;
}

Json result_of(const Finding& finding) {
  Json result = {{"ruleId", finding.rule},
                 {"level", finding.certain() ? "error" : "warning"},
                 {"message", literal_message(message_of(finding))}};
  if (const Place* const place = finding.place()) {
    result["locations"] = Json::array({location_of(*place, {})});
  }
  Json related = Json::array();
  for (const Access& access : finding.accesses) {
    Json location =
        location_of(access.place, access.thread + " " + step_text(access, {access.event, false}));
    location["id"] = related.size() + 1;
    related.push_back(std::move(location));
  }
  for (const Place& place : finding.places) {
    Json location = location_of(place, {});
    location["id"] = related.size() + 1;
    related.push_back(std::move(location));
  }
  if (!related.empty()) {
    result["relatedLocations"] = std::move(related);
  }
  Json threads = flows_of(finding);
  if (!threads.empty()) {
    result["codeFlows"] = Json::array({{{"threadFlows", std::move(threads)}}});
  }
  if (!finding.fingerprint.empty()) {
    result["partialFingerprints"] = {{"tsomon/v1", finding.fingerprint}};
  }
  result["occurrenceCount"] = finding.times;
  Json inputs = Json::array();
  for (const std::string& input : finding.inputs) {
    inputs.push_back(printable(input));
  }
  result["properties"] = {{"verdict", finding.verdict}, {"inputs", std::move(inputs)}};
  return result;
}

Json notes_of(const Results& results) {
  Json notes = Json::array();
  const auto add = [&](const std::string& text) {
    notes.push_back({{"level", "warning"}, {"message", literal_message(text)}});
  };
  for (const Judged& judged : results.judged()) {
    for (const std::string& note : judged.notes) {
      add(judged.name + ": " + note);
    }
  }
  for (const std::string& problem : results.problems()) {
    add(problem);
  }
  return notes;
}

}  // namespace

void write_sarif(const Results& results, std::string_view version, std::ostream& out) {
  std::set<std::string> used;
  for (const Finding& finding : results.findings()) {
    used.insert(finding.rule);
  }
  Json rules = Json::array();
  for (const std::string& id : used) {
    const Rule& rule = rule_of(id);
    rules.push_back({{"id", rule.id},
                     {"name", rule.name},
                     {"shortDescription", {{"text", rule.name}}},
                     {"fullDescription", {{"text", rule.help}}}});
  }
  bool judged = true;  // everything
  for (const Judged& each : results.judged()) {
    judged = judged && !each.verdict.empty();
  }
  const Json tool = {
      {"driver", {{"name", "tsomon"}, {"version", version}, {"rules", std::move(rules)}}}};
  const Json invocations =
      Json::array({{{"executionSuccessful", judged && results.problems().empty()},
                    {"toolExecutionNotifications", notes_of(results)}}});
  out << R"({"version":"2.1.0","$schema":"https://json.schemastore.org/sarif-2.1.0.json",)"
      << R"("runs":[{"tool":)" << json_text(tool) << ",\n"
      << R"("columnKind":"utf16CodeUnits","invocations":)" << json_text(invocations) << ",\n"
      << R"("results":)";
  JsonList list(&out);
  for (const Finding& finding : results.findings()) {
    list.add(result_of(finding));
  }
  list.end();
  out << "}]}\n";
}

}  // namespace tsomon::report
