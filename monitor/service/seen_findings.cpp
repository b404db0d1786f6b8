#include "monitor/service/seen_findings.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "monitor/findings/result_json.h"
#include "monitor/report/json_fields.h"
#include "monitor/report/results.h"
#include "monitor/service/predicted_kind.h"

namespace tsomon::service {
namespace {

using SeenJson = nlohmann::ordered_json;
using report::array_of;
using report::text_of;

// By fingerprint, in one line each.
std::map<std::string, std::string> headlines_of(const SeenJson& object) {
  report::Results results;
  results.add(object, "slice");
  results.finish();
  std::map<std::string, std::string> headlines;
  for (const report::Finding& finding : results.findings()) {
    headlines.emplace(finding.fingerprint, finding.headline);
  }
  return headlines;
}

class SeenList {
 public:
  explicit SeenList(const SeenJson& object) : headlines_(headlines_of(object)) {}

  SeenFinding* add(const SeenJson& each, const std::string& property, const char* otherwise) {
    const std::string fingerprint = text_of(each, "fingerprint");
    if (fingerprint.empty() || each.contains("suppressed_by")) {
      return nullptr;
    }
    SeenFinding& one = found_.emplace_back();
    one.fingerprint = fingerprint;
    one.property = property;
    const auto headline = headlines_.find(fingerprint);
    one.summary = headline == headlines_.end() ? otherwise : headline->second;
    one.json = json_text(each);
    return &one;
  }
  std::vector<SeenFinding> take() { return std::move(found_); }

 private:
  std::map<std::string, std::string> headlines_;
  std::vector<SeenFinding> found_;
};

}  // namespace

std::vector<SeenFinding> seen_by_check(const SeenJson& object) {
  SeenList list(object);
  const std::string property = text_of(object, "property");
  report::for_each_object(array_of(object, "findings"), [&](const SeenJson& each) {
    if (SeenFinding* const one = list.add(each, property, "found by `check`"); one != nullptr) {
      one->definite = text_of(each, "verdict") == "definite";
      one->count = std::max<uint64_t>(report::number_of(each, "count"), 1);
    }
  });
  return list.take();
}

std::vector<SeenFinding> seen_by_predict(const SeenJson& object) {
  SeenList list(object);
  for (const PredictedKind& kind : kPredictedKinds) {
    report::for_each_object(array_of(object, kind.list), [&](const SeenJson& each) {
      if (SeenFinding* const one = list.add(each, kind.property, kind.property); one != nullptr) {
        one->predicted = true;
      }
    });
  }
  return list.take();
}

}  // namespace tsomon::service
