// Metrics of what was planned and what came of it, and of analyses of kept slices.
//
// Complexity  O(size). Thread-safety: pure functions.
#pragma once

#include <map>
#include <string>

#include "monitor/service/kept_analysis.h"
#include "monitor/service/metrics.h"
#include "monitor/service/target_watcher.h"

namespace tsomon::service {

// By the target's name.
void add_plan_metrics(const std::map<std::string, TargetCounters>& counters, MetricsText* metrics);
void add_analysis_metrics(const AnalysisCounters& counters, MetricsText* metrics);

}  // namespace tsomon::service
