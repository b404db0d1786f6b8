#include "offline/consistency/consistency.h"

#include <algorithm>

#include <fmt/format.h>

#include "offline/consistency/memory_order.h"
#include "offline/consistency/schedule.h"
#include "offline/consistency/state_search.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr uint64_t kStatesADecision = 10;  // about what a decision costs
// Of everything together.
constexpr WorkBudget kBudget = {.work_at_first = 10'000'000'000,
                                .work_per_event = 200'000,
                                .bytes_at_first = uint64_t{1} << 29,
                                .bytes_per_event = 32 << 10};

// The question for one model.
class Search {
 public:
  Search(const ValueProblem& problem, MemoryModel model, const ConsistencyOptions& options)
      : problem_(problem), model_(model), options_(options), order_(problem, model) {}

  Answer run() {
    if (!order_.settle()) {
      contradiction_ = order_.contradiction();
      return Answer::kNo;
    }
    // What is undecided at half of the bound is rather one of those that need another way.
    const MemoryOrder::Mark settled = order_.mark();
    const uint64_t half = (options_.max_decisions + 1) / 2;
    const Answer answer = decide(half);
    if (answer != Answer::kUnknown || half == options_.max_decisions) {
      return answer;
    }
    order_.undo(settled);
    StateSearchResult tried = search_states(
        problem_, order_, (options_.max_decisions - half) * kStatesADecision, options_.max_bytes);
    if (tried.answer == Answer::kYes) {
      accept(std::move(tried.execution));
    }
    return tried.answer;
  }

  uint64_t decisions() const { return decisions_; }
  const std::vector<uint32_t>& execution() const { return execution_; }
  const std::vector<uint32_t>& contradiction() const { return contradiction_; }

 private:
  // One way to go on: a load reads a store, or the first of two stores comes before the second.
  struct Alternative {
    bool reads = false;
    uint32_t first = 0;
    uint32_t second = 0;
  };
  struct Decision {
    MemoryOrder::Mark mark;
    std::vector<Alternative> alternatives;
    size_t next = 0;
  };

  void accept(std::vector<uint32_t> execution) {
    execution_ = std::move(execution);
    TSOMON_CHECK(is_execution(problem_, model_, execution_), "a schedule is no execution");
  }

  // Depth first, without recursion: a long trace may need many decisions.
  Answer decide(uint64_t max_decisions) {
    std::vector<Decision> taken;
    Schedule schedule(problem_, order_);
    while (true) {
      if (schedule.run()) {
        accept(schedule.steps());
        return Answer::kYes;
      }
      taken.push_back({order_.mark(), alternatives(schedule.stuck()), 0});
      while (true) {
        if (taken.empty()) {
          return Answer::kNo;
        }
        Decision& decision = taken.back();
        if (decision.next == decision.alternatives.size()) {
          taken.pop_back();
          if (!taken.empty()) {
            order_.undo(taken.back().mark);
          }
          continue;
        }
        if (++decisions_ > max_decisions) {
          return Answer::kUnknown;
        }
        const Alternative& alternative = decision.alternatives[decision.next++];
        if (apply(alternative)) {
          schedule.follow(decision.mark);
          break;
        }
        order_.undo(decision.mark);
      }
    }
  }

  std::vector<Alternative> alternatives(const Schedule::Stuck& stuck) const {
    std::vector<Alternative> result;
    if (stuck.load != Operation::kNone) {
      for (const uint32_t store : order_.candidates(stuck.load, SIZE_MAX)) {
        result.push_back({true, stuck.load, store});
      }
      return result;
    }
    TSOMON_CHECK(stuck.first != Operation::kNone && !problem_.is_initial(stuck.first),
                 "a stuck schedule has nothing to decide");
    // The order that was tried has got stuck: the other one first.
    result.push_back({false, stuck.second, stuck.first});
    result.push_back({false, stuck.first, stuck.second});
    return result;
  }

  bool apply(const Alternative& alternative) {
    const bool fits = alternative.reads ? order_.set_source(alternative.first, alternative.second)
                                        : order_.insert(alternative.first, alternative.second);
    return fits && order_.determine();
  }

  const ValueProblem& problem_;
  MemoryModel model_;
  const ConsistencyOptions& options_;
  uint64_t decisions_ = 0;
  MemoryOrder order_;
  std::vector<uint32_t> execution_;
  std::vector<uint32_t> contradiction_;
};

