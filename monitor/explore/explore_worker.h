// One of the processes that `tsomon explore` runs a program in, and its part of the search.
//
// Purpose     `--jobs`: each worker has a process of the program and searches a part of what there
//             is to be run; parts go from worker to worker (offline/explore/task_pool.h).
// Thread-safety: each is used by one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "monitor/explore/explore.h"
#include "monitor/explore/learning_program.h"
#include "monitor/explore/program_process.h"
#include "offline/explore/execution_graph.h"
#include "offline/explore/graph_search.h"
#include "offline/explore/naive_search.h"
#include "offline/explore/state_search.h"

namespace tsomon::explore {

// What the strategies have in common.
struct NextRun {
  const Run* run = nullptr;  // nullptr: it did not fit
  // Valid until the worker's next one. That of a run that did not fit may be nullptr.
  const Graph* graph = nullptr;
  std::vector<Choice> schedule;
};

// Of random and pct, and of a replay: what the workers share.
struct PickedRuns {
  std::atomic<uint64_t> begun{0};
  std::atomic<uint32_t> length{0};  // of the first of them
};

// By strategy: a subtree of graphs, a beginning of sequences, or nothing.
struct ExplorePart {
  GraphSearch::Subtree subtree;
  std::vector<Choice> start;
};

class ExploreWorker {
 public:
  ExploreWorker(const ExploreOptions& options, std::unique_ptr<ProgramProcess> process)
      : options_(options), process_(std::move(process)) {
    set_repair(nullptr);
  }
  // `places` may be nullptr, and has to outlive the worker.
  void set_repair(RepairPlaces* places) {
    program_ = std::make_unique<LearningProgram>(*process_, places);
  }

  ProgramProcess& process() { return *process_; }
  LearningProgram& program() { return *program_; }
  GraphBuilder& builder() { return builder_; }
  const GraphBuilder& builder() const { return builder_; }
  // Some sequences were left out (--preemptions).
  bool bounded() const { return bounded_; }

  // All that was seen; `ranges` are cells from now on.
  void forget(const GraphBuilder::Ranges& ranges);
  void begin(const ExplorePart& part, PickedRuns* picked);
  bool done() const;
  NextRun next();
  // A part of what is left, for another; false: there is too little.
  bool give(ExplorePart* part);

 private:
  uint64_t most_picks() const;
  bool picks() const {
    return !options_.replay.empty() || options_.strategy == Strategy::kRandom ||
           options_.strategy == Strategy::kPct;
  }
  Request request_of(uint64_t number) const;
  const Run& pick();

  const ExploreOptions& options_;
  std::unique_ptr<ProgramProcess> process_;
  std::unique_ptr<LearningProgram> program_;
  GraphBuilder builder_;
  Graph graph_;  // of the last run, where no search has it
  std::unique_ptr<GraphSearch> graphs_;
  std::unique_ptr<NaiveSearch> sequences_;
  std::unique_ptr<StateSearch> states_;
  PickedRuns* picked_ = nullptr;
  uint64_t next_pick_ = 0;  // of those that this worker has taken
  uint64_t end_of_picks_ = 0;
  bool bounded_ = false;
};

}  // namespace tsomon::explore
