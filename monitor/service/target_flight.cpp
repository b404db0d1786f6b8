// What a target's flight recorder keeps, and when.
#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <sys/wait.h>

#include "monitor/process/running_programs.h"
#include "monitor/service/started_program.h"
#include "monitor/service/system_time.h"
#include "monitor/service/target_watcher.h"

namespace tsomon::service {
namespace {

constexpr size_t kMostRemembered = 4096;  // findings that have their incident

// Of a program that did not end as it should; empty: it did.
std::string crash_text(int status) {
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    return fmt::format("was ended by signal {} ({})", number, ::strsignal(number));
  }
  return WEXITSTATUS(status) == 0 ? std::string()
                                  : fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace

void TargetWatcher::set_up_flight(const SightingPlace& place, SamplingOptions* options) {
  constexpr uint64_t kWithoutBudget = uint64_t{64} << 20;
  if (config_.flight_recorder.count() == 0) {
    return;
  }
  ring_.emplace(config_.flight_recorder,
                links_.budget != nullptr ? links_.budget->ring_bytes() : kWithoutBudget,
                links_.store, place);
  options->recorded = [this](int capture, uint64_t bytes) {
    ring_->add(capture, bytes, now_in_microseconds());
  };
  options->alarm_functions = config_.flight_function;
  options->alarm_rest = config_.flight_recorder;
  options->alarm = [this] {
    keep_ring(fmt::format("{} was called", config_.flight_function), true);
  };
}

void TargetWatcher::keep_ring(const std::string& reason, bool after) {
  if (!ring_) {
    return;
  }
  std::string problem;
  const size_t slices = ring_->slices();
  const int64_t number = ring_->keep(reason, now_in_microseconds(), after, &problem);
  if (number != 0) {
    tell(fmt::format("incident {}: {}: {} slices are kept", number, reason, slices));
    const std::lock_guard<std::mutex> lock(mutex_);
    ++counters_.incidents;
  }
  if (!problem.empty()) {
    tell(problem);
  }
}

void TargetWatcher::answer_dump_request() {
  if (!dump_asked_.exchange(false) || config_.flight_recorder.count() == 0) {
    return;
  }
  if (!ring_ || ring_->slices() == 0) {
    tell("SIGUSR1: the flight recorder has no slices");
  } else {
    keep_ring("SIGUSR1 to the monitor", false);
  }
}

// The slice is judged: of one with a finding that had no incident yet what came before is kept, and what comes.
void TargetWatcher::follow_flight(const std::vector<SeenFinding>& found, int64_t stored) {
  if (!ring_) {
    return;
  }
  if (const std::string problem = ring_->settle(stored); !problem.empty()) {
    tell(problem);
  }
  const SeenFinding* first = nullptr;
  for (const SeenFinding& finding : found) {
    if (has_incident_.size() < kMostRemembered &&
        has_incident_.insert(finding.fingerprint + finding.property).second && first == nullptr) {
      first = &finding;
    }
  }
  if (first != nullptr) {
    keep_ring(fmt::format("violation {}: {}", first->fingerprint, first->summary), true);
  }
}

// The socket of a process goes before the process does.
void TargetWatcher::keep_what_led_to_the_end(pid_t pid, uint64_t began) {
  constexpr std::chrono::milliseconds kLook{10};
  for (int looks = 0; looks < 100 && ring_ && ring_->slices() != 0 && !stop_.asked(); ++looks) {
    if (attach::start_of(pid) != began) {
      break;
    }
    wait_a_moment(kLook);
  }
  if (!ring_ || stop_.asked() || attach::start_of(pid) == began) {
    return;
  }
  std::string how = "ended; how is not known, as the monitor did not start it";
  if (started_ != nullptr && started_->pid() == pid && started_->has_ended()) {
    const auto status = access_->wait_status(*started_);
    how = status ? crash_text(*status) : how;
  }
  if (!how.empty()) {
    keep_ring(fmt::format("process {} {}", pid, how), false);
  }
}

}  // namespace tsomon::service
