#include "monitor/explore/explore.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <unordered_set>

#include <fmt/format.h>

#include "monitor/explore/class_linearizability.h"
#include "monitor/explore/class_trace.h"
#include "monitor/explore/found.h"
#include "monitor/explore/learning_program.h"
#include "monitor/explore/program_process.h"
#include "monitor/explore/schedule.h"
#include "monitor/process/symbols.h"
#include "offline/explore/execution_graph.h"
#include "offline/explore/graph_search.h"
#include "offline/explore/naive_search.h"
#include "offline/explore/state_search.h"
#include "tso/support/work.h"

namespace tsomon::explore {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMaxClasses = 1'000'000;
constexpr size_t kMaxFindings = 100;

std::string hash_text(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char byte : text) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  }
  return fmt::format("{:016x}", hash);
}

// What the strategies have in common: where the next run comes from.
struct NextRun {
  const Run* run = nullptr;  // nullptr: it did not fit
  Graph graph;
  std::vector<Choice> schedule;
};

std::vector<Choice> executed(const Run& run) {
  std::vector<Choice> schedule;
  for (const Step& step : run.steps) {
    if (!step.waits) {
      schedule.push_back(step.choice);
    }
  }
  return schedule;
}

class Explorer {
 public:
  Explorer(const ExploreOptions& options, ProgramProcess& process)
      : options_(options),
        process_(process),
        symbols_(process.modules()),
        places_(options.repair != nullptr ? *options.repair : no_repair_, process, symbols_),
        program_(process, options.repair != nullptr ? &places_ : nullptr),
        begun_(Clock::now()),
        linearizability_(options.object) {}

  Exploration explore() {
    do {
      again_ = false;
      begin();
      search();
    } while (again_);
    finish();
    return std::move(result_);
  }

 private:
  void begin() {
    const uint64_t restarts = result_.restarts;
    result_ = {};
    result_.program = options_.command[0];
    result_.restarts = restarts;
    builder_ = {};
    classes_.clear();
    keys_.clear();
    random_runs_ = 0;
    graphs_ = std::make_unique<GraphSearch>(program_, builder_, options_.model);
    sequences_ = std::make_unique<NaiveSearch>(program_, options_.model, options_.preemptions);
    states_ = std::make_unique<StateSearch>(
        program_, options_.model,
        options_.serializability || options_.robustness || options_.linearizability ? Judged::kGraph
                                                                                    : Judged::kEnd);
    traces_ = std::make_unique<ClassTraces>(options_.folder);
  }

  bool done() const {
    if (!options_.replay.empty()) {
      return random_runs_ == 1;
    }
    switch (options_.strategy) {
      case Strategy::kDpor:
        return graphs_->done();
      case Strategy::kNaive:
        return sequences_->done();
      case Strategy::kStates:
        return states_->done();
      case Strategy::kRandom:
      case Strategy::kPct:
        break;
    }
    return random_runs_ >= (options_.executions != 0 ? options_.executions : kSampled);
  }

  NextRun next() {
    NextRun next;
    if (options_.replay.empty() && options_.strategy == Strategy::kDpor) {
      const GraphSearch::Result result = graphs_->next();
      next.run = result.run;
      next.schedule = result.schedule;
      if (result.graph != nullptr) {
        next.graph = *result.graph;
      }
      return next;
    }
    if (options_.replay.empty() && options_.strategy == Strategy::kNaive) {
      next.run = &sequences_->next();
    } else if (options_.replay.empty() && options_.strategy == Strategy::kStates) {
      next.run = states_->next();
      if (next.run == nullptr) {
        return next;
      }
    } else {
      Request request;
      request.model = options_.model;
      request.seed = options_.seed + random_runs_++;
      if (!options_.replay.empty()) {
        request.prefix = parse_schedule(options_.replay)->steps;
      } else {
        request.policy = options_.strategy == Strategy::kPct ? Policy::kPct : Policy::kRandom;
        request.depth = options_.depth;
        request.length = length_;
      }
      next.run = &program_.run(request);
      length_ = std::max(length_, static_cast<uint32_t>(next.run->steps.size()));
    }
    if (next.run->end != End::kDiverged) {
      next.graph = builder_.of_run(*next.run, options_.model, true);
    }
    next.schedule = executed(*next.run);
    return next;
  }

