// What a running service is doing, at one moment.
//
// Purpose     The service writes it down several times a second; whoever asks gets what was written last (observation.h).
// Adds up     In each target, at any moment: slices that were recorded are those that were judged and those in which no thread took
//             part; of each property as many have a verdict as were judged; events that were sent are those that were
//             seen and those that were lost.
// Rates       Over the last seconds, at most kRateTime.
// Complexity  O(targets). Thread-safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <sys/types.h>

#include "monitor/service/target_journal.h"
#include "monitor/service/target_watcher.h"

namespace tsomon::service {

struct TargetRates {
  double seconds = 0;  // 0: nothing is known yet
  double slices = 0;   // all others a second
  double events = 0;
  double lost_events = 0;
  double units = 0;
  double candidates = 0;
  double violations = 0;
};

class RateMeter {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kRateTime{5};

  void add(Time now, const TargetCounters& counters);
  TargetRates rates() const;

 private:
  struct Sample {
    Time at;
    TargetRates sums;  // its `seconds` is not looked at
  };
  std::deque<Sample> samples_;
};

struct TargetStatus {
  std::string name;
  TargetSituation situation;
  TargetCounters counters;
  TargetRates rates;
  std::vector<Property> properties;
  double sample = 0;        // that was asked for
  double max_overhead = 0;  // 0: any
};

struct ServiceStatus {
  pid_t pid = 0;
  int64_t began = 0;  // microseconds since 1970, as
  int64_t time = 0;   // ... of this
  std::string config_file;
  std::string store;
  uint64_t store_bytes = 0;
  uint64_t store_bound = 0;
  std::string metrics;         // textfile; empty: none
  std::string metrics_listen;  // where they can be asked for; empty: nowhere
  uint64_t withheld_messages = 0;
  uint64_t answered = 0;  // requests, at both sockets
  uint64_t cut_off = 0;   // connections
  std::vector<TargetStatus> targets;
};

// docs/guide/monitor.md has its members.
nlohmann::ordered_json status_json(const ServiceStatus& status);

}  // namespace tsomon::service
