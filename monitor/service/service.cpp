#include "monitor/service/service.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include "monitor/process/host_name.h"
#include "monitor/service/durable_file.h"
#include "monitor/service/metrics.h"
#include "monitor/service/notify.h"
#include "monitor/service/trusted_file.h"
#include "monitor/service/work_metrics.h"

namespace tsomon::service {
namespace {

constexpr std::chrono::seconds kBetweenMetrics{2};
constexpr long kTick = 100'000'000;  // nanoseconds
constexpr uint64_t kMegabyte = uint64_t{1} << 20;

double seconds(std::chrono::microseconds time) { return static_cast<double>(time.count()) / 1e6; }

// The counters of one target as numbers.
struct CounterFamily {
  const char* name;
  const char* help;
  double (*value)(const TargetCounters&);
};
constexpr CounterFamily kFamilies[] = {
    {"tsomon_slices_total", "Slices that were recorded.",
     [](const TargetCounters& c) { return static_cast<double>(c.sampling.slices()); }},
    {"tsomon_slices_without_threads_total", "Slices in which no thread took part.",
     [](const TargetCounters& c) { return static_cast<double>(c.sampling.without_threads); }},
    {"tsomon_slices_without_accesses_total",
     "Slices in which threads took part, and made no access that is seen.",
     [](const TargetCounters& c) { return static_cast<double>(c.sampling.without_accesses); }},
    {"tsomon_cut_units_total", "Units that were open when their slice ended.",
     [](const TargetCounters& c) { return static_cast<double>(c.sampling.cut_units); }},
    {"tsomon_watched_seconds_total", "Time in which everything was watched.",
     [](const TargetCounters& c) { return seconds(c.sampling.everything().watched); }},
    {"tsomon_elapsed_seconds_total", "Time in which the target was there and could be watched.",
     [](const TargetCounters& c) { return seconds(c.sampling.elapsed); }},
    {"tsomon_watching_cost_seconds_total", "Processor time of the target for being watched.",
     [](const TargetCounters& c) { return seconds(c.sampling.cost); }},
    {"tsomon_judging_seconds_total", "Processor time of the monitor for judging.",
     [](const TargetCounters& c) { return seconds(c.sampling.judging); }},
    {"tsomon_seen_events_total", "Events of the slices that were judged.",
     [](const TargetCounters& c) { return static_cast<double>(c.seen_events); }},
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
                 std::unique_ptr<ServiceAccess> access, ServiceOutput output, Place place)
    : config_file_(std::move(config_file)),
      config_(std::move(config)),
      access_(std::move(access)),
      output_(std::move(output)),
      place_(place),
      host_(host_name()),
      budget_(budget_limits()),
      observation_(
          config_file_, [this](const ListenAddress& address) { return access_->listen(address); },
          [this](const std::string& text) { tell(text); }) {
  if (place_ == Place::kEmbedded) {
    return;
  }
  ::sigemptyset(&signals_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    ::sigaddset(&signals_, number);
  }
  ::pthread_sigmask(SIG_BLOCK, &signals_, &mask_before_);
  // Whoever reads what is told may go: that is no reason to end.
  ::signal(SIGPIPE, SIG_IGN);
}

Service::~Service() {
  stop_analysis();
  stop_all();
  if (place_ == Place::kProgram) {
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }
}

void Service::tell(const std::string& text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto now = limiter_.add(text, Clock::now())) {
    output_.message(*now);
  }
}

bool Service::tell_manager(const std::string& state) {
  return place_ == Place::kEmbedded || notify_manager(state);
}

void Service::ask_to_stop() {
  {
    const std::lock_guard<std::mutex> lock(stop_mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
}

// The next signal; embedded, SIGTERM stands for ask_to_stop(). 0 or less: none came in time.
int Service::next_signal() {
  if (place_ == Place::kEmbedded) {
    std::unique_lock<std::mutex> lock(stop_mutex_);
    return stopped_.wait_for(lock, std::chrono::nanoseconds(kTick), [this] { return stop_; })
               ? SIGTERM
               : 0;
  }
  const timespec tick{0, kTick};
  return ::sigtimedwait(&signals_, nullptr, &tick);
}

Result<void> Service::begin() {
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
  start_analysis();
  observe(true);
  return {};
}

Result<void> Service::run() {
  if (store_ == nullptr) {
    if (const auto began = begin(); !began) {
      return began;
    }
  }
  if (!tell_manager("READY=1")) {
    tell("the socket that NOTIFY_SOCKET names does not answer");
  }
  std::string ended;
  for (; ended.empty(); ended = access_->ended()) {
    const int signal = next_signal();
    if (signal == SIGHUP) {
      reload();
    } else if (signal == SIGUSR1) {
      for (const auto& watcher : watchers_) {
        watcher->ask_for_incident();
      }
    } else if (signal > 0) {
      break;
    } else if (all_are_over()) {
      tell("no target can come again: the end");
      break;
    }
    look_after();
  }
  tell_manager("STOPPING=1");
  if (place_ == Place::kProgram) {
    // Another one ends the process.
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }
  if (analysis_ != nullptr) {
    analysis_->ask_to_stop();  // both at once
  }
  stop_all();
  stop_analysis();
  write_metrics();
  observe(true);
  observation_.close();
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const std::string& text : limiter_.due(Clock::now(), true)) {
    output_.message(text);
  }
  return ended.empty() ? Result<void>() : fail(ErrorKind::kEnvironment, ended);
}

void Service::start(const TargetConfig& target) {
  WatcherLinks links;
  links.store = store_.get();
  links.budget = &budget_;
  links.host = host_;
  links.access = access_.get();
  links.found = [this](const NewFinding& finding) {
    const std::lock_guard<std::mutex> lock(mutex_);
    output_.found(finding);
  };
  links.tell = [this](const std::string& text) { tell(text); };
  watchers_.push_back(std::make_unique<TargetWatcher>(target, std::move(links)));
}

BudgetLimits Service::budget_limits() const {
  return {config_.memory_megabytes * kMegabyte, config_.cpu_share, config_.targets.size()};
}

void Service::start_analysis() {
  // The program that they run as is this one.
  if (config_.idle_share <= 0 || place_ == Place::kEmbedded) {
    return;
  }
  AnalysisLinks links;
  links.store = store_.get();
  links.host = host_;
  links.suppressions = [targets = config_.targets,
                        own = store_->suppressions_file()](const std::string& name) {
    std::vector<std::string> files = {own};
    for (const TargetConfig& target : targets) {
      if (target.name == name) {
        files.insert(files.end(), target.suppressions.begin(), target.suppressions.end());
      }
    }
    std::erase_if(files, [](const std::string& file) { return ::access(file.c_str(), R_OK) != 0; });
    return files;
  };
  links.run = [this](const IdleBounds& bounds, const std::vector<std::string>& command,
                     const std::function<bool()>& stopped) {
    return access_->run_idle(bounds, command, stopped);
  };
  links.found = [this](const SliceAnalysis& analysis, const SeenFinding& finding) {
    const std::lock_guard<std::mutex> lock(mutex_);
    output_.found({analysis.place.target, 0, analysis.taken, analysis.place, finding});
  };
  links.tell = [this](const std::string& text) { tell(text); };
  IdleBounds bounds;
  bounds.share = config_.idle_share;
  analysis_ = std::make_unique<KeptAnalysis>(bounds, std::move(links));
}

void Service::stop_analysis() {
  if (analysis_ != nullptr) {
    analysis_->ask_to_stop();
    const AnalysisCounters so_far = analysed();
    analysis_.reset();
    analysed_before_ = so_far;
  }
}

AnalysisCounters Service::analysed() const {
  AnalysisCounters sum = analysed_before_;
  if (analysis_ != nullptr) {
    sum.add(analysis_->counters());
  }
  return sum;
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
  tell_manager("RELOADING=1");
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
    stop_analysis();
    config_ = std::move(fresh);
    start_analysis();
    budget_.set_limits(budget_limits());
    store_->set_bound(config_.store_megabytes * kMegabyte);
    tell(fmt::format("{}: read again: {} targets", config_file_, config_.targets.size()));
  }
  for (const Error& error : reading.errors) {
    tell(error.to_string());
  }
  if (!reading.errors.empty()) {
    tell(fmt::format("{}: has mistakes, all stays as it was", config_file_));
  }
  tell_manager("READY=1");
  observe(true);
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
  observe();
  if (const auto time = watchdog_time();
      time.count() != 0 && now - watchdog_fed_ >= time / 4 && all_go_on()) {
    tell_manager("WATCHDOG=1");
    watchdog_fed_ = now;
  }
}

void Service::write_metrics() {
  metrics_written_ = Clock::now();
  if (config_.metrics.empty() && !observation_.wants_metrics()) {
    return;
  }
  const std::string text = metrics_text();
  if (const auto written =
          config_.metrics.empty() ? Result<void>() : replace_file(config_.metrics, text);
      !written) {
    tell(written.error().to_string());
  }
  observation_.show_metrics(text);
}

// What is to be open is, and shows what there is.
void Service::observe(bool now) {
  const bool had = observation_.wants_metrics();
  observation_.listen(config_);
  if (!had && observation_.wants_metrics()) {
    write_metrics();
  }
  uint64_t withheld = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    withheld = limiter_.withheld();
  }
  observation_.look(config_, *store_, watchers_, before_, withheld, now);
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
  add_plan_metrics(counters, &metrics);
  add_analysis_metrics(analysed(), &metrics);
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
