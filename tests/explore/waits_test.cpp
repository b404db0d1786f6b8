// Waits, signals, time limits and answers: programs that are lists of operations on objects.
#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "offline/explore/execution_graph.h"
#include "offline/explore/graph_search.h"
#include "offline/explore/naive_search.h"
#include "tests/rounds.h"

namespace {

using namespace tsomon;
using namespace tsomon::explore;

struct Line {
  Op op = Op::kFence;
  uint64_t object = 0;
  Value a = 0;
  uint32_t skips = 0;  // so many lines: of an answer, if it is not 0; of a fence
};
using Lines = std::vector<Line>;

// Threads that are there from the start. SC: nothing waits in a buffer.
class LinesProgram : public Program {
 public:
  explicit LinesProgram(std::vector<Lines> threads) : threads_(std::move(threads)) {}

  const Run& run(const Request& request) override {
    run_ = {};
    objects_.clear();
    next_.assign(threads_.size(), 0);
    waits_.assign(threads_.size(), false);
    for (;;) {
      uint64_t enabled = enabled_threads();
      Choice choice;
      if (run_.steps.size() < request.prefix.size()) {
        choice = request.prefix[run_.steps.size()];
        if ((enabled >> choice.thread & 1) == 0) {
          run_.end = End::kDiverged;
          return run_;
        }
      } else {
        if (request.waiting_is_final) {
          note_waiting(request, enabled);
          for (size_t t = 0; t < waits_.size(); ++t) {
            enabled &= waits_[t] ? ~(uint64_t{1} << t) : ~uint64_t{0};
          }
        }
        if (enabled == 0) {
          run_.end = is_over() ? End::kFinished : End::kStuck;
          return run_;
        }
        choice.thread = static_cast<uint16_t>(__builtin_ctzll(enabled));
      }
      execute(choice, enabled);
    }
  }

 private:
  const Line* line(size_t t) const {
    return next_[t] < threads_[t].size() ? &threads_[t][next_[t]] : nullptr;
  }
  bool is_over() const {
    for (size_t t = 0; t < threads_.size(); ++t) {
      if (line(t) != nullptr) {
        return false;
      }
    }
    return true;
  }
  Effect effect(size_t t) {
    const Line& at = *line(t);
    return apply(at.op, objects_[at.object], at.a, 0, 16, static_cast<uint32_t>(t));
  }
  bool is_free(size_t t) {
    return line(t) != nullptr && (!is_locked(line(t)->op) || effect(t).enabled);
  }
  uint64_t enabled_threads() {
    uint64_t enabled = 0;
    for (size_t t = 0; t < threads_.size(); ++t) {
      enabled |= is_free(t) ? uint64_t{1} << t : 0;
    }
    return enabled;
  }
  Step step_of(size_t t, uint64_t enabled) {
    const Line& at = *line(t);
    Step step;
    step.choice.thread = static_cast<uint16_t>(t);
    step.op = at.op;
    step.size = 16;
    step.address = 0x1000 + 64 * at.object;
    step.a = at.a;
    step.enabled = enabled;
    if (has_cell(at.op)) {
      step.read = step.written = objects_[at.object];
    }
    return step;
  }
  void note_waiting(const Request& request, uint64_t enabled) {
    for (size_t t = 0; t < threads_.size(); ++t) {
      if (line(t) == nullptr || waits_[t]) {
        continue;
      }
      if ((request.waiting >> t & 1) != 0) {
        waits_[t] = true;
        continue;
      }
      if (is_free(t)) {
        return;
      }
      waits_[t] = true;
      run_.steps.push_back(step_of(t, enabled));
      run_.steps.back().waits = true;
    }
  }
  void execute(Choice choice, uint64_t enabled) {
    const size_t t = choice.thread;
    const Line& at = *line(t);
    Step step = step_of(t, enabled);
    step.choice.answer = choice.answer;
    bool skips = at.op == Op::kFence;
    if (at.op == Op::kAnswer) {
      step.b = step.read = step.written = choice.answer;
      skips = choice.answer != 0;
    } else if (is_locked(at.op)) {
      const Effect done = effect(t);
      step.written = done.value;
      objects_[at.object] = done.value;
    }
    next_[t] += 1 + (skips ? at.skips : 0);
    run_.steps.push_back(step);
  }

