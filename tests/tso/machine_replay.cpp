#include "tests/tso/machine_replay.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "tests/tso/naive_checker.h"
#include "tests/tso/plain_units.h"
#include "tso/machine/machine.h"

namespace tsomon::testing {
namespace {

class Replayer {
 public:
  Replayer(const Trace& trace, const RelationOptions& options, Property property,
           const std::vector<Step>& steps)
      : trace_(trace), options_(options), property_(property), steps_(steps) {
    build_program();
  }

  MachineReplay run() {
    machine::Rules rules;
    if (options_.model == MemoryModel::kSc) {
      rules.model = machine::Model::kSc;
    } else if (options_.store_buffer != 0) {
      rules.store_buffer = options_.store_buffer;
    }
    const machine::Machine machine(program_, rules);
    machine::State state = machine.initial();
    std::vector<std::vector<uint32_t>> buffers(program_.threads.size());
    for (const Step& step : steps_) {
      const auto thread = static_cast<uint16_t>(trace_.events[step.event].thread);
      auto& buffer = buffers[thread];
      if (step.commit) {
        if (buffer.empty() || buffer.front() != step.event) {
          return refuse("commit out of turn", step);
        }
        buffer.erase(buffer.begin());
        if (rules.model == machine::Model::kSc) {
          continue;  // went to memory as it executed
        }
      } else {
        const uint32_t next = state.threads[thread].next;
        if (next >= events_[thread].size() || events_[thread][next] != step.event) {
          return refuse("issue against program order", step);
        }
        if (stores(step.event)) {
          buffer.push_back(step.event);
        }
      }
      const machine::Step taken =
          step.commit ? machine::Step::commit(thread) : machine::Step::execute(thread);
      if (!machine.is_enabled(state, taken)) {
        return refuse("not enabled", step);
      }
      machine.apply(state, taken);
      if (!step.commit && trace_.events[step.event].kind() == EventKind::kRead) {
        result_.loads.emplace_back(step.event, state.threads[thread].events.back().read);
      }
    }
    if (!machine.is_final(state)) {
      result_.refusal = "stores are left in a buffer";
      return result_;
    }
    result_.cyclic = has_cycle(state);
    return result_;
  }

 private:
  bool stores(uint32_t e) const {
    const EventKind kind = trace_.events[e].kind();
    return kind == EventKind::kWrite || kind == EventKind::kSend ||
           (kind == EventKind::kRelease && !options_.fenced_release);
  }

  MachineReplay refuse(const char* why, const Step& step) {
    result_.refusal = fmt::format("{} {}: {}", step.commit ? "commit" : "issue", step.event, why);
    return result_;
  }

  void build_program() {
    std::vector<uint32_t> slice;
    for (const Step& step : steps_) {
      if (!step.commit) {
        slice.push_back(step.event);
      }
    }
    std::sort(slice.begin(), slice.end());
    ThreadId threads = 0;
    for (const uint32_t e : slice) {
      threads = std::max(threads, trace_.events[e].thread + 1);
    }
    program_.threads.resize(threads);
    events_.resize(threads);
    for (const uint32_t e : slice) {
      const ThreadId thread = trace_.events[e].thread;
      program_.threads[thread].instructions.push_back(instruction(e));
      events_[thread].push_back(e);
      if (is(trace_.events[e], kinds::kDrains | kinds::kBuffered | kind_mask(EventKind::kRead))) {
        memory_event_[e] = memory_events_[thread]++;
      }
    }
    program_.memory.assign(locations_.size(), 0);
  }

  machine::Instruction instruction(uint32_t e) {
    const Event& event = trace_.events[e];
    const auto location = [&] {
      // A send has its own, which nobody looks at.
      constexpr uint64_t kChannels = uint64_t{1} << 63U;
      const uint64_t key =
          event.kind() == EventKind::kSend ? event.address | kChannels : event.address;
      return locations_.try_emplace(key, static_cast<uint32_t>(locations_.size())).first->second;
    };
    const auto value = machine::immediate(trace_.write_value(event).value_or(1000 + e));
    switch (event.kind()) {
      case EventKind::kRead:
        return machine::Instruction::load(1, location());
      case EventKind::kReadModifyWrite:
      case EventKind::kAcquire:
      case EventKind::kAcquireShared:
      case EventKind::kReleaseShared:
        return machine::Instruction::locked(machine::Operation::kExchange, location(), value);
      case EventKind::kRelease:
        if (options_.fenced_release) {
          return machine::Instruction::locked(machine::Operation::kExchange, location(), value);
        }
        return machine::Instruction::store(location(), value);
      case EventKind::kWrite:
      case EventKind::kSend:
        return machine::Instruction::store(location(), value);
      case EventKind::kReceive:
      case EventKind::kJoin:
        return machine::Instruction::nothing();
      default:
        return machine::Instruction::fence();
    }
  }

