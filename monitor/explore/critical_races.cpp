#include "monitor/explore/critical_races.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "monitor/explore/class_linearizability.h"
#include "monitor/explore/found.h"
#include "monitor/explore/learning_program.h"
#include "monitor/explore/schedule.h"
#include "monitor/process/symbols.h"
#include "offline/explore/operation_name.h"
#include "offline/explore/step_tree.h"
#include "tso/support/work.h"

namespace tsomon::explore {
namespace {

using Clock = std::chrono::steady_clock;

class RaceExplorer : private explain::InterleavingTree {
 public:
  RaceExplorer(const ExploreOptions& options, ProgramProcess& process)
      : options_(options),
        process_(process),
        program_(process, nullptr),
        symbols_(process.modules()),
        begun_(Clock::now()),
        linearizability_(options.object, options.specification.get()) {}

  RacesExplored explore() {
    std::set<uint64_t> contended;
    do {
      result_ = {};
      result_.program = options_.command[0];
      builder_ = {};
      program_.take_learnt();
      tree_ = std::make_unique<StepTree>(program_, options_.model, judged(), contended);
      tree_->begin();
      if (!ended()) {
        result_.races = explain::find_critical_races(*this);
      }
      runs_ += tree_->runs();
      contended = tree_->contended();
    } while (must_begin_anew());
    finish();
    return std::move(result_);
  }

 private:
  Judged judged() const {
    return options_.serializability || options_.robustness || options_.linearizability
               ? Judged::kGraph
               : Judged::kEnd;
  }

  // More is a step, or branches, than this tree knows.
  bool must_begin_anew() const {
    const bool over = tree_->ended() && tree_->run().end != End::kDiverged;
    return (tree_->changed() || program_.learnt()) && !over && result_.notes.empty();
  }

  void note(const std::string& why) {
    if (std::find(result_.notes.begin(), result_.notes.end(), why) == result_.notes.end()) {
      result_.notes.push_back(why);
    }
  }

  bool over_bounds() {
    if (stop_asked()) {
      note("interrupted");
    } else if (options_.seconds > 0 &&
               std::chrono::duration<double>(Clock::now() - begun_).count() > options_.seconds) {
      note("the time is over (--time)");
    } else if (options_.executions != 0 && runs_ + tree_->runs() >= options_.executions) {
      note("so many executions were asked for (--executions)");
    } else {
      return false;
    }
    return true;
  }

  // The tree that is labelled.
  std::vector<Access> next() override {
    std::vector<Access> accesses;
    if (over_bounds()) {
      return accesses;
    }
    for (const Step& step : tree_->choices()) {
      accesses.push_back({step.choice.thread, place_of(step)});
    }
    return accesses;
  }
  bool ended() const override {
    return tree_->ended() || tree_->changed() || program_.learnt() || !result_.notes.empty();
  }
  void step(size_t which) override { tree_->take(which); }
  void back() override { tree_->back(); }
  std::string key() override { return tree_->key(); }

  bool faulty() override {
    const Run& run = tree_->run();
    if (!run.not_understood.empty()) {
      note(not_understood_text(run));
      return false;
    }
    if (run.end == End::kCrashed) {
      keep(run, found_crash(run, {}));
    } else if (run.end == End::kExited) {
      keep(run, found_status(run));
    } else if (run.end == End::kStuck) {
      keep(run, found_stuck(run));
    } else {
      const Graph graph = graph_of(run);
      std::vector<Found> all = violated_properties(graph, run, options_.model,
                                                   {options_.serializability, options_.robustness},
                                                   [this](uint64_t pc) { return place(pc); });
      if (options_.linearizability) {
        add_linearizability(graph, run, &all);
      }
      for (const Found& found : all) {
        keep(run, found);
      }
      return !all.empty();
    }
    return true;
  }

  Graph graph_of(const Run& run) {
    const GraphBuilder::Ranges known = builder_.ranges();
    Graph graph = builder_.of_run(run, options_.model, true);
    if (const GraphBuilder::Ranges found = builder_.ranges(); found != known) {
      builder_ = {};
      builder_.set_ranges(found);
      graph = builder_.of_run(run, options_.model, true);
    }
    return graph;
  }

  // Of any order of calls and returns that the interleaving of the accesses leaves open.
  void add_linearizability(const Graph& graph, const Run& run, std::vector<Found>* all) {
    const auto bad = linearizability_.judge(graph, options_.model, run.marks,
                                            [this](uint32_t one) { return process_.label(one); });
    if (!linearizability_.open().empty()) {
      note(linearizability_.open());
    }
    if (bad) {
      all->push_back({"linearizability", fmt::format("the {} is not linearizable", bad->object),
                      bad->text, bad->places, bad->history, bad->schedule});
    }
  }