  void note(const std::string& why) {
    if (std::find(result_.notes.begin(), result_.notes.end(), why) == result_.notes.end()) {
      result_.notes.push_back(why);
    }
  }

  void search() {
    while (!done()) {
      if (stop_asked()) {
        return note("interrupted");
      }
      if (options_.seconds > 0 &&
          std::chrono::duration<double>(Clock::now() - begun_).count() > options_.seconds) {
        return note("the time is over (--time)");
      }
      if (options_.executions != 0 && result_.executions + result_.blocked >= options_.executions) {
        return note("so many executions were asked for (--executions)");
      }
      const NextRun run = next();
      if (program_.take_learnt()) {
        again_ = true;
        ++result_.restarts;
        return;
      }
      if (run.run == nullptr) {
        return options_.strategy == Strategy::kStates
                   ? void()
                   : note(
                         "the program is not deterministic: under the same schedule it did not do "
                         "the same");
      }
      if (!judge(run)) {
        return;
      }
    }
  }

  // False: nothing more can be explored.
  bool judge(const NextRun& next) {
    const Run& run = *next.run;
    if (run.unsaid != 0) {
      note("copies of several shared words at once were taken for one step");
    }
    if (builder_.mixed_at() != 0) {
      note(
          fmt::format("accesses of different sizes share bytes at {:#x} {}: their orders were not "
                      "told apart",
                      builder_.mixed_at(), symbols_.variable(builder_.mixed_at())));
    }
    switch (run.end) {
      case End::kFinished:
        if (run.steps.empty()) {
          note("the program starts no thread: there is nothing to explore");
        }
        count(next, std::nullopt);
        return true;
      case End::kStuck:
        judge_stuck(next);
        return true;
      case End::kCrashed:
        count(next, found_crash(run, process_.error_output()));
        return true;
      case End::kExited:
        count(next, found_status(run));
        return true;
      case End::kInterrupted:
        ++result_.blocked;
        return true;
      case End::kBound:
        ++result_.blocked;
        note(why_not_judged(run));
        return true;
      case End::kDiverged:
        note(options_.replay.empty() ? why_not_judged(run)
                                     : "the schedule does not fit to the program");
        return false;
      case End::kRefused:
      case End::kHung:
      case End::kFailed:
      case End::kStopped:
        result_.refused = run.end == End::kRefused;
        note(why_not_judged(run));
        return false;
    }
    return false;
  }

  std::string why_not_judged(const Run& run) {
    return not_judged_text(run, options_.max_steps, [this](uint64_t pc) { return place(pc); });
  }

  // Threads wait: for ever, or only for what this run did not let them have.
  void judge_stuck(const NextRun& next) {
    if (waits_for_scheduler(*next.run)) {
      ++result_.blocked;
    } else {
      count(next, found_stuck(*next.run));
    }
  }