  std::vector<Lines> threads_;
  std::map<uint64_t, Value> objects_;
  std::vector<size_t> next_;
  std::vector<bool> waits_;
  Run run_;
};

struct Seen {
  std::set<std::string> finished;
  std::set<std::string> stuck;
  size_t twice = 0;
  bool diverged = false;
};

// Waiting threads' last reads are no part of it.
std::string name_of(GraphBuilder& builder, Run run) {
  std::erase_if(run.steps, [](const Step& step) { return step.waits; });
  return class_name(builder.of_run(run, Model::kSc, false));
}

Seen by_graphs(const std::vector<Lines>& threads) {
  LinesProgram program(threads);
  GraphBuilder builder;
  GraphSearch search(program, builder, Model::kSc);
  Seen seen;
  while (!search.done()) {
    const GraphSearch::Result result = search.next();
    if (result.run == nullptr || result.run->end == End::kDiverged) {
      seen.diverged = true;
      return seen;
    }
    if (result.run->end == End::kFinished) {
      seen.twice += seen.finished.insert(class_name(*result.graph)).second ? 0 : 1;
    } else if (!result.stale) {
      seen.stuck.insert(name_of(builder, *result.run));
    }
  }
  return seen;
}

// Nothing: there are too many.
std::optional<Seen> by_sequences(const std::vector<Lines>& threads) {
  constexpr int kMost = 4000;
  LinesProgram program(threads);
  GraphBuilder builder;
  NaiveSearch search(program, Model::kSc);
  Seen seen;
  for (int runs = 0; !search.done(); ++runs) {
    if (runs == kMost) {
      return std::nullopt;
    }
    const Run& run = search.next();
    seen.diverged = seen.diverged || run.end == End::kDiverged;
    (run.end == End::kFinished ? seen.finished : seen.stuck).insert(name_of(builder, run));
  }
  return seen;
}

Lines random_lines(std::mt19937_64& random, uint32_t kinds) {
  const auto below = [&](uint64_t bound) { return random() % bound; };
  Lines lines;
  const uint64_t condition = 1;
  for (uint64_t left = 1 + below(2); left > 0; --left) {
    const uint64_t lock = 2 + below(2);
    switch (below(kinds)) {
      case 0:
        lines.push_back({Op::kConditionSignal, condition, 0, 0});
        break;
      case 1:
        lines.push_back({Op::kConditionBroadcast, condition, 0, 0});
        break;
      case 2:
      case 3:  // a wait that may wake by itself
        lines.push_back({Op::kConditionEnter, condition, 0, 0});
        lines.push_back({Op::kAnswer, condition, 1 | 1U << (1 + below(2)), 2});
        lines.push_back({Op::kConditionLeave, condition, 0, 0});
        lines.push_back({Op::kFence, 0, 0, 1});
        lines.push_back({Op::kConditionAbandon, condition, 0, 0});
        break;
      case 4:
        lines.push_back({Op::kConditionEnter, condition, 0, 0});
        lines.push_back({Op::kConditionLeave, condition, 0, 0});
        break;
      case 5:
        lines.push_back({Op::kLock, lock, 0, 0});
        lines.push_back({Op::kUnlock, lock, 0, 0});
        break;
      default:  // a lock with a time limit
        lines.push_back({Op::kAnswer, lock, 1 | 1U << kTimeOver, 3});
        lines.push_back({Op::kLock, lock, 0, 0});
        lines.push_back({Op::kUnlock, lock, 0, 0});
        lines.push_back({Op::kFence, 0, 0, 1});
        lines.push_back({Op::kTimedOut, lock, static_cast<uint8_t>(Op::kLock), 0});
        break;
    }
  }
  return lines;
}

}  // namespace

TEST_CASE("Condition variables: any waiter takes a signal, no other comes to have it") {
  const auto after = [](Value value, Op op, uint32_t thread) {
    const Effect effect = apply(op, value, 0, 0, 16, thread);
    REQUIRE(effect.enabled);
    return effect.value;
  };
  const auto waits = [](Value value, uint32_t thread) {
    return !apply(Op::kConditionLeave, value, 0, 0, 16, thread).enabled;
  };
  Value value = after(after(0, Op::kConditionEnter, 1), Op::kConditionEnter, 2);
  CHECK(waits(value, 1));
  value = after(value, Op::kConditionSignal, 0);
  CHECK_FALSE(waits(value, 1));
  CHECK_FALSE(waits(value, 2));
  const Value late = after(value, Op::kConditionEnter, 3);
  CHECK(waits(late, 3));
  CHECK(waits(after(late, Op::kConditionLeave, 2), 1));
  // The first gives up: the signal is the second one's; then nobody's.
  const Value left = after(late, Op::kConditionAbandon, 1);
  CHECK_FALSE(waits(left, 2));
  CHECK(after(left, Op::kConditionAbandon, 2) == Value{4});
  // A second signal for two waiters, a third for nobody.
  const Value both = after(late, Op::kConditionSignal, 0);
  CHECK(after(after(both, Op::kConditionSignal, 0), Op::kConditionSignal, 0) ==
        after(both, Op::kConditionBroadcast, 0));
  CHECK(after(0, Op::kConditionSignal, 0) == 0);
  // All of eight waiters and eight signals find room, the ninth waiter waits to enter.
  Value full = 0;
  for (uint32_t thread = 0; thread < kMaxWaiters; ++thread) {
    full = after(full, Op::kConditionEnter, thread);
  }
  CHECK_FALSE(apply(Op::kConditionEnter, full, 0, 0, 16, 60).enabled);
  full = after(full, Op::kConditionBroadcast, 61);
  for (uint32_t thread = kMaxWaiters; thread-- > 0;) {
    full = after(full, Op::kConditionLeave, thread);
  }
  CHECK(full == 0);
}

TEST_CASE("Waits: classes of executions are those of all sequences, each once") {
  std::mt19937_64 random(31);
  const int programs = rounds(300, 6000);
  int stuck = 0;
  for (int i = 0; i < programs;) {
    CAPTURE(i);
    std::vector<Lines> threads;
    for (uint64_t t = 2 + random() % 2; t > 0; --t) {
      threads.push_back(random_lines(random, 7));
    }
    const auto all = by_sequences(threads);
    if (!all) {
      continue;
    }
    ++i;
    const Seen graphs = by_graphs(threads);
    REQUIRE_FALSE(graphs.diverged);
    REQUIRE_FALSE(all->diverged);
    REQUIRE(graphs.twice == 0);
    REQUIRE(graphs.finished == all->finished);
    REQUIRE(graphs.stuck == all->stuck);
    stuck += all->stuck.empty() ? 0 : 1;
  }
  CHECK(stuck > programs / 20);
  CHECK(stuck < programs);
}
