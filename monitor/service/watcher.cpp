#include "monitor/service/watcher.h"

#include <atomic>
#include <exception>
#include <future>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "monitor/findings/result_json.h"
#include "monitor/service/config.h"
#include "monitor/service/quiet_thread.h"
#include "monitor/service/service.h"

namespace tsomon {
namespace {

constexpr const char* kConfigurationName = "configuration";

double whole_seconds(std::chrono::microseconds time) {
  return static_cast<double>(time.count()) / 1e6;
}

Watcher::Counters public_counters(const service::TargetCounters& from) {
  Watcher::Counters to;
  to.slices = from.sampling.slices();
  to.judged = from.judged_slices;
  to.without_threads = from.sampling.without_threads;
  to.without_accesses = from.sampling.without_accesses;
  to.events = from.seen_events;
  to.lost_events = from.lost_events;
  to.units = from.units;
  to.cut_units = from.sampling.cut_units;
  to.candidates = from.candidates;
  to.violations = from.violations;
  to.suppressed = from.suppressed;
  to.new_findings = from.new_findings;
  to.not_stored = from.not_stored;
  to.refusals = from.refusals;
  to.watched_seconds = whole_seconds(from.sampling.everything().watched);
  to.elapsed_seconds = whole_seconds(from.sampling.elapsed);
  to.process_seconds = whole_seconds(from.sampling.used);
  to.watching_seconds = whole_seconds(from.sampling.cost);
  to.judging_seconds = whole_seconds(from.sampling.judging);
  to.verdicts = from.judged;
  to.inconclusive = from.inconclusive;
  return to;
}

}  // namespace

class Watcher::Impl {
 public:
  Impl(std::string configuration, Callbacks callbacks)
      : configuration_(std::move(configuration)), callbacks_(std::move(callbacks)) {}

  bool start();
  void stop();
  const std::vector<std::string>& errors() const { return errors_; }
  bool is_over() const { return over_; }
  const service::Service* running() const { return began_ ? service_.get() : nullptr; }

 private:
  bool refuse(std::string why);
  void work(std::promise<Result<void>> began);

  const std::string configuration_;
  const Callbacks callbacks_;
  std::vector<std::string> errors_;
  std::unique_ptr<service::Service> service_;
  std::atomic<bool> began_{false};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

bool Watcher::Impl::refuse(std::string why) {
  errors_.push_back(std::move(why));
  return false;
}

bool Watcher::Impl::start() {
  errors_.clear();
  if (service_ != nullptr || over_) {
    return refuse("a watcher is started once");
  }
  service::ConfigReading reading = service::parse_config(configuration_, kConfigurationName);
  for (const Error& error : reading.errors) {
    errors_.push_back(error.to_string());
  }
  if (!errors_.empty()) {
    return false;
  }
  service::ServiceOutput output;
  output.found = [this](const service::NewFinding& found) {
    if (callbacks_.found) {
      const service::SeenFinding& seen = found.finding;
      callbacks_.found({found.target, found.pid, found.time, found.place.host, found.place.build,
                        seen.fingerprint, seen.property, seen.definite, seen.count, seen.summary,
                        seen.json});
    }
  };
  output.message = [this](const std::string& text) {
    if (callbacks_.message) {
      callbacks_.message(text);
    }
  };
  std::promise<Result<void>> promise;
  auto answer = promise.get_future();
  try {
    service_ = std::make_unique<service::Service>(
        std::string(), std::move(reading.config), service::direct_service_access({}),
        std::move(output), service::Service::Place::kEmbedded);
    // The threads of the targets are its children, and have its signals.
    thread_ = service::quiet_thread(
        [this, began = std::move(promise)]() mutable { work(std::move(began)); });
  } catch (const std::exception& problem) {
    service_ = nullptr;
    return refuse(problem.what());
  }
  const Result<void> began = answer.get();
  if (!began) {
    thread_.join();
    return refuse(began.error().to_string());
  }
  return true;
}

void Watcher::Impl::work(std::promise<Result<void>> began) {
  Result<void> done;
  try {
    done = service_->begin();
  } catch (const std::exception& problem) {
    done = fail(ErrorKind::kEnvironment, problem.what());
  }
  began_ = done.has_value();
  const bool goes_on = began_;
  began.set_value(std::move(done));
  if (goes_on) {
    try {
      (void)service_->run();
    } catch (const std::exception& problem) {
      if (callbacks_.message) {
        callbacks_.message(fmt::format("watching has ended: {}", problem.what()));
      }
    }
  }
  over_ = true;
}

void Watcher::Impl::stop() {
  if (service_ != nullptr) {
    service_->ask_to_stop();
  }
  if (thread_.joinable()) {
    thread_.join();
  }
  over_ = true;
}

Watcher::Watcher(std::string configuration, Callbacks callbacks)
    : impl_(std::make_unique<Impl>(std::move(configuration), std::move(callbacks))) {}

Watcher::~Watcher() { impl_->stop(); }

bool Watcher::start() { return impl_->start(); }
void Watcher::stop() { impl_->stop(); }
bool Watcher::is_over() const { return impl_->is_over(); }
const std::vector<std::string>& Watcher::errors() const { return impl_->errors(); }

std::vector<Watcher::Target> Watcher::targets() const {
  std::vector<Target> list;
  const service::Service* const running = impl_->running();
  if (running == nullptr) {
    return list;
  }
  for (const service::TargetStatus& target : running->status().targets) {
    list.push_back({target.name, service::target_state_name(target.situation.state),
                    target.situation.why, target.situation.pid, public_counters(target.counters)});
  }
  return list;
}

std::string Watcher::status() const {
  const service::Service* const running = impl_->running();
  return running == nullptr ? std::string()
                            : json_line(service::status_json(running->status()), "tsomon monitor");
}

std::string Watcher::quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04X}", byte);
    } else {
      out += c == '"' || c == '\\' ? "\\" : "";
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace tsomon