  void count(const NextRun& next, const std::optional<Found>& found) {
    ++result_.executions;
    bool is_new = true;
    if (classes_.size() < kMaxClasses) {
      is_new = classes_.insert(class_hash(next.graph)).second;
    }
    if (!is_new) {
      ++result_.redundant;
      shorten(next, found);
      return;
    }
    ++result_.classes;
    std::vector<std::string> outcomes = next.run->outcomes;
    std::sort(outcomes.begin(), outcomes.end());
    const std::string outcome = fmt::format("{}", fmt::join(outcomes, "; "));
    if (!found && !outcomes.empty()) {
      ++result_.outcomes[outcome];
    }
    const size_t before = reported_;
    reported_ = 0;
    bad_order_.clear();
    if (found) {
      report(next, *found, outcome);
    }
    judge_properties(next, outcome);
    const bool bad = reported_ != 0;
    reported_ = before;
    const Run* shown = next.run;
    if (!bad_order_.empty() && !options_.folder.empty()) {
      Request again;
      again.model = options_.model;
      again.prefix = bad_order_;
      shown = &process_.run(again);
    }
    if (const std::string problem =
            traces_->write(next.graph, *shown, options_.model, bad, &process_,
                           [this](uint64_t pc) { return place(pc); });
        !problem.empty()) {
      note(problem);
    }
    result_.traces = traces_->written();
  }

  // A program that was ended may have violated a property before.
  void judge_properties(const NextRun& next, const std::string& outcome) {
    if (next.run->end == End::kStuck) {
      return;
    }
    for (const Found& found :
         violated_properties(next.graph, *next.run, options_.model,
                             {options_.serializability, options_.robustness})) {
      report(next, found, outcome);
    }
    if (options_.linearizability && next.run->end == End::kFinished) {
      judge_linearizability(next, outcome);
    }
  }

  void judge_linearizability(const NextRun& next, const std::string& outcome) {
    auto bad = linearizability_.judge(next.graph, options_.model, next.run->marks,
                                      [this](uint32_t number) { return process_.label(number); });
    if (!linearizability_.open().empty()) {
      note(linearizability_.open());
    }
    if (bad) {
      bad_order_ = bad->schedule;
      report(next,
             {"linearizability", fmt::format("the {} is not linearizable", bad->object), bad->text,
              bad->places, bad->history, bad->schedule},
             outcome);
    }
  }

  std::string place(uint64_t pc) { return pc == 0 ? std::string() : symbols_.text(pc); }

  static const std::vector<Choice>& steps_of(const NextRun& next, const Found& found) {
    return found.schedule.empty() ? next.schedule : found.schedule;
  }
  std::string schedule_of(const std::vector<Choice>& steps) const {
    return schedule_text({steps, process_.shared_words(), process_.origins()});
  }

  struct Key {
    std::string text;
    std::vector<std::string> locations;
  };
  Key key_of(const Found& found) {
    Key key;
    for (const uint64_t pc : found.places) {
      std::string text = place(pc);
      if (std::find(key.locations.begin(), key.locations.end(), text) == key.locations.end()) {
        key.locations.push_back(std::move(text));
      }
    }
    std::vector<std::string> sorted = key.locations;
    std::sort(sorted.begin(), sorted.end());
    key.text = fmt::format("{}\x1f{}\x1f{}", found.kind, found.message.empty() ? "" : found.message,
                           fmt::join(sorted, "\x1f"));
    return key;
  }

  void report(const NextRun& next, const Found& found, const std::string& outcome) {
    ++reported_;
    const Key key = key_of(found);
    const auto known = keys_.find(key.text);
    if (known == keys_.end()) {
      if (result_.findings.size() >= kMaxFindings) {
        ++more_;
        return;
      }
      keys_[key.text] = result_.findings.size();
      ExploreFinding finding;
      finding.kind = found.kind;
      finding.text = found.text + (found.message.empty() ? "" : ": " + found.message);
      finding.locations = key.locations;
      finding.fingerprint = hash_text(key.text);
      finding.outcome = outcome;
      finding.classes = 1;
      finding.history = found.history;
      if (found.kind == "serializability" || found.kind == "robustness") {
        finding.trace = trace_text(
            next.graph, *next.run, [this](uint32_t number) { return process_.label(number); },
            [this](uint64_t pc) { return place(pc); });
      }
      finding.schedule = schedule_of(steps_of(next, found));
      finding.steps = steps_of(next, found).size();
      result_.findings.push_back(std::move(finding));
      return;
    }
    ExploreFinding& finding = result_.findings[known->second];
    ++finding.classes;
    replace_longer(steps_of(next, found), &finding);
  }

