// Analyses of the slices that a store has, when there is time.
//
// What        Of each slice, the last one first: `check` with all the work that it may use, of findings that are only possible;
//             `explain` of those that it shows, which have no explanation yet; `predict`. Each is the command of this name, in
//             a process of its own (idle_process.h): what it crashes on, or needs too much memory for, ends that alone.
// Results     In the store, in one step with the word that the analysis is done: findings become definite, get their repairs,
//             or are new as predictions. What bound was met is the result, too.
// Again       Whoever is killed meanwhile begins with that slice again. One on which an analysis crashed twice is left, and
//             so is one of which nobody saw the end five times.
// Errors      Told; it goes on with the next one. Of the store: it is asked again after some seconds.
// Thread-safety: counters() and ask_to_stop() from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "monitor/service/idle_process.h"
#include "monitor/service/store.h"
#include "tso/support/work.h"

namespace tsomon::service {

struct AnalysisCounters {
  std::map<std::pair<std::string, std::string>, uint64_t> ended;  // by what it was and how it ended
  uint64_t raised = 0;                // findings that are definite since
  uint64_t explained = 0;             // slices
  uint64_t predicted = 0;             // findings that were not there
  std::chrono::microseconds used{0};  // processor time

  void add(const AnalysisCounters& more);
};

struct AnalysisLinks {
  Store* store = nullptr;
  // As IdleProcess::run().
  std::function<Result<IdleEnd>(const IdleBounds&, const std::vector<std::string>&,
                                const std::function<bool()>&)>
      run;
  std::string host;
  // Of a target's name: files of --suppressions that there are.
  std::function<std::vector<std::string>(const std::string&)> suppressions;
  std::function<void(const SliceAnalysis&, const SeenFinding&)> found;  // new ones
  std::function<void(const std::string&)> tell;
};

// What a command of this program wrote, as an end. `what`: kCheck, kExplain, kPredict.
AnalysisEnd end_of_output(const SliceAnalysis& analysis, const std::string& output);
// What is run: `program` and its arguments.
std::vector<std::string> analysis_command(const std::string& program, const SliceAnalysis& analysis,
                                          double effort_seconds,
                                          const std::vector<std::string>& suppressions);

class KeptAnalysis {
 public:
  // The thread begins at once. `program`: tsomon.
  KeptAnalysis(IdleBounds bounds, AnalysisLinks links, std::string program = "/proc/self/exe");
  KeptAnalysis(const KeptAnalysis&) = delete;
  KeptAnalysis& operator=(const KeptAnalysis&) = delete;
  ~KeptAnalysis();  // asks to stop, and waits: a tenth of a second

  void ask_to_stop();
  AnalysisCounters counters() const;

 private:
  void work();
  bool do_next();  // false: there is nothing to do
  AnalysisEnd analyse(const SliceAnalysis& analysis);
  void wait(std::chrono::milliseconds time);

  const IdleBounds bounds_;
  const AnalysisLinks links_;
  const std::string program_;
  StopFlag stop_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable stopped_;
  AnalysisCounters counters_;
  std::thread thread_;
};

}  // namespace tsomon::service
