#include "monitor/service/kept_analysis.h"

#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <sys/wait.h>

#include "monitor/service/system_time.h"

namespace tsomon::service {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kNothingToDo{1000};
constexpr milliseconds kAfterProblem{10'000};
constexpr double kEffort =
    10;  // `check` may use so many times the usual work; the bound on time ends it

std::string seconds_text(std::chrono::microseconds time) {
  return fmt::format("{} s of processor time", time.count() / 1'000'000);
}

}  // namespace

void AnalysisCounters::add(const AnalysisCounters& more) {
  for (const auto& [key, count] : more.ended) {
    ended[key] += count;
  }
  raised += more.raised;
  explained += more.explained;
  predicted += more.predicted;
  used += more.used;
}

KeptAnalysis::KeptAnalysis(IdleBounds bounds, AnalysisLinks links, std::string program)
    : bounds_(bounds),
      links_(std::move(links)),
      program_(std::move(program)),
      thread_([this] { work(); }) {}

KeptAnalysis::~KeptAnalysis() {
  ask_to_stop();
  thread_.join();
}

void KeptAnalysis::ask_to_stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_.ask();
  }
  stopped_.notify_all();
}

void KeptAnalysis::wait(milliseconds time) {
  std::unique_lock<std::mutex> lock(mutex_);
  stopped_.wait_for(lock, time, [this] { return stop_.asked(); });
}

AnalysisCounters KeptAnalysis::counters() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counters_;
}

void KeptAnalysis::work() {
  try {
    while (!stop_.asked()) {
      if (!do_next()) {
        wait(kNothingToDo);
      }
    }
  } catch (const std::exception& problem) {
    links_.tell(fmt::format("slices are not analysed any more: {}", problem.what()));
  }
}

bool KeptAnalysis::do_next() {
  auto next = links_.store->begin_analysis(now_in_microseconds());
  if (!next) {
    links_.tell("slices are not analysed: " + next.error().to_string());
    wait(kAfterProblem);
    return true;
  }
  if (!*next) {
    return false;
  }
  SliceAnalysis& analysis = **next;
  analysis.place.host = links_.host;
  const AnalysisEnd end = analyse(analysis);
  const auto is_new = links_.store->end_analysis(analysis, end, now_in_microseconds());
  if (!is_new) {
    links_.tell("what an analysis found is not stored: " + is_new.error().to_string());
    wait(kAfterProblem);
    return true;
  }
  for (size_t i = 0; i < end.found.size(); ++i) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      counters_.raised += end.found[i].predicted ? 0 : 1;
      counters_.predicted += end.found[i].predicted && (*is_new)[i] ? 1 : 0;
    }
    if ((*is_new)[i]) {
      links_.found(analysis, end.found[i]);
    }
  }
  return true;
}

AnalysisEnd KeptAnalysis::analyse(const SliceAnalysis& analysis) {
  const double effort = kEffort * std::chrono::duration<double>(bounds_.processor_time).count() /
                        std::max(bounds_.share, 0.001);
  const auto ended = links_.run(
      bounds_,
      analysis_command(program_, analysis, effort, links_.suppressions(analysis.place.target)),
      [this] { return stop_.asked(); });
  AnalysisEnd end;
  std::string how = "done";
  if (!ended) {
    links_.tell(ended.error().to_string());
    end.how = AnalysisEnd::How::kStopped;
    wait(kAfterProblem);
    return end;
  }
  const int status = ended->wait_status;
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (ended->why == IdleEnd::Why::kStopped) {
    end.how = AnalysisEnd::How::kStopped;
    how = "stopped";
  } else if (ended->why == IdleEnd::Why::kMemory) {
    how = "memory";
    end.result = fmt::format("took more than {} MB of memory", bounds_.memory_bytes >> 20);
  } else if (signal == SIGXFSZ) {
    how = "output";
    end.result = fmt::format("wrote more than {} MB", bounds_.output_bytes >> 20);
  } else if (signal != 0 && ended->why != IdleEnd::Why::kTime) {
    end.how = AnalysisEnd::How::kCrashed;
    how = "crashed";
    end.result = fmt::format("it was ended by signal {} ({})", signal, ::strsignal(signal));
  } else {
    end = end_of_output(analysis, ended->output);
    if (ended->why == IdleEnd::Why::kTime) {
      how = "time";
      end.result = fmt::format("took more than {}: {}", seconds_text(bounds_.processor_time),
                               signal != 0 ? "ended" : end.result);
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  ++counters_.ended[{name_of(analysis.what), how}];
  counters_.explained += end.explanation.empty() ? 0 : 1;
  counters_.used += ended->used;
  return end;
}

}  // namespace tsomon::service