  void replace_longer(const std::vector<Choice>& steps, ExploreFinding* finding) const {
    if (steps.size() > finding->steps) {
      return;
    }
    std::string schedule = schedule_of(steps);
    if (schedule.size() < finding->schedule.size()) {
      finding->schedule = std::move(schedule);
      finding->steps = steps.size();
    }
  }

  void shorten(const NextRun& next, const std::optional<Found>& found) {
    if (found) {
      if (const auto known = keys_.find(key_of(*found).text); known != keys_.end()) {
        replace_longer(steps_of(next, *found), &result_.findings[known->second]);
      }
    }
  }

  void finish() {
    if (!options_.replay.empty()) {
      note("one schedule was replayed");
    } else if (options_.strategy == Strategy::kRandom || options_.strategy == Strategy::kPct) {
      note(fmt::format("{} picks executions", strategy_text(options_.strategy)));
    }
    if (sequences_->bounded()) {
      note("other executions have more preemptions (--preemptions)");
    }
    if (options_.linearizability && !linearizability_.any()) {
      note("the program calls no operation of an object (tsomon_call): none was judged");
    }
    result_.applied = places_.applied();
    if (!places_.has_room()) {
      note("the repair has too many places");
    }
    result_.seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
    std::stable_sort(result_.findings.begin(), result_.findings.end(),
                     [](const auto& a, const auto& b) { return a.steps < b.steps; });
  }

  const ExploreOptions& options_;
  ProgramProcess& process_;
  Symboliser symbols_;
  const ProgramRepair no_repair_;
  RepairPlaces places_;
  LearningProgram program_;
  const Clock::time_point begun_;
  bool again_ = false;
  GraphBuilder builder_;
  std::unique_ptr<GraphSearch> graphs_;
  std::unique_ptr<NaiveSearch> sequences_;
  std::unique_ptr<StateSearch> states_;
  std::unique_ptr<ClassTraces> traces_;
  uint64_t random_runs_ = 0;
  uint32_t length_ = 16;
  std::unordered_set<uint64_t> classes_;
  std::map<std::string, size_t> keys_;
  ClassLinearizability linearizability_;
  std::vector<Choice> bad_order_;  // of the class: a schedule that is not linearizable
  size_t reported_ = 0;
  uint64_t more_ = 0;
  Exploration result_;
};

}  // namespace

const char* strategy_text(Strategy strategy) {
  switch (strategy) {
    case Strategy::kDpor:
      return "dpor";
    case Strategy::kNaive:
      return "naive";
    case Strategy::kRandom:
      return "random";
    case Strategy::kStates:
      return "states";
    case Strategy::kPct:
      break;
  }
  return "pct";
}

Result<Exploration> explore(const ExploreOptions& options) {
  std::optional<Schedule> schedule;
  if (!options.replay.empty()) {
    schedule = parse_schedule(options.replay);
    if (!schedule) {
      return tl::unexpected(
          Error{ErrorKind::kUsage, {}, {}, "--replay: this is no schedule of a finding"});
    }
  }
  if (!options.folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.folder, error);
    if (error) {
      return tl::unexpected(Error{ErrorKind::kUnreadable, options.folder, {}, error.message()});
    }
  }
  ProcessOptions process_options;
  process_options.max_steps = options.max_steps;
  process_options.show_output = !options.replay.empty();
  auto process = ProgramProcess::start(options.command, process_options);
  if (!process) {
    return tl::unexpected(process.error());
  }
  if (schedule) {
    for (const uint64_t word : schedule->words) {
      (*process)->share(word);
    }
    for (const ThreadOrigin& origin : schedule->origins) {
      (*process)->set_origin(origin);
    }
  }
  return Explorer(options, **process).explore();
}

}  // namespace tsomon::explore
