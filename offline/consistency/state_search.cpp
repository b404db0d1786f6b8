#include "offline/consistency/state_search.h"

#include <string_view>
#include <unordered_set>
#include <utility>

#include "offline/consistency/schedule.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

using State = std::vector<uint32_t>;

struct StateHash {
  size_t operator()(const State& state) const {
    return std::hash<std::string_view>()(std::string_view(
        reinterpret_cast<const char*>(state.data()), state.size() * sizeof(uint32_t)));
  }
};

struct Level {
  size_t steps;  // before the choice
  std::vector<uint32_t> choices;
  size_t next = 0;
};

bool all_values_known(const ValueProblem& problem) {
  for (uint32_t location = 0; location < problem.locations.size(); ++location) {
    if (!problem.value_of(problem.initial_store(location))) {
      return false;
    }
  }
  for (uint32_t i = 0; i < problem.operations.size(); ++i) {
    const Operation& operation = problem.operations[i];
    if (operation.location != Operation::kNone && operation.is_write() && !operation.written) {
      return false;
    }
  }
  return true;
}

}  // namespace

StateSearchResult search_states(const ValueProblem& problem, const MemoryOrder& order,
                                uint64_t max_states, uint64_t max_bytes) {
  StateSearchResult result;
  if (!all_values_known(problem)) {
    return result;
  }
  Schedule schedule(problem, order);
  std::unordered_set<State, StateHash> seen;  // on the way, or failed
  std::vector<Level> levels;
  uint64_t bytes = 0;
  State state;
  while (true) {
    schedule.run_loads();
    if (schedule.steps().size() == problem.operations.size()) {
      result.answer = Answer::kYes;
      result.execution = schedule.steps();
      return result;
    }
    state.clear();
    schedule.append_state(&state);
    spend(state.size());
    std::vector<uint32_t> choices;
    if (seen.insert(state).second) {
      choices = schedule.choices();
      bytes += state.size() * sizeof(uint32_t) + choices.size() * sizeof(uint32_t) + 64;
      if (++result.states > max_states || bytes > max_bytes) {
        return result;
      }
    }
    levels.push_back({schedule.steps().size(), std::move(choices), 0});
    while (!levels.empty() && levels.back().next == levels.back().choices.size()) {
      levels.pop_back();
    }
    if (levels.empty()) {
      result.answer = Answer::kNo;
      return result;
    }
    Level& level = levels.back();
    schedule.take_back(level.steps);
    schedule.perform(level.choices[level.next++]);
  }
}

}  // namespace tsomon
