// What `run` and `attach` print of a watch: findings as they come, a summary at the end.
#pragma once

#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "monitor/findings/finding_filter.h"
#include "monitor/findings/finding_summary.h"
#include "monitor/judge/watch.h"
#include "tools/command.h"
#include "tools/output_option.h"

namespace tsomon {

struct ReportOutput {
  OutputFormat format = OutputFormat::kText;
  FILE* file = stdout;
  std::string tool;  // "tsomon run"
  TextShape shape = {};
};

// What is found is told as it comes; what the filter hides is told to programs alone, marked.
class WatchReport {
 public:
  // `filter` may be nullptr.
  WatchReport(ReportOutput output, FindingFilter* filter)
      : output_(std::move(output)), filter_(filter) {}

  // Whether it counts: nothing hides it. If so `first` is called before it is told.
  bool found(const ReportedFinding& found, const std::function<void()>& first);
  // At the end. `more`: fields that the object ends with.
  void summary(const std::string& name, const WatchSummary& summary,
               const nlohmann::ordered_json& more = nlohmann::ordered_json::object());
  // Of all properties that were summed up: a violation of one counts more than that another was not decided.
  int exit_status() const { return status_; }

 private:
  HiddenFindings& hidden(Property property) {
    return hidden_.try_emplace(property, filter_).first->second;
  }

  const ReportOutput output_;
  FindingFilter* filter_;
  std::map<Property, HiddenFindings> hidden_;  // what was found
  std::map<Property, std::string> first_;      // in one line, of the gravest
  std::map<Property, TornParts> torn_;         // of those that were told
  int status_ = kExitClean;
};

// One for each name, with these orders.
std::vector<WatchOptions> watches_of(const std::vector<std::string>& names,
                                     const RelationOptions& relation,
                                     SetChoice sets = SetChoice::kAuto);

}  // namespace tsomon