  // Where in its location's coherence order the event writes (from 1), or what it read from.
  struct Place {
    bool accesses = false;
    bool writes = false;
    size_t position = 0;
  };
  Place place(const machine::State& state, uint32_t e) const {
    const Event& event = trace_.events[e];
    Place result;
    if (!is(event, kinds::kAccesses)) {
      return result;
    }
    result.accesses = true;
    const auto thread = static_cast<uint16_t>(event.thread);
    const machine::MemoryEvent& done = state.threads[thread].events[memory_event_.at(e)];
    result.writes = done.writes;
    const machine::WriteId wanted =
        done.writes ? machine::WriteId{thread, static_cast<uint16_t>(memory_event_.at(e))}
                    : done.source;
    const auto& order = state.coherence[done.location];
    const auto at = std::find(order.begin(), order.end(), wanted);
    result.position = at == order.end() ? 0 : static_cast<size_t>(at - order.begin()) + 1;
    return result;
  }

  bool has_cycle(const machine::State& state) const {
    std::vector<uint32_t> slice;
    for (const auto& thread : events_) {
      slice.insert(slice.end(), thread.begin(), thread.end());
    }
    // The events of the witness alone: what orders them has to be among them.
    Trace own;
    own.symbols = trace_.symbols;
    std::map<uint32_t, uint32_t> own_place;
    std::sort(slice.begin(), slice.end());
    for (const uint32_t e : slice) {
      own_place.emplace(e, static_cast<uint32_t>(own_place.size()));
      own.append(trace_, e, e + 1);
    }
    const NaiveChecker naive(own, options_);
    const std::vector<uint32_t> units = plain_units(trace_);
    const bool per_event = property_ == Property::kRobustness;
    std::map<uint32_t, size_t> nodes;
    const auto node = [&](uint32_t e) {
      return nodes.try_emplace(per_event ? e : units[e], nodes.size()).first->second;
    };
    std::vector<std::pair<size_t, size_t>> edges;
    for (const uint32_t e : slice) {
      for (const uint32_t f : slice) {
        if (e == f) {
          continue;
        }
        const Order order = naive.between(own_place.at(e), own_place.at(f));
        bool edge = false;
        if (trace_.events[e].thread == trace_.events[f].thread) {
          edge = order == Order::kBefore || (per_event && e < f);
        } else if (order != Order::kNone) {
          const Place first = place(state, e);
          const Place second = place(state, f);
          const bool same = first.accesses && second.accesses &&
                            trace_.events[e].address == trace_.events[f].address;
          if (!same) {
            edge = order == Order::kBefore;
          } else if (first.writes) {
            edge = second.writes ? first.position < second.position
                                 : first.position <= second.position;
          } else {
            edge = first.position < second.position;
          }
        }
        if (edge && node(e) != node(f)) {
          edges.emplace_back(node(e), node(f));
        }
      }
    }
    const size_t n = nodes.size();
    std::vector<std::vector<bool>> reach(n, std::vector<bool>(n, false));
    for (const auto& [from, to] : edges) {
      reach[from][to] = true;
    }
    for (size_t k = 0; k < n; ++k) {
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; reach[i][k] && j < n; ++j) {
          reach[i][j] = reach[i][j] || reach[k][j];
        }
      }
    }
    for (size_t i = 0; i < n; ++i) {
      if (reach[i][i]) {
        return true;
      }
    }
    return false;
  }

  const Trace& trace_;
  const RelationOptions& options_;
  Property property_;
  const std::vector<Step>& steps_;
  MachineReplay result_;
  machine::Program program_;
  std::vector<std::vector<uint32_t>> events_;  // of each thread, one an instruction
  std::map<uint64_t, uint32_t> locations_;
  std::map<uint32_t, size_t> memory_event_;  // event -> number in its thread's events
  std::map<ThreadId, size_t> memory_events_;
};

}  // namespace

MachineReplay replay_on_machine(const Trace& trace, const RelationOptions& options,
                                Property property, const std::vector<Step>& steps) {
  return Replayer(trace, options, property, steps).run();
}

}  // namespace tsomon::testing
