// The runs of a program's process, some of them ahead of those that ask for them (channel.h).
#include <algorithm>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/explore/channel.h"
#include "monitor/explore/program_process.h"
#include "tso/support/work.h"

namespace tsomon::explore {
namespace {

using RunClock = std::chrono::steady_clock;

double seconds_from(RunClock::time_point begin) {
  return std::chrono::duration<double>(RunClock::now() - begin).count();
}

// Of processor time; 0 when it cannot be told. Others may need the processors.
double used_seconds(pid_t process) {
  clockid_t clock = 0;
  timespec time{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0) {
    return 0;
  }
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// A debugger holds it for as long as it likes.
bool is_traced(pid_t process) {
  constexpr std::string_view kTracer = "TracerPid:\t";
  std::ifstream file(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kTracer)) {
      return line.substr(kTracer.size()) != "0";
    }
  }
  return false;
}

struct RunParts {
  const Step* steps;
  const Mark* marks;
  const Waiting* waiting;
  const char* outcomes;
};

void set_run(const LoggedRun& head, const RunParts& parts, Run* run) {
  run->end = head.end;
  run->signal = 0;
  run->status = head.status;
  run->detail.assign(head.detail, strnlen(head.detail, sizeof head.detail));
  run->not_understood = head.not_understood;
  if (WIFSIGNALED(head.wait_status)) {
    run->end = End::kCrashed;
    run->signal = WTERMSIG(head.wait_status);
  } else if (run->end == End::kHung) {
    run->end = End::kRefused;
    run->detail = "exit_group";
  }
  run->steps.assign(parts.steps, parts.steps + head.step_count);
  run->marks.assign(parts.marks, parts.marks + head.mark_count);
  run->waiting.assign(parts.waiting, parts.waiting + head.waiting_count);
  run->unsaid = head.unsaid;
  run->cut_waits = head.cut_waits;
  run->freed_compared = head.freed_compared;
  run->fault_pc = head.fault_pc;
  run->outcomes.clear();
  for (uint32_t at = 0; at < head.outcome_bytes;) {
    run->outcomes.emplace_back(parts.outcomes + at,
                               strnlen(parts.outcomes + at, head.outcome_bytes - at));
    at += static_cast<uint32_t>(run->outcomes.back().size()) + 1;
  }
}

}  // namespace

void ProgramProcess::sleep_on_done(uint32_t value) {
  constexpr long kTickMilliseconds = 50;
  const timespec tick{0, kTickMilliseconds * 1'000'000};
  channel_->sleepers.fetch_add(1);
  syscall(SYS_futex, &channel_->done, FUTEX_WAIT, value, &tick, nullptr, 0);
  channel_->sleepers.fetch_sub(1);
}

void ProgramProcess::expect(const std::vector<Request>& requests) {
  expected_ = requests;
  next_expected_ = 0;
  drop_ahead();
}

// What has been run ahead is void.
void ProgramProcess::drop_ahead() {
  logged_ = 0;
  newest_is_left_ = false;
}

bool ProgramProcess::is_ahead(const Request& request) const {
  return (logged_ != 0 || newest_is_left_) && next_expected_ < expected_.size() &&
         expected_[next_expected_] == request;
}

const Run& ProgramProcess::run(const Request& request) {
  ++runs_;
  if (request.prefix.size() > options_.max_steps) {
    run_ = {};
    run_.end = End::kBound;
    return run_;
  }
  if (request.contended.size() > kSharedTable / 2) {
    run_ = {};
    run_.end = End::kFailed;
    run_.detail = "threads are in a race for more than some thousand bytes";
    return run_;
  }
  if (!is_ahead(request)) {
    ask(request);
  }
  if (next_expected_ < expected_.size()) {
    next_expected_ = expected_[next_expected_] == request ? next_expected_ + 1 : expected_.size();
  }
  take_next();
  return run_;
}

