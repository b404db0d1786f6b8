#include "monitor/service/target_watcher.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/findings/finding_summary.h"
#include "monitor/findings/reported_finding.h"
#include "monitor/findings/result_json.h"
#include "monitor/judge/check.h"
#include "monitor/process/module_files.h"
#include "monitor/process/running_programs.h"
#include "monitor/service/system_time.h"
#include "monitor/service/trusted_file.h"
#include "tso/support/printable.h"

namespace tsomon::service {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookForIt{1000};
constexpr milliseconds kFirstPause{200};
constexpr milliseconds kLongestPause{30'000};

SamplingOptions sampling_options(const TargetConfig& config, TargetAccess& access, pid_t pid) {
  SamplingOptions options;
  options.pid = pid;
  options.folder = config.control;
  options.access = &access;
  options.plan.slice = config.slice;
  options.plan.share = config.sample;
  options.plan.max_overhead = config.max_overhead;
  options.plan.focus = config.focus;
  options.plan.cold = config.cold;
  options.plan.seed = static_cast<uint64_t>(now_in_microseconds());
  options.labels = config.labels;
  if (!config.trigger.empty()) {
    options.trigger = parse_trigger(config.trigger).value();
  }
  for (const Property property : config.properties) {
    CheckOptions question;
    question.property = property;
    question.jobs = 1;  // targets are watched at the same time
    options.questions.push_back(question);
  }
  return options;
}

SightingPlace place_of_process(const TargetConfig& config, const std::string& host,
                               TargetAccess& access, pid_t pid) {
  const auto file = access.executable(pid);
  const std::string build =
      file ? build_id_of_file(fmt::format("/proc/self/fd/{}", file->get())) : std::string();
  return {config.name, host, build.empty() ? "" : build_id_text(build)};
}

// What changes when somebody writes the file; "-" where there is none.
std::string state_of(const std::string& file) {
  struct stat status {};
  return ::stat(file.c_str(), &status) != 0
             ? "-"
             : fmt::format("{}.{:09} {} {}", status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                           status.st_size, status.st_ino);
}

}  // namespace

void TargetCounters::add(const TargetCounters& more) {
  const auto add_all = [](const auto& from, auto* to) {
    for (const auto& [key, value] : from) {
      (*to)[key] += value;
    }
  };
  sampling.add(more.sampling);
  judged_slices += more.judged_slices;
  seen_events += more.seen_events;
  lost_events += more.lost_events;
  units += more.units;
  candidates += more.candidates;
  add_all(more.judged, &judged);
  add_all(more.inconclusive, &inconclusive);
  violations += more.violations;
  suppressed += more.suppressed;
  new_findings += more.new_findings;
  not_stored += more.not_stored;
  unjudged_events += more.unjudged_events;
  incidents += more.incidents;
  refusals += more.refusals;
}

TargetWatcher::TargetWatcher(TargetConfig config, WatcherLinks links)
    : config_(std::move(config)), links_(std::move(links)), access_(links_.access->of(config_)) {
  sign_of_life();
  thread_ = std::thread([this] { work(); });
}

TargetWatcher::~TargetWatcher() {
  ask_to_stop();
  wait();
}

void TargetWatcher::wait() {
  if (thread_.joinable()) {
    thread_.join();
  }
}

TargetCounters TargetWatcher::counters() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  TargetCounters sum = counters_;
  sum.sampling.add(current_);
  return sum;
}

void TargetWatcher::work() {
  WorkMeter meter({}, &stop_);
  const WorkScope scope(&meter);
  try {
    while (!stop_.asked() && !over_) {
      if (const auto pid = next_process()) {
        watch(*pid);
      } else if (!over_) {
        const bool soon = std::any_of(refused_.begin(), refused_.end(), [](const auto& each) {
          return each.second.pause < kLookForIt;
        });
        wait_a_moment(soon ? kFirstPause : kLookForIt);
      }
    }
    started_.reset();
  } catch (const WorkEnded&) {
    // A stop.
  } catch (const std::exception& problem) {
    const WorkPause outside;
    tell(fmt::format("is not watched any more: {}", problem.what()));
  }
  over_ = true;
  journal_.is_over();
}

void TargetWatcher::ask_to_stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_.ask();
  }
  stopped_.notify_all();
}

