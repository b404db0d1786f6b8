#include "monitor/service/service.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include "monitor/service/durable_file.h"
#include "monitor/service/metrics.h"
#include "monitor/service/notify.h"
#include "monitor/service/trusted_file.h"

namespace tsomon::service {
namespace {

constexpr std::chrono::seconds kBetweenMetrics{2};
constexpr long kTick = 100'000'000;  // nanoseconds
constexpr uint64_t kMegabyte = uint64_t{1} << 20;

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

double seconds(std::chrono::microseconds time) { return static_cast<double>(time.count()) / 1e6; }

// The counters of one target as numbers.
struct CounterFamily {
  const char* name;
  const char* help;
  double (*value)(const TargetCounters&);
};
constexpr CounterFamily kFamilies[] = {
    {"tsomon_slices_total", "Slices that were recorded.",
     [](const TargetCounters& c) { return static_cast<double>(c.slices); }},
    {"tsomon_slices_without_threads_total", "Slices in which no thread took part.",
     [](const TargetCounters& c) { return static_cast<double>(c.without_threads); }},
    {"tsomon_cut_units_total", "Units that were open when their slice ended.",
     [](const TargetCounters& c) { return static_cast<double>(c.cut_units); }},
    {"tsomon_watched_seconds_total", "Time in which everything was watched.",
     [](const TargetCounters& c) { return seconds(c.watched); }},
    {"tsomon_elapsed_seconds_total", "Time in which the target was there and could be watched.",
     [](const TargetCounters& c) { return seconds(c.elapsed); }},
    {"tsomon_watching_cost_seconds_total", "Processor time of the target for being watched.",
     [](const TargetCounters& c) { return seconds(c.cost); }},
    {"tsomon_judging_seconds_total", "Processor time of the monitor for judging.",
     [](const TargetCounters& c) { return seconds(c.judging); }},
    {"tsomon_seen_events_total", "Events of the slices that were judged.",
     [](const TargetCounters& c) { return static_cast<double>(c.seen_events); }},
    {"tsomon_lost_events_total", "Events of these slices that were lost.",
     [](const TargetCounters& c) { return static_cast<double>(c.lost_events); }},
    {"tsomon_violations_total", "Violations that were seen, each time.",
     [](const TargetCounters& c) { return static_cast<double>(c.violations); }},
    {"tsomon_suppressed_violations_total", "Violations that a suppression hides.",
     [](const TargetCounters& c) { return static_cast<double>(c.suppressed); }},
    {"tsomon_new_findings_total", "Findings that the store did not have.",
     [](const TargetCounters& c) { return static_cast<double>(c.new_findings); }},
    {"tsomon_not_stored_total", "Slices with findings that could not be stored.",
     [](const TargetCounters& c) { return static_cast<double>(c.not_stored); }},
};

}  // namespace

Service::Service(std::string config_file, ServiceConfig config,
                 std::unique_ptr<ServiceAccess> access, ServiceOutput output)
    : config_file_(std::move(config_file)),
      config_(std::move(config)),
      access_(std::move(access)),
      output_(std::move(output)),
      host_(host_name()) {
  ::sigemptyset(&signals_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    ::sigaddset(&signals_, number);
  }
  ::pthread_sigmask(SIG_BLOCK, &signals_, &mask_before_);
  // Whoever reads what is told may go: that is no reason to end.
  ::signal(SIGPIPE, SIG_IGN);
}

Service::~Service() {
  stop_all();
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void Service::tell(const std::string& text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto now = limiter_.add(text, Clock::now())) {
    output_.message(*now);
  }
}

Result<void> Service::run() {
  auto store = Store::keep(config_.store, config_.store_megabytes * kMegabyte);
  if (!store) {
    return tl::unexpected<Error>(store.error());
  }
  store_ = std::move(*store);
  for (const std::string& note : store_->notes()) {
    tell(note);
  }
  for (const TargetConfig& target : config_.targets) {
    start(target);
  }
  if (!notify_manager("READY=1")) {
    tell("the socket that NOTIFY_SOCKET names does not answer");
  }
  std::string ended;
  for (; ended.empty(); ended = access_->ended()) {
    const timespec tick{0, kTick};
    const int signal = ::sigtimedwait(&signals_, nullptr, &tick);
    if (signal == SIGHUP) {
      reload();
    } else if (signal > 0) {
      break;
    } else if (all_are_over()) {
      tell("no target can come again: the end");
      break;
    }
    look_after();
  }
  notify_manager("STOPPING=1");
  // Another one ends the process.
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  stop_all();
  write_metrics();
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const std::string& text : limiter_.due(Clock::now(), true)) {
    output_.message(text);
  }
  return ended.empty() ? Result<void>() : fail(ErrorKind::kEnvironment, ended);
}

void Service::start(const TargetConfig& target) {
  WatcherLinks links;
  links.store = store_.get();
  links.host = host_;
  links.access = access_.get();
  links.found = [this](const NewFinding& finding) {
    const std::lock_guard<std::mutex> lock(mutex_);
    output_.found(finding);
  };
  links.tell = [this](const std::string& text) { tell(text); };
  watchers_.push_back(std::make_unique<TargetWatcher>(target, std::move(links)));
}

void Service::stop_all() {
  for (const auto& watcher : watchers_) {
    watcher->ask_to_stop();
  }
  for (auto& watcher : watchers_) {
    const std::string name = watcher->config().name;
    watcher->wait();
    before_[name].add(watcher->counters());
  }
  watchers_.clear();
}

