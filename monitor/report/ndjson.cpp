#include <ostream>

#include "monitor/findings/result_json.h"
#include "monitor/report/render.h"

namespace tsomon::report {
namespace {

using Json = nlohmann::ordered_json;

Json place_json(const Place& place) {
  Json object = {{"text", place.text}};
  if (!place.function.empty()) {
    object["function"] = place.function;
  }
  if (!place.file.empty()) {
    object["file"] = place.file;
    object["line"] = place.line;
  }
  return object;
}

}  // namespace

void write_ndjson(const Results& results, std::ostream& out) {
  for (const Finding& finding : results.findings()) {
    Json object = {{"kind", finding.rule},     {"verdict", finding.verdict},
                   {"text", finding.headline}, {"fingerprint", finding.fingerprint},
                   {"count", finding.times},   {"inputs", finding.inputs}};
    Json accesses = Json::array();
    for (const Access& access : finding.accesses) {
      accesses.push_back({{"event", access.event},
                          {"thread", access.thread},
                          {"access", access.what},
                          {"place", place_json(access.place)}});
    }
    Json places = Json::array();
    for (const Place& place : finding.places) {
      places.push_back(place_json(place));
    }
    object["accesses"] = std::move(accesses);
    object["places"] = std::move(places);
    if (!finding.details.empty()) {
      object["details"] = finding.details;
    }
    if (!finding.repair.empty()) {
      object["repair"] = finding.repair;
    }
    if (!finding.replay.empty()) {
      object["replay"] = finding.replay;
    }
    out << json_text(object) << '\n';
  }
}

}  // namespace tsomon::report