void ProgramProcess::ask(const Request& request) {
  Channel& channel = *channel_;
  channel.model = request.model;
  channel.policy = request.policy;
  channel.waiting_is_final = request.waiting_is_final;
  channel.show_output = options_.show_output;
  channel.spurious = options_.spurious;
  channel.reuse = options_.reuse;
  channel.waiting = request.waiting;
  channel.seed = request.seed;
  channel.depth = request.depth;
  channel.length = request.length;
  channel.max_steps = options_.max_steps;
  channel.prefix_size = static_cast<uint32_t>(request.prefix.size());
  std::copy(request.prefix.begin(), request.prefix.end(), channel.prefix);
  if (channel.contended_count != 0 && request.contended.size() != channel.contended_count) {
    std::fill(std::begin(channel.contended), std::end(channel.contended), 0);
    channel.contended_count = 0;
  }
  for (const uint64_t word : request.contended) {
    table_add(channel.contended, &channel.contended_count, word);
  }
  channel.queued = 0;
  channel.taken = 0;
  channel.log_bytes = 0;
  channel.wrote_errors = 0;
  if (next_expected_ < expected_.size() && expected_[next_expected_] == request) {
    queue_expected();
  }
  channel.end = End::kHung;
  channel.status = 0;
  channel.detail[0] = 0;
  channel.not_understood[0] = 0;
  channel.step_count = 0;
  channel.mark_count = 0;
  channel.waiting_count = 0;
  channel.found_count = 0;
  channel.outcome_bytes = 0;
  channel.unsaid = 0;
  channel.cut_waits = 0;
  channel.freed_compared = 0;
  channel.fault_pc = 0;
  if (lseek(errors_, 0, SEEK_END) > 0) {
    lseek(errors_, 0, SEEK_SET);
    static_cast<void>(ftruncate(errors_, 0));
  }
  newest_ = {};
  const uint64_t in_place = channel.in_place;
  const auto begin = RunClock::now();
  channel.request.fetch_add(1);
  if (channel.sleepers.load() != 0) {
    syscall(SYS_futex, &channel.request, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
  if (wait_for_run()) {
    take_run();
  }
  logged_ = at_most(channel.taken, kMaxAhead);
  log_at_ = 0;
  newest_is_left_ = true;
  newest_was_in_place_ = channel.in_place - in_place > logged_;
  seconds_per_run_ = seconds_from(begin) / (logged_ + 1);
}

// Those that come behind the one that is asked for, as far as they do not take long.
void ProgramProcess::queue_expected() {
  constexpr double kSeconds = 0.002;
  Channel& channel = *channel_;
  if (!channel.run_in_place) {
    return;
  }
  const Request& first = expected_[next_expected_];
  const auto most = static_cast<uint32_t>(std::min<double>(kMaxAhead, kSeconds / seconds_per_run_));
  uint32_t choices = 0;
  for (size_t i = next_expected_ + 1; i < expected_.size() && channel.queued < most; ++i) {
    const Request& next = expected_[i];
    Request other = first;
    other.seed = next.seed;
    other.waiting = next.waiting;
    other.prefix = next.prefix;
    if (other != next || next.prefix.size() > options_.max_steps ||
        next.prefix.size() > kAheadChoices - choices) {
      return;
    }
    channel.queue[channel.queued++] = {next.seed, next.waiting, choices,
                                       static_cast<uint32_t>(next.prefix.size())};
    std::copy(next.prefix.begin(), next.prefix.end(), channel.queue_choices + choices);
    choices += static_cast<uint32_t>(next.prefix.size());
  }
}

// False: the run was ended from here, and why is in it.
bool ProgramProcess::wait_for_run() {
  Channel& channel = *channel_;
  uint32_t steps = 0;
  auto since = RunClock::now();
  double used = 0;  // by then
  bool ended = false;
  while (channel.done.load(std::memory_order_acquire) == served_) {
    sleep_on_done(served_);
    if (channel.done.load(std::memory_order_acquire) != served_) {
      break;
    }
    if (const uint32_t now = channel.step_count.load(); now != steps) {
      steps = now;
      since = RunClock::now();
      used = used_seconds(channel.child.load());
    }
    int status = 0;
    if (server_ > 0 && waitpid(server_, &status, WNOHANG) == server_) {
      server_ = -1;
      newest_.end = End::kFailed;
      newest_.detail = "the process that starts the runs has ended";
      return false;
    }
    const bool hung = seconds_from(since) > options_.hang_seconds &&
                      (used_seconds(channel.child.load()) - used > options_.hang_seconds / 2 ||
                       seconds_from(since) > 10 * options_.hang_seconds);
    if (!ended && (hung || stop_asked())) {
      const pid_t child = channel.child.load();
      if (child > 0 && !(options_.show_output && is_traced(child))) {
        channel.ended_here = 1;
        kill(child, SIGKILL);
        ended = true;
        newest_.end = stop_asked() ? End::kStopped : End::kHung;
      }
    }
  }
  ++served_;
  // The terminal's SIGINT went to the run of a replay, too.
  if (!ended && stop_asked() && WIFSIGNALED(channel.wait_status) &&
      WTERMSIG(channel.wait_status) == SIGINT) {
    newest_.end = End::kStopped;
    return false;
  }
  if (ended && newest_.end == End::kHung) {
    take_run();
    newest_.end = End::kHung;
    return false;
  }
  return !ended;
}

// The one that was run last.
void ProgramProcess::take_run() {
  const Channel& channel = *channel_;
  LoggedRun head{};
  head.end = channel.end;
  head.status = channel.status;
  head.wait_status = channel.wait_status;
  head.step_count = std::min(channel.step_count.load(), kMaxSteps);
  head.mark_count = at_most(channel.mark_count, kMaxMarks);
  head.waiting_count = at_most(channel.waiting_count, kMaxThreads + 1);
  head.outcome_bytes = at_most(channel.outcome_bytes, kOutcomeBytes);
  head.unsaid = channel.unsaid;
  head.cut_waits = channel.cut_waits;
  head.freed_compared = channel.freed_compared;
  head.fault_pc = channel.fault_pc;
  std::copy(std::begin(channel.detail), std::end(channel.detail), head.detail);
  std::copy(std::begin(channel.not_understood), std::end(channel.not_understood),
            head.not_understood);
  set_run(head, {channel.steps, channel.marks, channel.waiting_threads, channel.outcomes},
          &newest_);
}

void ProgramProcess::take_next() {
  took_newest_ = logged_ == 0;
  if (took_newest_) {
    newest_is_left_ = false;
    in_place_ += newest_was_in_place_ ? 1 : 0;
    std::swap(run_, newest_);
    return;
  }
  ++in_place_;
  const uint8_t* at = channel_->log + log_at_;
  LoggedRun head{};
  if (kLogBytes - log_at_ >= sizeof head) {
    std::memcpy(&head, at, sizeof head);
  }
  const uint64_t bytes = sizeof head + uint64_t{head.step_count} * sizeof(Step) +
                         uint64_t{head.mark_count} * sizeof(Mark) +
                         uint64_t{head.waiting_count} * sizeof(Waiting) + head.outcome_bytes;
  if (bytes > head.bytes || head.bytes > kLogBytes - log_at_) {
    run_ = Run();
    run_.end = End::kFailed;
    run_.detail = "the program has written over what it shares with the explorer";
    logged_ = 0;
    return;
  }
  RunParts parts{};
  at += sizeof head;
  parts.steps = reinterpret_cast<const Step*>(at);
  at += head.step_count * sizeof(Step);
  parts.marks = reinterpret_cast<const Mark*>(at);
  at += head.mark_count * sizeof(Mark);
  parts.waiting = reinterpret_cast<const Waiting*>(at);
  at += head.waiting_count * sizeof(Waiting);
  parts.outcomes = reinterpret_cast<const char*>(at);
  set_run(head, parts, &run_);
  log_at_ += head.bytes;
  --logged_;
}

}  // namespace tsomon::explore
