// `tsomon monitor`: watches the targets of a configuration, stores what is found, and tells it.
//
// Life        run() goes on until SIGTERM or SIGINT, or until no target can come again; it then has what is known stored and
//             counted within a second. A second such signal ends the process. SIGHUP reads the configuration again:
//             targets that are the same go on, others end or begin; with any mistake in it all stays as it was, and the
//             mistakes are told. The store's folder stays the one that it began with.
// Told        Where nobody reads any more, it goes on. Each new finding once; messages, the same one at most once a minute (message_limiter.h).
// Metrics     A textfile for Prometheus (node_exporter's textfile collector), written every few seconds and at the end.
// systemd     READY, RELOADING, STOPPING, and WATCHDOG as long as every target's thread goes on (notify.h).
// Errors      What stops it from beginning: the store. What ends it: the end of its helper (target_access.h). All else is told,
//             and it goes on.
// Misses      Whatever happens outside of slices. Nothing found is never more than that.
// Thread-safety: one in a process, made before other threads: it blocks the signals in all that come.
#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "monitor/service/config.h"
#include "monitor/service/message_limiter.h"
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
  // `config_file`: what SIGHUP reads, in messages. `access`: as separate() gives it.
  Service(std::string config_file, ServiceConfig config, std::unique_ptr<ServiceAccess> access,
          ServiceOutput output);
  ~Service();
  Result<void> run();

 private:
  using Clock = std::chrono::steady_clock;

  void tell(const std::string& text);
  void start(const TargetConfig& target);
  void stop_all();
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
  const std::string host_;
  std::unique_ptr<Store> store_;
  std::vector<std::unique_ptr<TargetWatcher>> watchers_;
  std::map<std::string, TargetCounters> before_;  // of watchers that are gone, by the target's name
  Clock::time_point metrics_written_;
  Clock::time_point watchdog_fed_;
  sigset_t signals_{};
  sigset_t mask_before_{};

  std::mutex mutex_;  // of the output and
  MessageLimiter limiter_;
};

}  // namespace tsomon::service
