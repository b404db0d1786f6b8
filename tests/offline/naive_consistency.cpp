#include "tests/offline/naive_consistency.h"

#include <map>
#include <set>
#include <vector>

namespace tsomon::testing {
namespace {

struct State {
  std::vector<uint32_t> issued;     // by thread: events
  std::vector<uint32_t> committed;  // by thread: events before this one have left the buffer
  std::map<uint64_t, uint64_t> memory;

  bool operator<(const State& other) const {
    return std::tie(issued, committed, memory) <
           std::tie(other.issued, other.committed, other.memory);
  }
};

class Enumeration {
 public:
  Enumeration(const Trace& trace, MemoryModel model) : trace_(trace), model_(model) {
    for (const Event& event : trace.events) {
      if (event.thread >= threads_.size()) {
        threads_.resize(event.thread + 1);
      }
      threads_[event.thread].push_back(&event);
    }
  }

  std::optional<bool> run(uint64_t max_states) {
    const std::vector<uint32_t> none(threads_.size(), 0);
    reach({none, none, {}});
    while (!work_.empty()) {
      const State state = work_.back();
      work_.pop_back();
      bool all = true;
      for (uint32_t thread = 0; thread < threads_.size(); ++thread) {
        all = all && state.committed[thread] == threads_[thread].size();
        commit(state, thread);
        issue(state, thread);
      }
      if (all) {
        return true;
      }
      if (seen_.size() > max_states) {
        return {};
      }
    }
    return false;
  }

 private:
  void reach(const State& state) {
    if (seen_.insert(state).second) {
      work_.push_back(state);
    }
  }

  // The buffer begins with a store, or is empty.
  void normalize(State* state, uint32_t thread) const {
    uint32_t& next = state->committed[thread];
    while (next < state->issued[thread] && threads_[thread][next]->kind() != EventKind::kWrite) {
      ++next;
    }
  }

  void commit(State state, uint32_t thread) {
    if (state.committed[thread] == state.issued[thread]) {
      return;
    }
    const Event& store = *threads_[thread][state.committed[thread]++];
    state.memory[store.address] = *trace_.write_value(store);
    normalize(&state, thread);
    reach(state);
  }

  void issue(State state, uint32_t thread) {
    if (state.issued[thread] == threads_[thread].size()) {
      return;
    }
    const Event& event = *threads_[thread][state.issued[thread]];
    const bool empty = state.committed[thread] == state.issued[thread];
    if (!empty && (model_ == MemoryModel::kSc || event.kind() == EventKind::kFence ||
                   event.kind() == EventKind::kReadModifyWrite)) {
      return;
    }
    if (const auto recorded = trace_.read_value(event)) {
      uint64_t value = state.memory[event.address];
      for (uint32_t i = state.committed[thread]; i < state.issued[thread]; ++i) {
        const Event& store = *threads_[thread][i];
        if (store.kind() == EventKind::kWrite && store.address == event.address) {
          value = *trace_.write_value(store);
        }
      }
      if (value != *recorded) {
        return;
      }
    }
    if (event.kind() == EventKind::kReadModifyWrite) {
      state.memory[event.address] = *trace_.write_value(event);
    }
    ++state.issued[thread];
    normalize(&state, thread);
    reach(state);
  }

  const Trace& trace_;
  MemoryModel model_;
  std::vector<std::vector<const Event*>> threads_;
  std::set<State> seen_;
  std::vector<State> work_;
};

}  // namespace

std::optional<bool> naive_consistency(const Trace& trace, MemoryModel model, uint64_t max_states) {
  return Enumeration(trace, model).run(max_states);
}

}  // namespace tsomon::testing
