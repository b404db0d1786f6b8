// What the service shows of itself while it runs, to whoever may ask.
//
// Purpose     Its status at a socket in the store's folder (kStatusSocket), its metrics at the address that `metrics_listen`
//             names. Both servers read what the service wrote down last: however many ask, and however slowly they
//             read, neither the service nor what watches a target waits for them.
// Protocol    Of the status: "status" and a newline; the answer is one JSON object and a newline (status.h).
// How new     The status: kBetweenLooks. The metrics: as the textfile, which has the same text.
// Errors      A socket that cannot be had is told, and tried again every ten seconds.
// Thread-safety: status() and status_line() all; everything else is the service's thread's.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/service/answering_server.h"
#include "monitor/service/config.h"
#include "monitor/service/status.h"
#include "monitor/service/store.h"
#include "monitor/service/system_time.h"
#include "monitor/service/target_watcher.h"

namespace tsomon::service {

inline constexpr std::string_view kStatusSocket = "status.sock";
inline constexpr std::string_view kStatusRequest = "status\n";

class Observation {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kBetweenLooks{200};

  using Listen = std::function<Result<ListeningSocket>(const ListenAddress&)>;

  Observation(std::string config_file, Listen listen, std::function<void(const std::string&)> tell)
      : config_file_(std::move(config_file)), listen_(std::move(listen)), tell_(std::move(tell)) {}
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;

  // Opens what is to be open by the configuration, and closes what is not.
  void listen(const ServiceConfig& config);
  void close();

  // Writes down what there is to see, if it is time. `before`: of watchers that are gone, by the target's name.
  void look(const ServiceConfig& config, const Store& store,
            const std::vector<std::unique_ptr<TargetWatcher>>& watchers,
            const std::map<std::string, TargetCounters>& before, uint64_t withheld,
            bool now = false);
  bool wants_metrics() const { return metrics_server_ != nullptr; }
  void show_metrics(std::string text);

  // What was written down last.
  ServiceStatus status() const;
  std::string status_line() const;

 private:
  std::unique_ptr<AnsweringServer> open(const ListenAddress& address,
                                        AnsweringServer::Answer answer);
  std::string metrics() const;

  const std::string config_file_;
  const Listen listen_;
  const std::function<void(const std::string&)> tell_;
  const int64_t began_ = now_in_microseconds();
  Clock::time_point looked_;
  Clock::time_point measured_;  // the store
  Clock::time_point tried_;     // to listen
  uint64_t store_bytes_ = 0;
  std::string listens_at_;  // as the configuration has it
  std::map<std::string, RateMeter> meters_;
  std::map<std::string, int64_t> gone_;  // targets, and since when

  mutable std::mutex mutex_;  // of what the servers read; for as long as it takes to copy it
  ServiceStatus status_;
  std::string metrics_;
  mutable std::atomic<bool> asked_{true};

  // Last: they end before what they read.
  std::unique_ptr<AnsweringServer> status_server_;
  std::unique_ptr<AnsweringServer> metrics_server_;
};

}  // namespace tsomon::service
