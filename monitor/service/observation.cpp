#include "monitor/service/observation.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "monitor/findings/result_json.h"
#include "monitor/service/http_metrics.h"

namespace tsomon::service {
namespace {

constexpr uint64_t kBytesOfMegabyte = uint64_t{1} << 20;
constexpr std::chrono::seconds kTryAgain{10};
constexpr std::chrono::seconds kMeasureAgain{2};  // all files of the store are looked at

// What was asked: "status", and nothing else.
bool is_status_request(std::string_view request) {
  return request == kStatusRequest || request == "status\r\n";
}

}  // namespace

std::unique_ptr<AnsweringServer> Observation::open(const ListenAddress& address,
                                                   AnsweringServer::Answer answer) {
  auto socket = listen_(address);
  if (!socket) {
    tell_(socket.error().to_string());
    return nullptr;
  }
  try {
    return std::make_unique<AnsweringServer>(std::move(*socket), std::move(answer));
  } catch (const std::exception& problem) {  // no thread
    tell_(fmt::format("{}: {}", listen_text(address), problem.what()));
    return nullptr;
  }
}

void Observation::listen(const ServiceConfig& config) {
  const bool another = config.metrics_listen != listens_at_;
  if (!another && Clock::now() - tried_ < kTryAgain) {
    return;
  }
  tried_ = Clock::now();
  if (status_server_ == nullptr) {
    const std::string path =
        (std::filesystem::path(config.store) / std::string(kStatusSocket)).string();
    status_server_ = open({path, {}, 0}, [this](std::string_view request) {
      const bool whole = request.find('\n') != std::string_view::npos;
      return !whole ? std::nullopt
                    : std::optional(is_status_request(request)
                                        ? status_line()
                                        : "{\"error\":\"expected the line status\"}\n");
    });
  }
  if (another) {
    metrics_server_ = nullptr;
    listens_at_ = config.metrics_listen;
  }
  if (metrics_server_ != nullptr || listens_at_.empty()) {
    return;
  }
  const auto address = parse_listen_address(listens_at_);
  if (!address) {
    tell_(address.error().to_string());
    return;
  }
  metrics_server_ = open(*address, [this](std::string_view request) {
    return http_metrics_answer(request, metrics(), AnsweringServer::kRequestBytes);
  });
}

void Observation::close() {
  metrics_server_ = nullptr;
  status_server_ = nullptr;
}

void Observation::look(const ServiceConfig& config, const Store& store,
                       const std::vector<std::unique_ptr<TargetWatcher>>& watchers,
                       const std::map<std::string, TargetCounters>& before, uint64_t withheld,
                       bool at_once) {
  const Clock::time_point now = Clock::now();
  if (!at_once && now - looked_ < kBetweenLooks) {
    return;
  }
  looked_ = now;
  if (now - measured_ >= kMeasureAgain && asked_.exchange(false)) {
    measured_ = now;
    store_bytes_ = store.bytes();
  }
  ServiceStatus status;
  status.pid = ::getpid();
  status.began = began_;
  status.time = now_in_microseconds();
  status.config_file = config_file_;
  status.store = config.store;
  status.store_bytes = store_bytes_;
  status.store_bound = config.store_megabytes * kBytesOfMegabyte;
  status.metrics = config.metrics;
  status.withheld_messages = withheld;
  for (const auto* const server : {status_server_.get(), metrics_server_.get()}) {
    status.answered += server != nullptr ? server->answered() : 0;
    status.cut_off += server != nullptr ? server->cut_off() : 0;
  }
  if (metrics_server_ != nullptr) {
    status.metrics_listen = listen_text(metrics_server_->address());
  }
  std::map<std::string, TargetCounters> gone = before;
  for (const auto& watcher : watchers) {
    const TargetConfig& target = watcher->config();
    gone_.erase(target.name);
    TargetStatus& one = status.targets.emplace_back();
    one.name = target.name;
    one.situation = watcher->situation();
    one.counters = watcher->counters();
    if (const auto found = gone.find(target.name); found != gone.end()) {
      one.counters.add(found->second);
      gone.erase(found);
    }
    RateMeter& meter = meters_[target.name];
    meter.add(now, one.counters);
    one.rates = meter.rates();
    one.properties = target.properties;
    one.sample = target.sample;
    one.max_overhead = target.max_overhead;
  }
  for (const auto& [name, counters] : gone) {
    TargetStatus& one = status.targets.emplace_back();
    one.name = name;
    one.counters = counters;
    const bool is_known = std::any_of(config.targets.begin(), config.targets.end(),
                                      [&](const auto& target) { return target.name == name; });
    one.situation.state = TargetState::kOver;
    one.situation.why = is_known ? "the service has ended" : "is not in the configuration any more";
    one.situation.since = gone_.try_emplace(name, status.time).first->second;
    meters_.erase(name);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  status_ = std::move(status);
}

void Observation::show_metrics(std::string text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  metrics_ = std::move(text);
}

std::string Observation::metrics() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return metrics_;
}

ServiceStatus Observation::status() const {
  asked_ = true;
  const std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

std::string Observation::status_line() const {
  return json_line(status_json(status()), "tsomon monitor") + "\n";
}

}  // namespace tsomon::service