// Stores are issued right before the next operation of their thread needs it, and commit in their
// place of the order.
std::vector<Step> steps_of(const ValueProblem& problem, const std::vector<uint32_t>& order) {
  std::vector<Step> steps;
  std::vector<size_t> issued(problem.threads.size(), 0);
  for (const uint32_t i : order) {
    const Operation& operation = problem.operations[i];
    if (operation.event == Operation::kNone) {
      continue;
    }
    const auto& members = problem.threads[operation.thread];
    for (size_t& next = issued[operation.thread]; next <= operation.position; ++next) {
      steps.push_back({false, problem.operations[members[next]].event});
    }
    if (operation.kind == Operation::Kind::kStore) {
      steps.push_back({true, operation.event});
    }
  }
  return steps;
}

class Checker {
 public:
  Checker(const Trace& trace, const ConsistencyOptions& options)
      : trace_(trace),
        options_(options),
        problem_(make_value_problem(trace, options.fenced_release, options.final_values)) {}

  Result<ConsistencyReport> run() {
    report_.operations = problem_.operations.size();
    if (MemoryOrder::bytes(problem_) > options_.max_bytes) {
      incomplete(fmt::format("{} operations of {} threads exceed the memory bound",
                             problem_.operations.size(), problem_.threads.size()));
      return std::move(report_);
    }
    if (!problem_.order.empty() && !threads_agree()) {
      return fail(ErrorKind::kMalformed, "the thread events contradict each other");
    }
    judge();
    if (!trace_.complete) {
      report_.verdict = ConsistencyVerdict::kInconclusive;
      incomplete("events were lost: their stores may be what was read");
    }
    if (problem_.weakened && report_.verdict != ConsistencyVerdict::kInconsistent) {
      report_.verdict = ConsistencyVerdict::kInconclusive;
      for (const std::string& note : problem_.notes) {
        incomplete(note);
      }
    }
    if (report_.verdict == ConsistencyVerdict::kInconclusive) {
      report_.witness.clear();
    }
    return std::move(report_);
  }

 private:
  // Without any values some execution must be left.
  bool threads_agree() const {
    ValueProblem bare = problem_;
    for (Operation& operation : bare.operations) {
      operation.read.reset();
    }
    return MemoryOrder(bare, MemoryModel::kTso).settle();
  }

  void incomplete(std::string why) {
    report_.complete = false;
    report_.notes.push_back(std::move(why));
  }

  Answer ask(MemoryModel model) {
    Search search(problem_, model, options_);
    const Answer answer = search.run();
    report_.decisions += search.decisions();
    if (answer == Answer::kYes) {
      report_.witness = steps_of(problem_, search.execution());
    } else if (answer == Answer::kNo && report_.contradiction.empty()) {
      explain(search.contradiction());
    } else if (answer == Answer::kUnknown) {
      incomplete(
          fmt::format("whether {} execution has these values was not decided within {} "
                      "decisions",
                      model == MemoryModel::kSc ? "an SC" : "a TSO", options_.max_decisions));
    }
    return answer;
  }

  // A single operation that is left beside final values would look like one that cannot be.
  void explain(const std::vector<uint32_t>& operations) {
    for (const uint32_t i : operations) {
      if (problem_.operations[i].event != Operation::kNone) {
        report_.contradiction.push_back(problem_.operations[i].event);
      }
    }
    if (report_.contradiction.size() == 1 && operations.size() > 1) {
      report_.contradiction.clear();
    }
  }

  void judge() {
    Answer sc = Answer::kNo;
    if (options_.model != ConsistencyModel::kTso) {
      sc = ask(MemoryModel::kSc);
      if (sc == Answer::kYes) {
        report_.verdict = ConsistencyVerdict::kSc;
        return;
      }
    }
    Answer tso = sc;
    if (options_.model != ConsistencyModel::kSc) {
      tso = ask(MemoryModel::kTso);
    }
    if (tso == Answer::kNo) {
      report_.verdict = ConsistencyVerdict::kInconsistent;  // and no SC execution either
      report_.complete = true;
      report_.notes.clear();
    } else if (tso == Answer::kYes && sc == Answer::kNo) {
      report_.verdict = ConsistencyVerdict::kTso;
    }
  }

  const Trace& trace_;
  const ConsistencyOptions& options_;
  ValueProblem problem_;
  ConsistencyReport report_;
};

}  // namespace

Result<ConsistencyReport> check_consistency(const Trace& trace, const ConsistencyOptions& options) {
  Result<ConsistencyReport> report;
  const auto limit = within(kBudget.of(trace.events.size()), [&] {
    const Result<ConsistencyReport> own = Checker(trace, options).run();
    const WorkPause outside;
    report = Result<ConsistencyReport>(own);  // outside of the heap that ends
  });
  if (limit) {
    report = ConsistencyReport();
    report->complete = false;
    report->notes.emplace_back(limit_text(*limit));
  }
  return report;
}

}  // namespace tsomon
