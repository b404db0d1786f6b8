// `tsomon monitor`: watches the targets of a configuration, stores what is found, and tells it.
//
// Life        run() goes on until SIGTERM or SIGINT, or until no target can come again; it then has what is known stored and
//             counted within a second. A second such signal ends the process. SIGHUP reads the configuration again:
//             targets that are the same go on, others end or begin; with any mistake in it all stays as it was, and the
//             mistakes are told. The store's folder stays the one that it began with. SIGUSR1: flight recorders are kept.
// Told        Where nobody reads any more, it goes on. Each new finding once; messages, the same one at most once a minute (message_limiter.h).
// Metrics     A textfile for Prometheus (node_exporter's textfile collector), written every few seconds and at the end.
// systemd     READY, RELOADING, STOPPING, and WATCHDOG as long as every target's thread goes on (notify.h).
// Looked at   While it runs: observation.h.
// Embedded    In a program of somebody else's (watcher.h) it leaves signals alone, and does not speak to systemd: run() ends by
//             ask_to_stop().
// Errors      What stops it from beginning: the store. What ends it: the end of its helper (target_access.h). All else is told,
//             and it goes on.
// Misses      Whatever happens outside of slices. Nothing found is never more than that.
// Thread-safety: ask_to_stop() and status() at any time. One in a process, made before other threads: it blocks the signals in
//             all that come; embedded ones: any number.
#pragma once

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "monitor/service/budget.h"
#include "monitor/service/config.h"
#include "monitor/service/kept_analysis.h"
#include "monitor/service/message_limiter.h"
#include "monitor/service/observation.h"
#include "monitor/service/store.h"
#include "monitor/service/target_access.h"
#include "monitor/service/target_watcher.h"

namespace tsomon::service {

// Each call is one at a time.
struct ServiceOutput {
  std::function<void(const NewFinding&)> found;
  std::function<void(const std::string&)> message;
};

class Service {
 public:
  enum class Place { kProgram, kEmbedded };

  // `config_file`: what SIGHUP reads, in messages. `access`: as separate() gives it.
  Service(std::string config_file, ServiceConfig config, std::unique_ptr<ServiceAccess> access,
          ServiceOutput output, Place place = Place::kProgram);
  ~Service();
  // Opens the store, and begins to watch. Once; run() does so where nobody has.
  Result<void> begin();
  Result<void> run();
  void ask_to_stop();
  ServiceStatus status() const { return observation_.status(); }

 private:
  using Clock = std::chrono::steady_clock;

  void tell(const std::string& text);
  bool tell_manager(const std::string& state);
  int next_signal();
  void observe(bool now = false);
  void start(const TargetConfig& target);
  void stop_all();
  void start_analysis();
  void stop_analysis();
  AnalysisCounters analysed() const;
  BudgetLimits budget_limits() const;
  void reload();
  void look_after();
  void write_metrics();
  std::string metrics_text();
  bool all_are_over() const;
  bool all_go_on();

  const std::string config_file_;
  ServiceConfig config_;
  const std::unique_ptr<ServiceAccess> access_;
  const ServiceOutput output_;
  const Place place_;
  const std::string host_;
  std::unique_ptr<Store> store_;
  Budget budget_;
  std::vector<std::unique_ptr<TargetWatcher>> watchers_;
  std::unique_ptr<KeptAnalysis> analysis_;  // none: it is off
  AnalysisCounters analysed_before_;
  std::map<std::string, TargetCounters> before_;  // of watchers that are gone, by the target's name
  Clock::time_point metrics_written_;
  Clock::time_point watchdog_fed_;
  Observation observation_;
  std::mutex stop_mutex_;  // of
  bool stop_ = false;
  std::condition_variable stopped_;
  sigset_t signals_{};
  sigset_t mask_before_{};

  std::mutex mutex_;  // of the output and
  MessageLimiter limiter_;
};

}  // namespace tsomon::service