void Service::reload() {
  notify_manager("RELOADING=1");
  ConfigReading reading = access_->read_again();
  if (reading.errors.empty()) {
    // Who this process is stays.
    reading.errors = untrusted_places(reading.config, ::geteuid());
  }
  if (reading.errors.empty()) {
    ServiceConfig& fresh = reading.config;
    if (fresh.store != config_.store) {
      tell(fmt::format("the store stays {}: another one needs a new start", config_.store));
      fresh.store = config_.store;
    }
    if (fresh.user != config_.user) {
      tell("the user stays who it is: another one needs a new start");
      fresh.user = config_.user;
    }
    const auto is_kept = [&](const auto& watcher) {
      return std::find(fresh.targets.begin(), fresh.targets.end(), watcher->config()) !=
             fresh.targets.end();
    };
    const auto gone = std::stable_partition(watchers_.begin(), watchers_.end(), is_kept);
    std::vector<std::unique_ptr<TargetWatcher>> kept(std::make_move_iterator(watchers_.begin()),
                                                     std::make_move_iterator(gone));
    watchers_.erase(watchers_.begin(), gone);
    stop_all();
    watchers_ = std::move(kept);
    for (const TargetConfig& target : fresh.targets) {
      if (std::none_of(watchers_.begin(), watchers_.end(),
                       [&](const auto& watcher) { return watcher->config() == target; })) {
        start(target);
      }
    }
    config_ = std::move(fresh);
    store_->set_bound(config_.store_megabytes * kMegabyte);
    tell(fmt::format("{}: read again: {} targets", config_file_, config_.targets.size()));
  }
  for (const Error& error : reading.errors) {
    tell(error.to_string());
  }
  if (!reading.errors.empty()) {
    tell(fmt::format("{}: has mistakes, all stays as it was", config_file_));
  }
  notify_manager("READY=1");
}

bool Service::all_are_over() const {
  return std::all_of(watchers_.begin(), watchers_.end(),
                     [](const auto& watcher) { return watcher->is_over(); });
}

bool Service::all_go_on() {
  const auto most = watchdog_time() / 2;
  for (const auto& watcher : watchers_) {
    if (!watcher->is_over() && Clock::now() - watcher->last_sign() > most) {
      tell(fmt::format("{}: no sign of life: the watchdog is not fed", watcher->config().name));
      return false;
    }
  }
  return true;
}

void Service::look_after() {
  const auto now = Clock::now();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const std::string& text : limiter_.due(now)) {
      output_.message(text);
    }
  }
  if (now - metrics_written_ >= kBetweenMetrics) {
    write_metrics();
  }
  if (const auto time = watchdog_time();
      time.count() != 0 && now - watchdog_fed_ >= time / 4 && all_go_on()) {
    notify_manager("WATCHDOG=1");
    watchdog_fed_ = now;
  }
}

void Service::write_metrics() {
  metrics_written_ = Clock::now();
  if (config_.metrics.empty()) {
    return;
  }
  if (const auto written = replace_file(config_.metrics, metrics_text()); !written) {
    tell(written.error().to_string());
  }
}

std::string Service::metrics_text() {
  using Type = MetricsText::Type;
  std::map<std::string, TargetCounters> counters = before_;
  std::map<std::string, bool> watching;
  for (const auto& watcher : watchers_) {
    counters[watcher->config().name].add(watcher->counters());
    watching[watcher->config().name] = watcher->is_watching();
  }
  MetricsText metrics;
  for (const CounterFamily& family : kFamilies) {
    metrics.family(family.name, Type::kCounter, family.help);
    for (const auto& [target, of] : counters) {
      metrics.sample({{"target", target}}, family.value(of));
    }
  }
  metrics.family("tsomon_judged_total", Type::kCounter,
                 "Slices that were judged, by their verdict.");
  for (const auto& [target, of] : counters) {
    for (const auto& [key, count] : of.judged) {
      metrics.sample({{"target", target}, {"property", key.first}, {"verdict", key.second}},
                     static_cast<double>(count));
    }
  }
  metrics.family("tsomon_inconclusive_total", Type::kCounter,
                 "Slices whose verdict is inconclusive, by each reason.");
  for (const auto& [target, of] : counters) {
    for (const auto& [reason, count] : of.inconclusive) {
      metrics.sample({{"target", target}, {"reason", reason}}, static_cast<double>(count));
    }
  }
  metrics.family("tsomon_watching", Type::kGauge, "Whether the target is there and watched.");
  for (const auto& [target, is] : watching) {
    metrics.sample({{"target", target}}, is ? 1 : 0);
  }
  metrics.family("tsomon_store_bytes", Type::kGauge, "What the store takes.");
  metrics.sample({}, static_cast<double>(store_->bytes()));
  metrics.family("tsomon_store_bound_bytes", Type::kGauge, "What the store may take.");
  metrics.sample({}, static_cast<double>(config_.store_megabytes * kMegabyte));
  const std::lock_guard<std::mutex> lock(mutex_);
  metrics.family("tsomon_withheld_messages_total", Type::kCounter,
                 "Messages that were counted, not told.");
  metrics.sample({}, static_cast<double>(limiter_.withheld()));
  return metrics.text();
}

}  // namespace tsomon::service