// Or until a stop.
void TargetWatcher::wait_a_moment(milliseconds time) {
  sign_of_life();
  answer_dump_request();
  std::unique_lock<std::mutex> lock(mutex_);
  stopped_.wait_for(lock, time, [this] { return stop_.asked(); });
}

std::optional<pid_t> TargetWatcher::next_process() {
  std::vector<pid_t> candidates;
  if (config_.pid != 0) {
    const uint64_t start = attach::start_of(config_.pid);
    pid_began_ = pid_began_ == 0 ? start : pid_began_;
    if (start == 0 || start != pid_began_) {
      tell(fmt::format("process {} {}", config_.pid,
                       pid_began_ == 0 ? "is not there" : "has ended"));
      over_ = true;
    } else {
      candidates = {config_.pid};
    }
  } else if (config_.command.empty()) {
    candidates = access_->processes();
  } else if (started_ == nullptr) {
    auto started = access_->start();
    if (!started) {
      tell(started.error().to_string());
      over_ = true;
    } else {
      started_ = std::make_unique<StartedProgram>(std::move(*started));
      candidates = {started_->pid()};
    }
  } else if (started_->has_ended()) {
    tell("the program has ended");
    over_ = true;
  } else {
    candidates = {started_->pid()};
  }
  for (const pid_t pid : candidates) {
    const auto refusal = refused_.find({pid, attach::start_of(pid)});
    if (refusal == refused_.end() || refusal->second.until <= Clock::now()) {
      return pid;
    }
  }
  if (candidates.empty()) {
    journal_.waits();
  }
  return std::nullopt;
}

void TargetWatcher::set_up_budget(SamplingOptions* options) const {
  if (links_.budget != nullptr) {
    options->most_bytes = links_.budget->slice_bytes();
    options->judging_bytes = links_.budget->judging_bytes();
    options->drop = [this] { return links_.budget->refusal(); };
  }
}

void TargetWatcher::watch(pid_t pid) {
  const std::pair process(pid, attach::start_of(pid));
  const SightingPlace place = place_of_process(config_, links_.host, *access_, pid);
  SamplingOptions options = sampling_options(config_, *access_, pid);
  set_up_budget(&options);
  set_up_flight(place, &options);
  options.going_on = [&](const SamplingSummary& summary) {
    sign_of_life();
    answer_dump_request();
    watching_ = summary.slices() != 0;
    if (watching_) {
      journal_.watches(pid);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    current_ = summary;
    counters_.add(std::exchange(fresh_, {}));
  };
  const auto summary =
      watch_slices(options, [&](const JudgedSlice& slice) { judged(slice, place, pid); });
  watching_ = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    counters_.sampling.add(summary ? *summary : current_);
    counters_.refusals += summary ? 0 : 1;
    current_ = {};
  }
  keep_what_led_to_the_end(pid, process.second);
  ring_.reset();
  if (summary) {
    journal_.waits();
  } else {
    journal_.is_refused(pid, summary.error().to_string());
  }
  if (stop_.asked()) {
    return;
  }
  std::erase_if(refused_, [](const auto& each) {
    return attach::start_of(each.first.first) != each.first.second;
  });
  if (summary) {
    refused_.erase(process);
    if (!summary->ended.empty()) {
      tell(fmt::format("process {}: {}", pid, summary->ended));
    }
  } else if (refused_.contains(process)) {  // the first time it may have begun just now
    tell(summary.error().to_string());
  }
  // It may be about to end.
  Refusal& refusal = refused_[process];
  refusal.pause = std::clamp(2 * refusal.pause, kFirstPause, kLongestPause);
  refusal.until = Clock::now() + refusal.pause;
}

void TargetWatcher::judged(const JudgedSlice& slice, const SightingPlace& place, pid_t pid) {
  sign_of_life();
  const std::string input =
      fmt::format("{}: process {}, slice {}", config_.name, pid, slice.number);
  std::vector<SeenFinding> found;
  ++fresh_.judged_slices;
  bool first = true;
  for (const CheckReport& report : slice.checked.reports) {
    count(report);
    if (std::exchange(first, false)) {  // the others are of the same events
      fresh_.seen_events += report.events;
      fresh_.lost_events += report.lost_events;
      fresh_.units += report.units;
      fresh_.unjudged_events += slice.unjudged_events;
    }
    fresh_.candidates += report.components;
    if (report.violations() != 0) {
      const auto more = findings_of(report, slice.checked, input);
      found.insert(found.end(), more.begin(), more.end());
    }
  }
  for (const std::string& warning : slice.checked.warnings) {
    tell(warning);
  }
  follow_flight(found, found.empty() ? 0 : keep(found, slice.file, place, pid));
  sign_of_life();
}

