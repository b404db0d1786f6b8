// What `run` and `attach` print of a watch: findings as they come, a summary at the end.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "monitor/judge/watch.h"
#include "tools/output_option.h"

namespace tsomon {

struct ReportOutput {
  OutputFormat format = OutputFormat::kText;
  FILE* file = stdout;
  std::string tool;  // "tsomon run"
};

void print_found(const ReportedFinding& found, const ReportOutput& output);
// `more`: fields that the object ends with.
void print_watch_summary(const std::string& name, const WatchSummary& summary,
                         const ReportOutput& output,
                         const nlohmann::ordered_json& more = nlohmann::ordered_json::object());
// Of all properties: a violation of one counts more than that another was not decided.
int watch_exit_status(const std::vector<WatchSummary>& summaries);

// One for each name, with these orders.
std::vector<WatchOptions> watches_of(const std::vector<std::string>& names,
                                     const RelationOptions& relation,
                                     SetChoice sets = SetChoice::kAuto);

}  // namespace tsomon
