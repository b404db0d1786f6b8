#include "monitor/service/kept_report.h"

#include <ctime>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "monitor/report/render.h"
#include "monitor/report/results.h"
#include "tso/support/printable.h"

namespace tsomon::service {
namespace {

using Json = nlohmann::ordered_json;

const char* verdict_of(const KeptFinding& finding) {
  return finding.definite ? "definite" : "possible";
}

std::string targets_of(const KeptFinding& finding) {
  std::set<std::string> names;
  for (const KeptFinding::Sighting& sighting : finding.sightings) {
    names.insert(printable(sighting.place.target));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

Json witness_of(const KeptFinding& finding) {
  Json object = Json::parse(finding.json, nullptr, false);
  return object.is_object() ? object : Json::object();
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
  }
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
  return object;
}

Json kept_result_json(const KeptFinding& finding, const std::string& suppressed) {
  Json whole = witness_of(finding);
  whole.update(kept_json(finding, suppressed));
  return {{"file", targets_of(finding)},    {"property", finding.property},
          {"verdict", verdict_of(finding)}, {"complete", false},
          {"tool", "tsomon findings"},      {"findings", Json::array({std::move(whole)})}};
}

}  // namespace tsomon::service
