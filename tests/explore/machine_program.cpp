#include "tests/explore/machine_program.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace tsomon::explore {
namespace {

using machine::Instruction;
using machine::Opcode;
using machine::Operation;
using machine::ThreadState;

constexpr uint32_t kMaxSteps = 400;

bool touches_memory(Opcode opcode) {
  return opcode == Opcode::kLoad || opcode == Opcode::kStore || opcode == Opcode::kLocked ||
         opcode == Opcode::kFence;
}

uint64_t source_of(const Instruction& instruction, const ThreadState& thread) {
  const uint64_t value = instruction.source.is_register ? thread.registers[instruction.source.value]
                                                        : instruction.source.value;
  return machine::truncate(value, instruction.width);
}

void describe_locked(const Instruction& instruction, const ThreadState& thread, Step* step) {
  const uint64_t source = source_of(instruction, thread);
  step->exact = true;
  step->a = source;
  switch (instruction.operation) {
    case Operation::kAdd:
    case Operation::kExchangeAdd:
      step->op = Op::kAdd;
      return;
    case Operation::kSubtract:
      step->op = Op::kAdd;
      step->a = 0 - source;
      return;
    case Operation::kIncrement:
      step->op = Op::kAdd;
      step->a = 1;
      return;
    case Operation::kDecrement:
      step->op = Op::kAdd;
      step->a = ~Value{0};
      return;
    case Operation::kAnd:
      step->op = Op::kAnd;
      return;
    case Operation::kOr:
      step->op = Op::kOr;
      return;
    case Operation::kXor:
      step->op = Op::kXor;
      return;
    case Operation::kNot:
      step->op = Op::kXor;
      step->a = ~Value{0};
      return;
    case Operation::kNegate:
      step->op = Op::kNegate;
      return;
    case Operation::kExchange:
      step->op = Op::kExchange;
      return;
    case Operation::kCompareExchange:
      step->op = Op::kCompareExchange;
      step->a = machine::truncate(thread.registers[machine::kAccumulator], instruction.width);
      step->b = source;
      return;
    default:
      throw std::logic_error("no locked operation");
  }
}

}  // namespace

// Runs what leaves memory alone.
void MachineProgram::settle(uint16_t thread) {
  for (int i = 0; !machine_.is_finished(state_, thread) &&
                  !touches_memory(machine_.next_instruction(state_, thread).opcode);
       ++i) {
    if (i > 1000) {
      throw std::logic_error("a loop without accesses");
    }
    machine_.apply(state_, machine::Step::execute(thread));
  }
}

Step MachineProgram::describe(uint16_t number) const {
  const Instruction& instruction = machine_.next_instruction(state_, number);
  const ThreadState& thread = state_.threads[number];
  Step step;
  step.choice = {number, 0};
  step.address = 0x1000 + 16 * uint64_t{instruction.location};
  step.size = 8;  // one location, whatever the width
  step.initial = machine_.program().memory[instruction.location];
  switch (instruction.opcode) {
    case Opcode::kLoad:
      step.op = Op::kLoad;
      break;
    case Opcode::kStore:
      step.op = Op::kStore;
      break;
    case Opcode::kLocked:
      describe_locked(instruction, thread, &step);
      break;
    default:
      step.op = Op::kFence;
      step.address = 0;
      step.size = 0;
  }
  return step;
}

void MachineProgram::masks(Step* step) const {
  std::vector<machine::Step> steps;
  machine_.enabled_steps(state_, steps);
  for (const machine::Step& enabled : steps) {
    (enabled.kind == machine::Step::Kind::kCommit ? step->commits : step->enabled) |=
        uint64_t{1} << enabled.thread;
  }
}

Choice MachineProgram::choose(const Step& now, const Request& request) const {
  const auto is_contended = [&](uint16_t thread, const Step& access, bool load) {
    return std::any_of(request.contended.begin(), request.contended.end(), [&](uint64_t one) {
      return one == contended_access(access.address, thread, load);
    });
  };
  for (uint16_t thread = 0; request.policy == Policy::kLocalFirst && thread < machine_.threads();
       ++thread) {
    if (((now.commits >> thread) & 1) != 0) {
      size_t committed = 0;
      std::vector<const Step*> stores;
      for (const Step& step : run_.steps) {
        if (step.choice.thread == thread) {
          committed += step.choice.commit;
          if (step.choice.commit == 0 && step.op == Op::kStore) {
            stores.push_back(&step);
          }
        }
      }
      if (!is_contended(thread, *stores[committed], false)) {
        return {thread, 1, 0};
      }
    }
    if (((now.enabled >> thread) & 1) != 0) {
      const Step next = describe(thread);
      if (next.op == Op::kFence || (next.op == Op::kStore && request.model == Model::kTso) ||
          !is_contended(thread, next, next.op == Op::kLoad)) {
        return {thread, 0, 0};
      }
    }
  }
  const uint64_t mask = now.commits != 0 ? now.commits : now.enabled;
  return {static_cast<uint16_t>(__builtin_ctzll(mask)),
          static_cast<uint8_t>(now.commits != 0 ? 1 : 0), 0};
}

const Run& MachineProgram::run(const Request& request) {
  run_ = {};
  state_ = machine_.initial();
  const auto threads = static_cast<uint16_t>(machine_.threads());
  for (uint16_t thread = 0; thread < threads; ++thread) {
    settle(thread);
  }
  for (;;) {
    Step now;
    masks(&now);
    if (now.enabled == 0 && now.commits == 0) {
      run_.end = machine_.is_final(state_) ? End::kFinished : End::kStuck;
      return run_;
    }
    if (run_.steps.size() >= kMaxSteps) {
      run_.end = End::kBound;
      return run_;
    }
    Choice choice;
    if (run_.steps.size() < request.prefix.size()) {
      choice = request.prefix[run_.steps.size()];
    } else {
      choice = choose(now, request);
    }
    if ((((choice.commit != 0 ? now.commits : now.enabled) >> choice.thread) & 1) == 0) {
      run_.end = End::kDiverged;
      return run_;
    }
    Step step;
    if (choice.commit == 0) {
      step = describe(choice.thread);
    }
    step.choice = choice;
    step.enabled = now.enabled;
    step.commits = now.commits;
    machine_.apply(state_, choice.commit != 0 ? machine::Step::commit(choice.thread)
                                              : machine::Step::execute(choice.thread));
    if (choice.commit == 0) {
      if (step.op != Op::kFence) {
        step.read = state_.threads[choice.thread].events.back().read;
        step.written = state_.threads[choice.thread].events.back().written;
      }
      settle(choice.thread);
    }
    run_.steps.push_back(step);
  }
}

}  // namespace tsomon::explore
