// One target of the service: found, watched in slices, found again.
//
// Purpose     A thread that waits for the process, watches it (monitor/slices/sampling.h), and stores what is found. A process that
//             ends is waited for again where the target is a program by its name or a group; otherwise the target is over.
// Several     Processes of one name are watched one at a time, the oldest one that answers.
// Refusals    A process that cannot be asked is asked again after a fifth of a second, then after twice as long each time, up to
//             half a minute.
// Budget      budget.h: slices are dropped where it is used up, and judging has its bounds.
// Flight      With TargetConfig::flight_recorder the last slices are kept as an incident when something happens (flight_ring.h).
// Suppressed  Findings that the target's suppressions hide, or the store's (read again when they change), are counted only.
// Counters    Grow only; they can be read at any time. Slices that were planned are those that were recorded and those that were
//             dropped; events that were sent those that were seen and those that were lost.
// Thread-safety: all calls but wait() and the destructor.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "monitor/findings/finding_filter.h"
#include "monitor/service/budget.h"
#include "monitor/service/config.h"
#include "monitor/service/flight_ring.h"
#include "monitor/service/store.h"
#include "monitor/service/target_access.h"
#include "monitor/service/target_journal.h"
#include "monitor/slices/sampling.h"
#include "tso/support/work.h"

namespace tsomon::service {

struct TargetCounters {
  using Verdicts =
      std::map<std::pair<std::string, std::string>, uint64_t>;  // by property and verdict
  static constexpr size_t kMostReasons = 32;

  SamplingSummary sampling;  // but for `ended`
  uint64_t judged_slices = 0;
  uint64_t seen_events = 0;
  uint64_t lost_events = 0;      // in recording
  uint64_t unjudged_events = 0;  // recorded ones that a bound kept from being judged
  uint64_t units = 0;
  uint64_t candidates = 0;  // groups of units that had to be searched
  Verdicts judged;
  std::map<std::string, uint64_t>
      inconclusive;  // by reason; what is more than kMostReasons is under "other"
  uint64_t violations = 0;
  uint64_t suppressed = 0;    // of them
  uint64_t new_findings = 0;  // fingerprints that the store did not have
  uint64_t not_stored = 0;    // slices with findings that could not be
  uint64_t incidents = 0;
  uint64_t refusals = 0;  // of a process to be watched, or of a slice to be judged

  uint64_t sent_events() const { return seen_events + lost_events + unjudged_events; }
  void add(const TargetCounters& more);
};

struct NewFinding {
  std::string target;
  pid_t pid = 0;
  int64_t time = 0;  // microseconds since 1970
  SightingPlace place;
  SeenFinding finding;
};

struct WatcherLinks {
  Store* store = nullptr;
  Budget* budget = nullptr;  // nullptr: there is none
  std::string host;
  ServiceAccess* access = nullptr;
  // Called by threads of watchers, several at a time.
  std::function<void(const NewFinding&)> found;
  std::function<void(const std::string&)> tell;
};

class TargetWatcher {
 public:
  using Clock = std::chrono::steady_clock;

  // The thread begins at once; it has the signal mask of the caller.
  TargetWatcher(TargetConfig config, WatcherLinks links);
  TargetWatcher(const TargetWatcher&) = delete;
  TargetWatcher& operator=(const TargetWatcher&) = delete;
  ~TargetWatcher();  // asks to stop, and waits

  void ask_to_stop();
  void ask_for_incident() { dump_asked_ = true; }  // of the flight recorder, if there is one
  void wait();  // for its end; before the destructor, by the same thread
  bool is_over() const { return over_; }
  bool is_watching() const { return watching_; }
  TargetSituation situation() const { return journal_.situation(); }
  // When it was last seen to go on: it waits, or a slice was judged.
  Clock::time_point last_sign() const { return Clock::time_point(Clock::duration(sign_.load())); }
  const TargetConfig& config() const { return config_; }
  TargetCounters counters() const;

 private:
  void work();
  void wait_a_moment(std::chrono::milliseconds time);
  void sign_of_life() { sign_ = Clock::now().time_since_epoch().count(); }
  std::optional<pid_t> next_process();
  void watch(pid_t pid);
  void judged(const JudgedSlice& slice, const SightingPlace& place, pid_t pid);
  std::vector<SeenFinding> findings_of(const CheckReport& report, CheckedProperties& checked,
                                       const std::string& input);
  void count(const CheckReport& report);
  // The number of the slice in the store; 0: it is not there.
  int64_t keep(const std::vector<SeenFinding>& found, int capture, const SightingPlace& place,
               pid_t pid);
  void set_up_flight(const SightingPlace& place, SamplingOptions* options);
  void set_up_budget(SamplingOptions* options) const;
  void keep_ring(const std::string& reason, bool after);
  void answer_dump_request();
  void follow_flight(const std::vector<SeenFinding>& found, int64_t stored);
  void keep_what_led_to_the_end(pid_t pid, uint64_t began);
  FindingFilter& filter();
  void tell(const std::string& text) {
    journal_.says(text);
    links_.tell(config_.name + ": " + text);
  }

  struct Refusal {
    Clock::time_point until;
    std::chrono::milliseconds pause{0};
  };

  const TargetConfig config_;
  const WatcherLinks links_;
  const std::unique_ptr<TargetAccess> access_;
  StopFlag stop_;
  std::atomic<bool> over_{false};
  std::atomic<bool> watching_{false};
  std::atomic<bool> dump_asked_{false};
  std::atomic<Clock::rep> sign_{0};
  TargetJournal journal_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable stopped_;
  TargetCounters counters_;  // without those of
  SamplingSummary current_;  // ... the process that is watched

  // Only the watching thread touches these.
  TargetCounters fresh_;    // of the slice that is judged: they are counted with it
  uint64_t pid_began_ = 0;  // of a target by its number
  std::map<std::pair<pid_t, uint64_t>, Refusal> refused_;
  std::unique_ptr<StartedProgram> started_;
  std::optional<FlightRing> ring_;      // of the process that is watched
  std::set<std::string> has_incident_;  // findings, by fingerprint and property
  FindingFilter filter_;
  std::string filter_state_ = "not read";  // of the files

  std::thread thread_;
};

}  // namespace tsomon::service
