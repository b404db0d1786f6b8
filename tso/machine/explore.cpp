#include "tso/machine/explore.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "tso/support/work.h"

namespace tsomon::machine {

namespace {

// Ids of events are 16 bits; a thread that gets here loops.
constexpr size_t kMaxEvents = 0xFF00;
// What an entry of a set of names needs beside the name.
constexpr uint64_t kEntryBytes = 96;
constexpr uint64_t kLeastStates = 4096;  // that bounds on bytes and work allow for

void append(std::string& key, uint32_t number, int bytes) {
  for (int byte = 0; byte < bytes; ++byte) {
    key.push_back(static_cast<char>(number >> (8 * byte)));
  }
}

void append_history(std::string& key, const State& state) {
  for (const ThreadState& thread : state.threads) {
    for (const MemoryEvent& event : thread.events) {
      if (event.kind == MemoryEventKind::kLoad || event.kind == MemoryEventKind::kLocked) {
        append(key, event.source.thread, 2);
        append(key, event.source.event, 2);
      }
    }
    append(key, 0xFFFE, 2);  // no thread has this number
  }
  for (const auto& writes : state.coherence) {
    for (const WriteId write : writes) {
      append(key, write.thread, 2);
      append(key, write.event, 2);
    }
    append(key, 0xFFFE, 2);
  }
}

// What was read and where each thread stands decide the rest of a state: between two reads a
// thread is deterministic, and it comes twice to one instruction only by a backward jump. Which
// stores have left their buffers is part of coherence.
std::string state_key(const State& state) {
  std::string key;
  for (const ThreadState& thread : state.threads) {
    append(key, thread.next, 4);
    append(key, thread.backward_jumps, 4);
  }
  append_history(key, state);
  return key;
}

bool commutes_with_everything(const Machine& machine, const State& state, uint16_t thread) {
  if (!machine.is_enabled(state, Step::execute(thread))) {
    return false;
  }
  switch (machine.next_instruction(state, thread).opcode) {
    case Opcode::kLoad:
    case Opcode::kLocked:
      return false;
    case Opcode::kStore:
      return machine.rules().model == Model::kTso;
    default:
      return true;
  }
}

class Search {
 public:
  Search(const Machine& machine, const Limits& limits, bool every_order)
      : machine_(machine),
        limits_(limits),
        every_order_(every_order),
        state_(machine.initial()),
        usual_states_(std::max(limits.max_states, kLeastStates)) {}

  // `on_final` returns false to stop.
  template <typename OnFinal>
  Exploration run(const OnFinal& on_final) {
    if (enter() && machine_.is_final(state_)) {
      ++result_.executions;
      result_.stopped = !on_final(path_, state_);
    }
    while (depth_ > 0 && !result_.stopped && !result_.state_limit_hit) {
      Frame& frame = frames_[depth_ - 1];
      if (frame.next == frame.steps.size()) {
        leave();
        continue;
      }
      const Step step = frame.steps[frame.next++];
      undos_.push_back(machine_.apply(state_, step));
      path_.push_back(step);
      if (!enter()) {
        take_back();
      } else if (machine_.is_final(state_)) {
        ++result_.executions;
        result_.stopped = !on_final(path_, state_);
      }
    }
    return result_;
  }

 private:
  struct Frame {
    std::vector<Step> steps;
    size_t next = 0;
  };

  // Opens a frame for the current state; false if nothing new lies after it.
  bool enter() {
    for (const ThreadState& thread : state_.threads) {
      if (thread.backward_jumps > limits_.max_backward_jumps ||
          thread.events.size() >= kMaxEvents) {
        result_.loop_limit_hit = true;
        return false;
      }
    }
    if (stop_asked_now()) {
      result_.stopped = true;
      return false;
    }
    if (!every_order_) {
      std::string key = state_key(state_);
      const uint64_t bytes = key.size() + kEntryBytes;
      work_ += key.size();
      if (!seen_.insert(std::move(key)).second) {
        result_.state_limit_hit = work_ / kStateWork > usual_states_;
        return false;
      }
      // Of final states the callback keeps about as much once more.
      bytes_ += machine_.is_final(state_) ? 2 * bytes : bytes;
    }
    if (++result_.states > limits_.max_states || bytes_ / kStateBytes > usual_states_ ||
        work_ / kStateWork > usual_states_) {
      result_.state_limit_hit = true;
      return false;
    }
    if (depth_ == frames_.size()) {
      frames_.emplace_back();
    }
    Frame& frame = frames_[depth_++];
    frame.next = 0;
    choose(frame.steps);
    return true;
  }

  // Asking costs more than a small state.
  bool stop_asked_now() { return ++entered_ % 64 == 0 && stop_asked(); }

  void choose(std::vector<Step>& steps) const {
    if (!every_order_) {
      for (uint16_t thread = 0; thread < machine_.threads(); ++thread) {
        if (commutes_with_everything(machine_, state_, thread)) {
          steps.assign(1, Step::execute(thread));
          return;
        }
      }
    }
    machine_.enabled_steps(state_, steps);
  }

  void leave() {
    --depth_;
    if (depth_ > 0) {
      take_back();
    }
  }

  void take_back() {
    machine_.undo(state_, undos_.back());
    undos_.pop_back();
    path_.pop_back();
  }

  const Machine& machine_;
  const Limits& limits_;
  const bool every_order_;
  State state_;
  Exploration result_;
  std::vector<Frame> frames_;  // the first `depth_` are in use; the others keep their memory
  size_t depth_ = 0;
  std::vector<Undo> undos_;
  std::vector<Step> path_;
  std::unordered_set<std::string> seen_;
  const uint64_t usual_states_;
  uint64_t bytes_ = 0;  // of seen_, and about as much of what the callback keeps
  uint64_t work_ = 0;   // bytes of keys made
  uint64_t entered_ = 0;
};

}  // namespace

std::string execution_class(const State& state) {
  std::string name;
  append_history(name, state);
  return name;
}

Exploration explore(const Machine& machine, const Limits& limits,
                    const std::function<void(const State&)>& on_class) {
  // Final states with different keys are of different classes: where the threads stand and how
  // often they jumped back follows from what they read.
  return Search(machine, limits, false).run([&](const std::vector<Step>&, const State& state) {
    on_class(state);
    return true;
  });
}

Exploration enumerate(
    const Machine& machine, const Limits& limits,
    const std::function<bool(const std::vector<Step>&, const State&)>& on_execution) {
  return Search(machine, limits, true).run(on_execution);
}

Outcomes outcomes(const Machine& machine, const Limits& limits,
                  const std::function<std::vector<Value>(const State&)>& observe) {
  Outcomes found;
  found.exploration = explore(machine, limits, [&](const State& state) {
    found.final_states.insert(observe(state));
    found.classes.insert(execution_class(state));
  });
  return found;
}

}  // namespace tsomon::machine
