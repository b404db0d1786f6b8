#include "monitor/explore/explore.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>
#include <unordered_set>

#include <fmt/format.h>

#include "monitor/explore/class_linearizability.h"
#include "monitor/explore/class_trace.h"
#include "monitor/explore/explore_worker.h"
#include "monitor/explore/found.h"
#include "monitor/explore/program_process.h"
#include "monitor/explore/quiet_waits.h"
#include "monitor/explore/schedule.h"
#include "monitor/process/symbols.h"
#include "offline/explore/execution_graph.h"
#include "offline/explore/task_pool.h"
#include "tso/support/text_hash.h"
#include "tso/support/work.h"

namespace tsomon::explore {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMaxClasses = 1'000'000;
constexpr size_t kMaxFindings = 100;

class Explorer {
 public:
  Explorer(const ExploreOptions& options, std::vector<std::unique_ptr<ExploreWorker>> workers)
      : options_(options),
        workers_(std::move(workers)),
        at_(workers_.front().get()),
        symbols_(at_->process().modules()),
        places_(options.repair != nullptr ? *options.repair : no_repair_, at_->process(), symbols_),
        begun_(Clock::now()),
        linearizability_(options.object, options.specification.get()) {
    if (options.repair != nullptr) {
      at_->set_repair(&places_);
    }
  }

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
    classes_.clear();
    keys_.clear();
    runs_ = 0;
    picked_.begun = 0;
    picked_.length = 0;
    quiet_waits_.forget();
    traces_ = std::make_unique<ClassTraces>(options_.folder);
    std::vector<uint64_t> words;
    for (const auto& worker : workers_) {
      worker->forget(ranges_);
      const std::vector<uint64_t> known = worker->process().shared_words();
      words.insert(words.end(), known.begin(), known.end());
    }
    for (const auto& worker : workers_) {
      for (const auto& [word, starts] : parts_) {
        worker->process().split(word, starts);
      }
      for (const uint64_t word : words) {
        worker->process().share(word);
      }
      if (workers_.size() > 1) {
        worker->process().forget_threads();
      }
    }
  }

  void note(const std::string& why) {
    if (std::find(result_.notes.begin(), result_.notes.end(), why) == result_.notes.end()) {
      result_.notes.push_back(why);
    }
  }

