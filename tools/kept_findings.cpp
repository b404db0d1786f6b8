#include "tools/kept_findings.h"

#include <filesystem>
#include <utility>

#include "monitor/findings/finding_filter.h"
#include "monitor/service/kept_report.h"
#include "tools/command.h"
#include "tools/output.h"

namespace tsomon {
namespace {

using service::KeptFinding;
using service::Store;

// What the store's own suppressions say of its findings.
class StoreSuppressions {
 public:
  static Result<StoreSuppressions> read(const Store& store) {
    StoreSuppressions known;
    if (std::error_code error; std::filesystem::exists(store.suppressions_file(), error)) {
      auto filter = FindingFilter::read({store.suppressions_file()}, {});
      if (!filter) {
        return tl::unexpected<Error>(filter.error());
      }
      known.filter_ = std::move(*filter);
    }
    return known;
  }
  // The line that `suppress` has written; others ask for more than a store knows.
  std::string hides(const KeptFinding& finding) {
    FindingPlaces places;
    places.fingerprint = finding.fingerprint;
    return filter_.hides(places);
  }

 private:
  FindingFilter filter_;
};

}  // namespace

int refuse_store(std::string_view tool, const Error& error) {
  put_message(tool, error.to_string());
  return error.kind == ErrorKind::kEnvironment ? kExitEnvironment : kExitBadInput;
}

int show_findings(Store& store, const std::optional<std::string>& id, OutputFormat output,
                  std::string_view tool) {
  const auto kept = id ? store.find(*id) : store.findings();
  if (!kept) {
    return refuse_store(tool, kept.error());
  }
  auto suppressions = StoreSuppressions::read(store);
  if (!suppressions) {
    return refuse_store(tool, suppressions.error());
  }
  for (const KeptFinding& each : *kept) {
    const std::string by = suppressions->hides(each);
    if (output == OutputFormat::kJson) {
      put_json(stdout, id ? kept_result_json(each, by) : kept_json(each, by), tool);
    } else {
      put_lines(stdout, id ? kept_report(each, by) : kept_lines(each, by));
    }
  }
  if (kept->empty() && output == OutputFormat::kText) {
    put_lines(stdout, "no finding is kept; which is not that there is none\n");
  }
  return kExitClean;
}

}  // namespace tsomon
