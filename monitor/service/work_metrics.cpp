#include "monitor/service/work_metrics.h"

namespace tsomon::service {
namespace {

using Type = MetricsText::Type;

double seconds(std::chrono::microseconds time) { return static_cast<double>(time.count()) / 1e6; }

}  // namespace

void add_plan_metrics(const std::map<std::string, TargetCounters>& counters, MetricsText* metrics) {
  const auto family = [&](const char* name, const char* help, const auto& value) {
    metrics->family(name, Type::kCounter, help);
    for (const auto& [target, of] : counters) {
      metrics->sample({{"target", target}}, value(of));
    }
  };
  family("tsomon_planned_slices_total",
         "Slices whose moment came: those that were recorded and those that were dropped.",
         [](const TargetCounters& c) { return static_cast<double>(c.sampling.planned); });
  metrics->family("tsomon_dropped_slices_total", Type::kCounter,
                  "Slices that were planned and not recorded, by reason.");
  for (const auto& [target, of] : counters) {
    for (const auto& [reason, count] : of.sampling.dropped) {
      metrics->sample({{"target", target}, {"reason", reason}}, static_cast<double>(count));
    }
  }
  family("tsomon_gap_seconds_total", "Time for which dropped slices were planned.",
         [](const TargetCounters& c) { return seconds(c.sampling.gaps); });
  family("tsomon_shortened_slices_total", "Slices that ended early, as they had too many records.",
         [](const TargetCounters& c) { return static_cast<double>(c.sampling.shortened); });
  family("tsomon_delayed_slices_total",
         "Slices whose moment had passed while another one was judged.",
         [](const TargetCounters& c) { return static_cast<double>(c.sampling.delayed); });
  family("tsomon_delay_seconds_total", "By how much they were late, in all.",
         [](const TargetCounters& c) { return seconds(c.sampling.delay); });
  family("tsomon_sent_events_total", "Events of the slices that were judged: seen and lost ones.",
         [](const TargetCounters& c) { return static_cast<double>(c.sent_events()); });
  metrics->family("tsomon_lost_events_total", Type::kCounter,
                  "Events of these slices that were lost: not recorded, or left when judging met a "
                  "bound.");
  for (const auto& [target, of] : counters) {
    metrics->sample({{"target", target}, {"reason", "recording"}},
                    static_cast<double>(of.lost_events));
    metrics->sample({{"target", target}, {"reason", "judging"}},
                    static_cast<double>(of.unjudged_events));
  }
  family("tsomon_incidents_total", "Incidents that flight recorders have kept.",
         [](const TargetCounters& c) { return static_cast<double>(c.incidents); });
}

void add_analysis_metrics(const AnalysisCounters& counters, MetricsText* metrics) {
  metrics->family("tsomon_analyses_total", Type::kCounter,
                  "Analyses of kept slices, by how they ended.");
  for (const auto& [key, count] : counters.ended) {
    metrics->sample({{"what", key.first}, {"end", key.second}}, static_cast<double>(count));
  }
  metrics->family("tsomon_analysis_seconds_total", Type::kCounter,
                  "Processor time of analyses of kept slices.");
  metrics->sample({}, seconds(counters.used));
  metrics->family("tsomon_predicted_findings_total", Type::kCounter,
                  "Predictions that the store did not have.");
  metrics->sample({}, static_cast<double>(counters.predicted));
  metrics->family("tsomon_explained_slices_total", Type::kCounter,
                  "Slices with an explanation of what they show.");
  metrics->sample({}, static_cast<double>(counters.explained));
}

}  // namespace tsomon::service
