// What `run` and `attach` print of a watch: findings as they come, a summary at the end.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "monitor/watch.h"
#include "tools/output_option.h"

namespace tsomon {

struct ReportOutput {
  OutputFormat format = OutputFormat::kText;
  FILE* file = stdout;
  std::string tool;  // "tsomon run"
};

void print_found(const Found& found, const ReportOutput& output);
// `more`: fields that the object ends with.
void print_watch_summary(const std::string& name, const std::string& property,
                         const WatchSummary& summary, const ReportOutput& output,
                         const nlohmann::ordered_json& more = nlohmann::ordered_json::object());
int watch_exit_status(Verdict verdict);

}  // namespace tsomon