  void search() {
    TaskPool<ExplorePart> pool(static_cast<uint32_t>(workers_.size()));
    for (size_t part = 0; part < (picks() ? workers_.size() : 1); ++part) {
      pool.give({});
    }
    WorkMeter* const meter = current_meter();
    std::vector<std::thread> threads;
    for (size_t w = 1; w < workers_.size(); ++w) {
      threads.emplace_back([this, w, meter, &pool] {
        const WorkScope scope(meter);
        work(workers_[w].get(), &pool);
      });
    }
    work(workers_.front().get(), &pool);
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

  void work(ExploreWorker* worker, TaskPool<ExplorePart>* pool) {
    const NearProcess near(worker->process());
    try {
      while (const auto part = pool->take()) {
        worker->begin(*part, &picked_);
        while (!worker->done() && !pool->ended()) {
          if (!step(worker)) {
            return pool->end();
          }
          for (ExplorePart given; pool->wants_more() && worker->give(&given); given = {}) {
            pool->give(std::move(given));
          }
        }
      }
    } catch (const WorkEnded& ended) {
      const std::lock_guard lock(mutex_);
      note(ended.what());
      pool->end();
    }
  }

  bool picks() const {
    return !options_.replay.empty() || options_.strategy == Strategy::kRandom ||
           options_.strategy == Strategy::kPct;
  }

  // False: nobody goes on.
  bool step(ExploreWorker* worker) {
    {
      const std::lock_guard lock(mutex_);
      if (is_over()) {
        return false;
      }
      ++runs_;
      for (const ThreadOrigin& origin : named_threads_) {
        worker->process().set_origin(origin);
      }
    }
    const NextRun run = worker->next();
    const std::lock_guard lock(mutex_);
    at_ = worker;
    const bool agreed = agree_on_threads(worker->process());
    const bool learnt = worker->program().take_learnt();
    if (learn_parts(worker) || learn_ranges(worker) || learnt || !agreed) {
      again_ = true;
      ++result_.restarts;
    }
    if (again_) {
      return false;
    }
    if (run.run == nullptr) {
      if (options_.strategy == Strategy::kStates) {
        return false;  // nothing is left
      }
      note("the program is not deterministic: under the same schedule it did not do the same");
      return false;
    }
    return judge(run);
  }

  // True: copies go through some words in parts from now on.
  bool learn_parts(ExploreWorker* worker) {
    const auto parts = worker->builder().take_parts();
    bool learnt = false;
    for (const auto& [word, starts] : parts) {
      parts_[word] |= starts;
      learnt = worker->process().split(word, parts_[word]) || learnt;
    }
    if (!parts.empty() && !learnt) {
      note("copies of several shared parts of words were taken for one step");
    }
    return learnt;
  }

  // True: accesses of different sizes have a cell in common from now on.
  bool learn_ranges(const ExploreWorker* worker) {
    const bool learnt = worker->builder().ranges() != ranges_;
    ranges_ = worker->builder().ranges();
    return learnt;
  }

  bool is_over() {
    if (stop_asked()) {
      note("interrupted");
      return true;
    }
    if (options_.seconds > 0 &&
        std::chrono::duration<double>(Clock::now() - begun_).count() > options_.seconds) {
      note("the time is over (--time)");
      return true;
    }
    const uint64_t most = picks() && options_.executions == 0 ? kSampled : options_.executions;
    if (most == 0 || runs_ < most) {
      return false;
    }
    if (!picks()) {
      note("so many executions were asked for (--executions)");
    }
    return true;
  }

  // All workers number threads alike. False: this one has run with other numbers.
  bool agree_on_threads(const ProgramProcess& process) {
    bool agreed = true;
    for (const ThreadOrigin& origin : process.named_threads()) {
      bool known = false;
      uint32_t free = 1;
      bool taken = false;
      for (const ThreadOrigin& named : named_threads_) {
        if (named.parent == origin.parent && named.child == origin.child) {
          known = true;
          agreed = agreed && named.number == origin.number;
        }
        taken = taken || named.number == origin.number;
        free = std::max(free, named.number + 1);
      }
      if (!known) {
        agreed = agreed && !taken;
        named_threads_.push_back({taken ? free : origin.number, origin.parent, origin.child});
      }
    }
    return agreed;
  }

  // False: nothing more can be explored.
  bool judge(const NextRun& next) {
    const Run& run = *next.run;
    if (run.unsaid != 0) {
      note("copies of several shared words at once were taken for one step");
    }
    if (run.cut_waits != 0) {
      note("waits with a time limit that changes were repeated only four times");
    }
    if (run.freed_compared != 0 && !options_.reuse) {
      note(
          "a compare-exchange expects the address of memory that was freed: --reuse explores what "
          "happens if it was given out again");
    }
    note_mixed();
    if (is_refused()) {
      result_.refused = true;
      return false;
    }
    if (!run.not_understood.empty()) {
      ++result_.blocked;
      note(not_understood_text(run));
      return true;
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
        count(next, found_crash(run, at_->process().error_output()));
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

  bool is_mixed() const { return at_->builder().mixed().address != 0; }
  bool is_refused() const {
    return is_mixed() && options_.strategy == Strategy::kDpor && options_.replay.empty();
  }
  void note_mixed() {
    if (const GraphBuilder::Mixed& mixed = at_->builder().mixed(); mixed.address != 0) {
      note(mixed_text(mixed, is_refused(), symbols_.variable(mixed.address),
                      [this](uint64_t pc) { return place(pc); }));
    }
  }

  // Threads wait: for ever, or only for what this run did not let them have.
  void judge_stuck(const NextRun& next) {
    if (waits_for_scheduler(*next.run)) {
      ++result_.blocked;
    } else {
      count(next, found_stuck(*next.run));
    }
  }

  void count(const NextRun& next, std::optional<Found> found) {
    ++result_.executions;
    bool is_new = true;
    if (classes_.size() < kMaxClasses) {
      is_new =
          classes_.insert(class_hash(*next.graph) ^ (is_mixed() ? values_hash(*next.graph) : 0))
              .second;
    }
    if (!is_new) {
      ++result_.redundant;
      shorten(next, found);
      return;
    }
    ++result_.classes;
    if (!options_.spurious) {
      quiet_waits_.note(*next.run);
    }
    if (!found && !options_.reuse) {
      found = found_early_free(*next.graph, *next.run, options_.model);
    }
    const std::string outcome = outcome_text(*next.run);
    if (!found && !next.run->outcomes.empty()) {
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
      shown = &at_->process().run(again);
    }
    if (const std::string problem =
            traces_->write(*next.graph, *shown, options_.model, bad, &at_->process(),
                           [this](uint64_t pc) { return place(pc); });
        !problem.empty()) {
      note(problem);
      result_.not_saved = true;
    }
    result_.traces = traces_->written();
  }

  // A program that was ended may have violated a property before.
  void judge_properties(const NextRun& next, const std::string& outcome) {
    if (next.run->end == End::kStuck) {
      return;
    }
    for (const Found& found :
         violated_properties(*next.graph, *next.run, options_.model,
                             {options_.serializability, options_.robustness},
                             [this](uint64_t pc) { return exact_place(pc); })) {
      report(next, found, outcome);
    }
    if (options_.linearizability && next.run->end == End::kFinished) {
      judge_linearizability(next, outcome);
    }
  }

  void judge_linearizability(const NextRun& next, const std::string& outcome) {
    auto bad =
        linearizability_.judge(*next.graph, options_.model, next.run->marks,
                               [this](uint32_t number) { return at_->process().label(number); });
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
  // Which of the places of its line, too.
  std::string exact_place(uint64_t pc) {
    return pc == 0 ? std::string() : symbols_.place(pc).exact();
  }

  static const std::vector<Choice>& steps_of(const NextRun& next, const Found& found) {
    return found.schedule.empty() ? next.schedule : found.schedule;
  }
  std::string schedule_of(const std::vector<Choice>& steps) const {
    return schedule_text({steps, at_->process().shared_words(), at_->process().origins(),
                          at_->process().split_words()});
  }

  FoundKey key_of(const Found& found) {
    return explore::key_of(found, [this](uint64_t pc) { return place(pc); });
  }

  void report(const NextRun& next, const Found& found, const std::string& outcome) {
    ++reported_;
    const FoundKey key = key_of(found);
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
      finding.fingerprint = fingerprint(key);
      finding.places = places_of(found, key, symbols_,
                                 [this](uint32_t number) { return at_->process().label(number); });
      finding.outcome = outcome;
      finding.classes = 1;
      finding.history = found.history;
      if (found.kind == "serializability" || found.kind == "robustness") {
        finding.trace = trace_text(
            *next.graph, *next.run,
            [this](uint32_t number) { return at_->process().label(number); },
            [this](uint64_t pc) { return place(pc); });
      }
      finding.schedule = schedule_of(steps_of(next, found));
      finding.steps = steps_of(next, found).size();
      result_.findings.push_back(std::move(finding));
      return;
    }
    ExploreFinding& finding = result_.findings[known->second];
    ++finding.classes;
    replace_longer(steps_of(next, found), outcome, &finding);
  }

  // `outcome`: of the execution.
  void replace_longer(const std::vector<Choice>& steps, const std::string& outcome,
                      ExploreFinding* finding) const {
    if (steps.size() > finding->steps) {
      return;
    }
    std::string schedule = schedule_of(steps);
    const auto place = [](size_t length, const std::string& text) {
      return std::tuple(length, text.size(), std::string_view(text));
    };
    if (place(steps.size(), schedule) < place(finding->steps, finding->schedule)) {
      finding->schedule = std::move(schedule);
      finding->outcome = outcome;
      finding->steps = steps.size();
    }
  }

  void shorten(const NextRun& next, const std::optional<Found>& found) {
    if (found) {
      if (const auto known = keys_.find(key_of(*found).text); known != keys_.end()) {
        replace_longer(steps_of(next, *found), outcome_text(*next.run),
                       &result_.findings[known->second]);
      }
    }
  }

  void finish() {
    if (!options_.replay.empty()) {
      note("one schedule was replayed");
    } else if (options_.strategy == Strategy::kRandom || options_.strategy == Strategy::kPct) {
      note(fmt::format("{} picks executions", strategy_text(options_.strategy)));
    }
    for (const auto& worker : workers_) {
      // What different workers saw of different sizes.
      workers_.front()->builder().add_cells(worker->builder());
    }
    at_ = workers_.front().get();
    count_processes();
    note_mixed();
    if (std::any_of(workers_.begin(), workers_.end(),
                    [](const auto& worker) { return worker->bounded(); })) {
      note("other executions have more preemptions (--preemptions)");
    }
    if (options_.linearizability && !linearizability_.any()) {
      note("the program calls no operation of an object (tsomon_call): none was judged");
    }
    if (const auto place = quiet_waits_.outside_loops(at_->process(), options_.model)) {
      note("a wait without a loop was never woken by itself (--no-spurious)" +
           (*place == 0 ? std::string() : ", at " + this->place(*place)));
    }
    result_.applied = places_.applied();
    if (!places_.has_room()) {
      note("the repair has too many places");
    }
    result_.seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
    std::stable_sort(result_.findings.begin(), result_.findings.end(),
                     [](const auto& a, const auto& b) {
                       return std::tie(a.steps, a.fingerprint) < std::tie(b.steps, b.fingerprint);
                     });
  }

  void count_processes() {
    for (const auto& worker : workers_) {
      const ProgramProcess& process = worker->process();
      result_.in_place += process.in_place();
      result_.forked += process.runs() - std::min(process.runs(), process.in_place());
      if (result_.forked_because.empty()) {
        result_.forked_because = process.forked_because();
      }
    }
  }

  const ExploreOptions& options_;
  std::vector<std::unique_ptr<ExploreWorker>> workers_;
  std::mutex mutex_;   // all that follows
  ExploreWorker* at_;  // whose run is judged
  Symboliser symbols_;
  const ProgramRepair no_repair_;
  RepairPlaces places_;
  const Clock::time_point begun_;
  bool again_ = false;
  PickedRuns picked_;
  uint64_t runs_ = 0;
  std::vector<ThreadOrigin> named_threads_;
  std::map<uint64_t, uint8_t> parts_;  // of words that copies go through in parts
  GraphBuilder::Ranges ranges_;        // that accesses of different sizes share
  std::unique_ptr<ClassTraces> traces_;
  std::unordered_set<uint64_t> classes_;
  std::map<std::string, size_t> keys_;
  ClassLinearizability linearizability_;
  QuietWaits quiet_waits_;
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
  process_options.fork = options.fork;
  process_options.spurious = options.spurious;
  process_options.reuse = options.reuse;
  std::vector<std::unique_ptr<ExploreWorker>> workers;
  // What a repair changes it learns from the runs of one process; so does a search of states.
  const bool alone = schedule || options.repair != nullptr || options.strategy == Strategy::kStates;
  const uint32_t jobs = alone ? 1 : std::max(options.jobs, 1U);
  for (uint32_t w = 0; w < jobs; ++w) {
    process_options.processor = jobs == 1 ? 0 : w + 1;
    auto process = ProgramProcess::start(options.command, process_options);
    if (!process) {
      return tl::unexpected(process.error());
    }
    workers.push_back(std::make_unique<ExploreWorker>(options, std::move(*process)));
  }
  if (schedule) {
    for (const uint64_t word : schedule->words) {
      workers.front()->process().share(word);
    }
    for (const auto& [word, starts] : schedule->parts) {
      workers.front()->process().split(word, starts);
    }
    for (const ThreadOrigin& origin : schedule->origins) {
      workers.front()->process().set_origin(origin);
    }
  }
  return Explorer(options, std::move(workers)).explore();
}

}  // namespace tsomon::explore
