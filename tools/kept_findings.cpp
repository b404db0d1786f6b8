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

void put_kept(const std::vector<KeptFinding>& findings,
              const std::function<std::string(const KeptFinding&)>& hidden, bool whole,
              OutputFormat output, std::string_view tool) {
  for (const KeptFinding& each : findings) {
    const std::string by = hidden(each);
    if (output == OutputFormat::kJson) {
      put_json(stdout, whole ? kept_result_json(each, by) : kept_json(each, by), tool);
    } else {
      put_lines(stdout, whole ? kept_report(each, by) : kept_lines(each, by));
    }
  }
  if (findings.empty() && output == OutputFormat::kText) {
    put_lines(stdout, "no finding is kept; which is not that there is none\n");
  }
}

int show_findings(Store& store, const std::optional<std::string>& id, OutputFormat output,
                  std::string_view tool) {
  const auto kept = id ? store.find(*id) : store.findings();
  if (!kept) {
    return put_error(tool, kept.error());
  }
  auto suppressions = StoreSuppressions::read(store);
  if (!suppressions) {
    return put_error(tool, suppressions.error());
  }
  put_kept(
      *kept, [&](const KeptFinding& each) { return suppressions->hides(each); }, id.has_value(),
      output, tool);
  return kExitClean;
}

}  // namespace tsomon