  std::string place(uint64_t pc) { return pc == 0 ? std::string() : symbols_.text(pc); }
  // What it does and where: "load" and the location, separated as in races_text.
  std::string place_of(const Step& step) {
    return fmt::format("{}\x1f{}", step.choice.commit != 0 ? "commit" : operation_name(step.op),
                       place(step.pc));
  }

  void keep(const Run& run, const Found& found) {
    std::vector<std::string> locations;
    for (const uint64_t pc : found.places) {
      if (std::string text = place(pc);
          std::find(locations.begin(), locations.end(), text) == locations.end()) {
        locations.push_back(std::move(text));
      }
    }
    auto known = std::find_if(result_.faults.begin(), result_.faults.end(),
                              [&](const ExploreFinding& fault) {
                                return fault.kind == found.kind && fault.locations == locations;
                              });
    if (known == result_.faults.end()) {
      result_.faults.emplace_back();
      known = std::prev(result_.faults.end());
      known->kind = found.kind;
      known->text = found.text + (found.message.empty() ? "" : ": " + found.message);
      known->locations = locations;
    } else if (++known->classes, run.steps.size() >= known->steps) {
      return;
    }
    known->classes = std::max<uint64_t>(known->classes, 1);
    known->steps = run.steps.size();
    std::vector<Choice> schedule = found.schedule;
    for (size_t i = 0; found.schedule.empty() && i < run.steps.size(); ++i) {
      schedule.push_back(run.steps[i].choice);
    }
    known->schedule = schedule_text(
        {schedule, process_.shared_words(), process_.origins(), process_.split_words()});
  }

  // The words of a program that aborted: each fault's schedule is run once more.
  void add_messages() {
    for (ExploreFinding& fault : result_.faults) {
      if (fault.kind != "assertion" && fault.kind != "crash") {
        continue;
      }
      Request request;
      request.model = options_.model;
      // A program that ends before its first step has none.
      if (auto schedule = parse_schedule(fault.schedule)) {
        request.prefix = std::move(schedule->steps);
      }
      const Run& run = process_.run(request);
      if (run.end == End::kCrashed) {
        const Found found = found_crash(run, process_.error_output());
        fault.text = found.text + (found.message.empty() ? "" : ": " + found.message);
      }
    }
  }

  void finish() {
    result_.runs = runs_;
    if (tree_->ended()) {
      result_.refused = tree_->run().end == End::kRefused;
      note(not_judged_text(tree_->run(), options_.max_steps,
                           [this](uint64_t pc) { return place(pc); }));
    } else if (tree_->run().steps.empty()) {
      note("the program starts no thread: there is nothing to explore");
    }
    if (program_.unsaid()) {
      note("copies of several shared words at once were taken for one step");
    }
    if (options_.linearizability && !linearizability_.any()) {
      note("the program calls no operation of an object (tsomon_call): none was judged");
    }
    for (const std::string& why : result_.races.notes) {
      note(why);
    }
    add_messages();
    result_.seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
  }

  const ExploreOptions& options_;
  ProgramProcess& process_;
  LearningProgram program_;
  Symboliser symbols_;
  const Clock::time_point begun_;
  ClassLinearizability linearizability_;
  GraphBuilder builder_;
  std::unique_ptr<StepTree> tree_;
  uint64_t runs_ = 0;
  RacesExplored result_;
};

}  // namespace

Result<RacesExplored> explore_races(const ExploreOptions& options) {
  ProcessOptions process_options;
  process_options.max_steps = options.max_steps;
  process_options.fork = options.fork;
  process_options.reuse = options.reuse;
  process_options.spurious = options.spurious;
  auto process = ProgramProcess::start(options.command, process_options);
  if (!process) {
    return tl::unexpected(process.error());
  }
  return RaceExplorer(options, **process).explore();
}

std::optional<RacesExplored> what_decided(ExploreOptions options, const Exploration& explored) {
  if (!explored.complete() || explored.findings.empty()) {
    return std::nullopt;
  }
  options.executions = explored.executions + explored.blocked + kMostRunsDecided;
  if (options.seconds > 0) {
    options.seconds -= explored.seconds;
    if (options.seconds <= 0) {
      return std::nullopt;
    }
  }
  auto decided = explore_races(options);
  if (!decided || !decided->complete() || decided->races.faulty == 0) {
    return std::nullopt;  // the findings stand without it
  }
  return std::move(*decided);
}

}  // namespace tsomon::explore