void TargetWatcher::count(const CheckReport& report) {
  ++fresh_.judged[{property_name(report.property), report.verdict_name()}];
  if (report.verdict() != Verdict::kInconclusive) {
    return;
  }
  std::vector<std::string> reasons(report.notes.begin(), report.notes.end());
  for (const Shortfall& shortfall : report.shortfalls()) {
    reasons.push_back(shortfall.reason);
  }
  for (std::string& reason : reasons) {
    std::erase_if(reason, [](char c) { return c >= '0' && c <= '9'; });
    const auto& known = counters_.inconclusive;  // nobody else changes it
    auto& fresh = fresh_.inconclusive;
    const bool room = known.size() + fresh.size() < TargetCounters::kMostReasons ||
                      known.contains(reason) || fresh.contains(reason);
    ++fresh[room ? reason : "other"];
  }
}

// Those that are not suppressed.
std::vector<SeenFinding> TargetWatcher::findings_of(const CheckReport& report,
                                                    CheckedProperties& checked,
                                                    const std::string& input) {
  std::map<std::string, std::string> sentences;  // by fingerprint
  for (const Finding& finding : report.findings) {
    const ReportedCycle cycle =
        reported(finding, report.property, checked.symbols, checked.names, ListedAccesses::kOnCycle)
            .cycle;
    sentences.try_emplace(fingerprint(cycle), summary_text(cycle));
  }
  HiddenFindings hidden(&filter());
  const auto object =
      report_json(input, checked.symbols, report, ReportChoice{checked.names, false, &hidden});
  std::vector<SeenFinding> found;
  for (const auto& each : object.value("findings", nlohmann::ordered_json::array())) {
    if (each.contains("suppressed_by")) {
      continue;
    }
    SeenFinding& one = found.emplace_back();
    one.fingerprint = each.value("fingerprint", "");
    one.property = property_name(report.property);
    one.definite = each.value("verdict", "") == verdict_name(Verdict::kDefinite);
    one.count = each.value("count", uint64_t{1});
    one.summary = sentences[one.fingerprint];
    one.json = json_text(each);
  }
  fresh_.violations += report.violations();
  fresh_.suppressed += hidden.hidden();
  return found;
}

int64_t TargetWatcher::keep(const std::vector<SeenFinding>& found, int capture,
                            const SightingPlace& place, pid_t pid) {
  const int64_t time = now_in_microseconds();
  const auto added = links_.store->add(place, time, found, capture);
  if (!added) {
    tell(fmt::format("not stored: {}: {}: {}", found.front().fingerprint, found.front().summary,
                     added.error().to_string()));
    ++fresh_.not_stored;
    return 0;
  }
  if (!added->problem.empty()) {
    tell(added->problem);
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (added->is_new[i]) {
      ++fresh_.new_findings;
      links_.found({config_.name, pid, time, place, found[i]});
    }
  }
  return added->slice;
}

// What cannot be read hides nothing: then too much is told, not too little.
FindingFilter& TargetWatcher::filter() {
  std::vector<std::string> files = config_.suppressions;
  files.push_back(links_.store->suppressions_file());
  std::string state;
  for (const std::string& file : files) {
    state += state_of(file) + "\n";
  }
  if (state == filter_state_) {
    return filter_;
  }
  filter_state_ = state;
  std::vector<std::string> readable;
  for (const std::string& file : files) {
    const auto read =
        check_trusted(file, ::geteuid()).and_then([&] { return FindingFilter::read({file}, {}); });
    if (read) {
      readable.push_back(file);
    } else if (file != files.back() || state_of(file) != "-") {  // the store may have none
      tell(read.error().to_string());
    }
  }
  filter_ = FindingFilter::read(readable, {}).value_or(FindingFilter());
  return filter_;
}

}  // namespace tsomon::service
