#include "monitor/service/status.h"

#include "monitor/service/kept_report.h"

namespace tsomon::service {
namespace {

constexpr std::chrono::milliseconds kBetweenSamples{500};

using Json = nlohmann::ordered_json;

double in_seconds(std::chrono::microseconds time) {
  return static_cast<double>(time.count()) / 1e6;
}

double ratio(std::chrono::microseconds part, std::chrono::microseconds whole) {
  return whole.count() == 0
             ? 0
             : static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json rates_json(const TargetRates& rates) {
  return {{"seconds", rates.seconds},      {"slices", rates.slices},
          {"events", rates.events},        {"lost_events", rates.lost_events},
          {"units", rates.units},          {"candidates", rates.candidates},
          {"violations", rates.violations}};
}

Json verdicts_json(const TargetCounters& counters) {
  Json list = Json::array();
  for (const auto& [key, count] : counters.judged) {
    list.push_back({{"property", key.first}, {"verdict", key.second}, {"slices", count}});
  }
  return list;
}

Json reasons_json(const std::map<std::string, uint64_t>& by_reason) {
  Json list = Json::array();
  for (const auto& [reason, count] : by_reason) {
    list.push_back({{"reason", reason}, {"slices", count}});
  }
  return list;
}

Json target_json(const TargetStatus& target) {
  const TargetSituation& now = target.situation;
  const TargetCounters& sum = target.counters;
  Json properties = Json::array();
  for (const Property property : target.properties) {
    properties.push_back(property_name(property));
  }
  Json object = {
      {"name", target.name},
      {"state", target_state_name(now.state)},
      {"why", text_or_null(now.why)},
      {"pid", now.pid == 0 ? Json() : Json(now.pid)},
      {"since", time_text(now.since)},
      {"properties", std::move(properties)},
      {"sample", target.sample},
      {"share", ratio(sum.sampling.everything().watched, sum.sampling.elapsed)},
      {"watched_seconds", in_seconds(sum.sampling.everything().watched)},
      {"elapsed_seconds", in_seconds(sum.sampling.elapsed)},
      {"max_overhead", target.max_overhead == 0 ? Json() : Json(target.max_overhead)},
      {"cost",
       {{"target", ratio(sum.sampling.cost, sum.sampling.used)},
        {"monitor", ratio(sum.sampling.judging, sum.sampling.used)},
        {"process_seconds", in_seconds(sum.sampling.used)},
        {"watching_seconds", in_seconds(sum.sampling.cost)},
        {"judging_seconds", in_seconds(sum.sampling.judging)}}},
      {"slices",
       {{"planned", sum.sampling.planned},
        {"recorded", sum.sampling.slices()},
        {"dropped", reasons_json(sum.sampling.dropped)},
        {"judged", sum.judged_slices},
        {"without_threads", sum.sampling.without_threads},
        {"without_accesses", sum.sampling.without_accesses}}},
      {"events",
       {{"sent", sum.sent_events()},
        {"seen", sum.seen_events},
        {"lost", sum.lost_events},
        {"unjudged", sum.unjudged_events}}},
      {"units", {{"seen", sum.units}, {"cut", sum.sampling.cut_units}}},
      {"candidates", sum.candidates},
      {"verdicts", verdicts_json(sum)},
      {"inconclusive", reasons_json(sum.inconclusive)},
      {"violations", {{"seen", sum.violations}, {"suppressed", sum.suppressed}}},
      {"new_findings", sum.new_findings},
      {"not_stored", sum.not_stored},
      {"refusals", sum.refusals},
      {"rates", rates_json(target.rates)},
  };
  object["last_message"] = now.message.empty()
                               ? Json()
                               : Json{{"time", time_text(now.message_time)}, {"text", now.message}};
  return object;
}

}  // namespace

void RateMeter::add(Time now, const TargetCounters& counters) {
  if (!samples_.empty() && now - samples_.back().at < kBetweenSamples) {
    return;
  }
  const auto number = [](uint64_t value) { return static_cast<double>(value); };
  samples_.push_back({now,
                      {0, number(counters.sampling.slices()), number(counters.seen_events),
                       number(counters.lost_events), number(counters.units),
                       number(counters.candidates), number(counters.violations)}});
  while (samples_.size() > 2 && now - samples_[1].at >= kRateTime) {
    samples_.pop_front();
  }
}

TargetRates RateMeter::rates() const {
  TargetRates rates;
  if (samples_.size() < 2) {
    return rates;
  }
  const TargetRates& first = samples_.front().sums;
  const TargetRates& last = samples_.back().sums;
  rates.seconds = std::chrono::duration<double>(samples_.back().at - samples_.front().at).count();
  for (double TargetRates::*const each :
       {&TargetRates::slices, &TargetRates::events, &TargetRates::lost_events, &TargetRates::units,
        &TargetRates::candidates, &TargetRates::violations}) {
    rates.*each = (last.*each - first.*each) / rates.seconds;
  }
  return rates;
}

Json status_json(const ServiceStatus& status) {
  Json targets = Json::array();
  for (const TargetStatus& target : status.targets) {
    targets.push_back(target_json(target));
  }
  return {{"version", TSOMON_VERSION},
          {"pid", status.pid},
          {"since", time_text(status.began)},
          {"time", time_text(status.time)},
          {"up_seconds", static_cast<double>(status.time - status.began) / 1e6},
          {"config", text_or_null(status.config_file)},
          {"store",
           {{"folder", status.store},
            {"bytes", status.store_bytes},
            {"bound_bytes", status.store_bound}}},
          {"metrics", text_or_null(status.metrics)},
          {"metrics_listen", text_or_null(status.metrics_listen)},
          {"withheld_messages", status.withheld_messages},
          {"requests", {{"answered", status.answered}, {"cut_off", status.cut_off}}},
          {"targets", std::move(targets)}};
}

}  // namespace tsomon::service
