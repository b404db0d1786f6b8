#include "monitor/slices/trigger.h"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "monitor/attach/choose_uprobes.h"
#include "monitor/perf_events/perf_event.h"
#include "monitor/perf_events/remedy.h"
#include "monitor/process/descriptor.h"
#include "monitor/process/elf_image.h"
#include "monitor/process/target.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPause{5};
constexpr int kTrigger = SIGUSR1;

class SignalTrigger : public Trigger {
 public:
  SignalTrigger() {
    sigemptyset(&signals_);
    sigaddset(&signals_, kTrigger);
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  SignalTrigger(const SignalTrigger&) = delete;
  SignalTrigger& operator=(const SignalTrigger&) = delete;
  ~SignalTrigger() override { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  bool wait(Clock::time_point until) override {
    constexpr timespec kLong{0, 20'000'000};
    while (!stop_asked() && Clock::now() < until) {
      if (::sigtimedwait(&signals_, nullptr, &kLong) == kTrigger) {
        return true;
      }
    }
    return false;
  }

 private:
  sigset_t signals_{};
  sigset_t before_{};
};

// Of all threads that there are, and those that they start.
class CounterTrigger : public Trigger {
 public:
  CounterTrigger(attach::Target target, uint64_t rate) : target_(std::move(target)), rate_(rate) {}

  Result<void> count(const std::string& event) {
    auto attributes = event_named(event.c_str(), true);
    if (!attributes) {
      return fail(ErrorKind::kUsage, fmt::format("no event of perf is called {}", event));
    }
    attributes->inherit = 1;
    int refused = 0;
    for (const pid_t thread : target_.threads()) {
      if (const int fd = open_event(*attributes, thread, -1); fd >= 0) {
        counters_.emplace_back(fd);
      } else {
        refused = errno;
      }
    }
    if (counters_.empty()) {
      return fail(ErrorKind::kEnvironment,
                  perf_remedy(refused, "is it an event that this machine counts?"));
    }
    return {};
  }

  bool wait(Clock::time_point until) override {
    constexpr milliseconds kWindow{100};
    for (uint64_t before = all(); !stop_asked() && !target_.ended() && Clock::now() < until;) {
      std::this_thread::sleep_for(kWindow);
      const uint64_t now = all();
      if ((now - before) * (milliseconds(1000) / kWindow) > rate_) {
        return true;
      }
      before = now;
    }
    return false;
  }

 private:
  uint64_t all() const {
    uint64_t sum = 0;
    for (const Descriptor& counter : counters_) {
      uint64_t value = 0;
      if (::read(counter.get(), &value, sizeof value) == sizeof value) {
        sum += value;
      }
    }
    return sum;
  }

  attach::Target target_;
  uint64_t rate_;
  std::vector<Descriptor> counters_;
};

class MarkerTrigger : public Trigger {
 public:
  explicit MarkerTrigger(attach::Target target) : target_(std::move(target)) {}

  Result<void> probe(const TriggerName& name) {
    auto chosen = attach::choose_uprobes(target_.pid());
    if (!chosen) {
      return tl::unexpected<Error>(chosen.error());
    }
    probes_ = std::move(chosen->probes);
    for (const attach::Module& module : target_.modules()) {
      const auto image = attach::ElfImage::open(module.file, module.shown);
      if (!image) {
        continue;
      }
      std::vector<attach::ProbePlace> places;
      for (const attach::Marker& marker : (*image)->markers()) {
        const auto offset = (*image)->offset_of(marker.address);
        if (marker.provider == name.provider && marker.name == name.name && offset) {
          attach::ProbePlace place;
          place.offset = *offset;
          place.semaphore =
              marker.semaphore == 0 ? 0 : (*image)->offset_of(marker.semaphore).value_or(0);
          places.push_back(place);
        }
      }
      if (!places.empty()) {
        auto hold = probes_->attach(target_.pid(), module.file, places);
        if (!hold) {
          return tl::unexpected<Error>(hold.error());
        }
        holds_.push_back(std::move(*hold));
      }
    }
    if (holds_.empty()) {
      return fail(ErrorKind::kUsage, fmt::format("process {} has no marker {}:{}", target_.pid(),
                                                 name.provider, name.name));
    }
    return {};
  }

  bool wait(Clock::time_point until) override {
    std::vector<attach::Hit> hits;
    probes_->read(hits);  // of the time in which nobody waited
    for (hits.clear(); !stop_asked() && !target_.ended() && Clock::now() < until; hits.clear()) {
      probes_->read(hits);
      if (!hits.empty()) {
        return true;
      }
      std::this_thread::sleep_for(kPause);
    }
    return false;
  }

 private:
  attach::Target target_;
  std::unique_ptr<attach::Uprobes> probes_;
  std::vector<attach::ProbeHold> holds_;  // before the probes
};

}  // namespace

Result<TriggerName> parse_trigger(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string kind = text.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
  if (kind == "signal" && equals == std::string::npos) {
    return TriggerName{};
  }
  if (kind == "function" && !value.empty()) {
    return TriggerName{TriggerName::Kind::kFunction, value, {}, 0};
  }
  if (const size_t colon = value.find(':');
      kind == "usdt" && colon != std::string::npos && colon != 0 && colon + 1 != value.size()) {
    return TriggerName{TriggerName::Kind::kMarker, value.substr(colon + 1), value.substr(0, colon),
                       0};
  }
  if (const size_t more = value.rfind('>');
      kind == "counter" && more != std::string::npos && more != 0) {
    TriggerName name{TriggerName::Kind::kCounter, value.substr(0, more), {}, 0};
    const char* const end = value.data() + value.size();
    const auto [at, error] = std::from_chars(value.data() + more + 1, end, name.rate);
    if (error == std::errc() && at == end) {
      return name;
    }
  }
  return fail(ErrorKind::kUsage,
              fmt::format("expected function=PATTERN, counter=EVENT>RATE, usdt=PROVIDER:NAME or "
                          "signal, found {}",
                          text));
}

Result<std::unique_ptr<Trigger>> Trigger::open(const TriggerName& name, pid_t pid) {
  if (name.kind == TriggerName::Kind::kSignal) {
    return std::make_unique<SignalTrigger>();
  }
  auto target = attach::Target::open(pid);
  if (!target) {
    return tl::unexpected<Error>(target.error());
  }
  if (name.kind == TriggerName::Kind::kCounter) {
    auto trigger = std::make_unique<CounterTrigger>(std::move(*target), name.rate);
    if (const auto counts = trigger->count(name.name); !counts) {
      return tl::unexpected<Error>(counts.error());
    }
    return trigger;
  }
  auto trigger = std::make_unique<MarkerTrigger>(std::move(*target));
  if (const auto probed = trigger->probe(name); !probed) {
    return tl::unexpected<Error>(probed.error());
  }
  return trigger;
}

Result<std::vector<uint64_t>> trigger_functions(const TriggerName& name,
                                                const TwinFunctions& functions) {
  std::vector<uint64_t> entries = functions.named(name.name);
  if (entries.empty()) {
    return fail(ErrorKind::kUsage, fmt::format("none of the {} functions with a twin is called {}",
                                               functions.size(), name.name));
  }
  return entries;
}

}  // namespace tsomon
