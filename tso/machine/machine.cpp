#include "tso/machine/machine.h"

#include "tso/machine/alu.h"
#include "tso/support/result.h"

namespace tsomon::machine {

Machine::Machine(const Program& program, Rules rules) : program_(program), rules_(rules) {
  TSOMON_CHECK(program.check().empty(), "the program is out of range");
  TSOMON_CHECK(rules.store_buffer > 0, "a store buffer needs an entry");
}

State Machine::initial() const {
  State state;
  state.threads.resize(program_.threads.size());
  for (size_t thread = 0; thread < program_.threads.size(); ++thread) {
    state.threads[thread].registers = program_.threads[thread].registers;
  }
  state.coherence.resize(program_.memory.size());
  return state;
}

bool Machine::is_enabled(const State& state, Step step) const {
  if (step.thread >= state.threads.size()) {
    return false;
  }
  const ThreadState& thread = state.threads[step.thread];
  const size_t buffered = thread.stores.size() - thread.committed;
  if (step.kind == Step::Kind::kCommit) {
    return buffered != 0;
  }
  if (is_finished(state, step.thread)) {
    return false;
  }
  switch (next_instruction(state, step.thread).opcode) {
    case Opcode::kLocked:
    case Opcode::kFence:
      return buffered == 0;
    case Opcode::kStore:
      return buffered < rules_.store_buffer;
    default:
      return true;
  }
}

void Machine::enabled_steps(const State& state, std::vector<Step>& steps) const {
  steps.clear();
  for (uint16_t thread = 0; thread < threads(); ++thread) {
    for (const Step step : {Step::execute(thread), Step::commit(thread)}) {
      if (is_enabled(state, step)) {
        steps.push_back(step);
      }
    }
  }
}

Undo Machine::apply(State& state, Step step) const {
  TSOMON_CHECK(is_enabled(state, step), "the machine cannot take this step");
  ThreadState& thread = state.threads[step.thread];
  Undo undo;
  undo.step = step;
  if (step.kind == Step::Kind::kCommit) {
    const uint32_t event = thread.stores[thread.committed++];
    state.coherence[thread.events[event].location].push_back(
        {step.thread, static_cast<uint16_t>(event)});
    return undo;
  }
  undo.flags = thread.flags;
  undo.next = thread.next;
  undo.backward_jumps = thread.backward_jumps;
  execute(state, step.thread, undo);
  return undo;
}

void Machine::undo(State& state, const Undo& undo) const {
  ThreadState& thread = state.threads[undo.step.thread];
  if (undo.step.kind == Step::Kind::kCommit) {
    const uint32_t event = thread.stores[--thread.committed];
    state.coherence[thread.events[event].location].pop_back();
    return;
  }
  if (undo.made_event) {
    const MemoryEvent& event = thread.events.back();
    const bool stores = event.kind == MemoryEventKind::kStore;
    if (stores) {
      thread.stores.pop_back();
    }
    if (event.writes && (!stores || rules_.model == Model::kSc)) {
      state.coherence[event.location].pop_back();
      thread.committed -= stores ? 1 : 0;
    }
    thread.events.pop_back();
  }
  thread.registers[undo.written] = undo.value;
  thread.flags = undo.flags;
  thread.next = undo.next;
  thread.backward_jumps = undo.backward_jumps;
}

bool Machine::is_final(const State& state) const {
  for (uint16_t thread = 0; thread < threads(); ++thread) {
    const ThreadState& of_thread = state.threads[thread];
    if (!is_finished(state, thread) || of_thread.committed != of_thread.stores.size()) {
      return false;
    }
  }
  return true;
}

Value Machine::memory(const State& state, Location location) const {
  return in_memory(state, location).value;
}

Machine::Seen Machine::in_memory(const State& state, Location location) const {
  const auto& writes = state.coherence[location];
  if (writes.empty()) {
    return {program_.memory[location], {}, false};
  }
  const WriteId last = writes.back();
  return {state.threads[last.thread].events[last.event].written, last, false};
}

Machine::Seen Machine::load(const State& state, const ThreadState& thread, uint16_t number,
                            Location location) const {
  for (size_t entry = thread.stores.size(); entry > thread.committed; --entry) {
    const uint32_t event = thread.stores[entry - 1];
    if (thread.events[event].location == location) {
      return {thread.events[event].written, {number, static_cast<uint16_t>(event)}, true};
    }
  }
  return in_memory(state, location);
}

void Machine::execute(State& state, uint16_t number, Undo& undo) const {
  ThreadState& thread = state.threads[number];
  const Instruction& instruction = next_instruction(state, number);
  const auto write_register = [&](Register target, Value value) {
    undo.written = target;
    undo.value = thread.registers[target];
    thread.registers[target] = merge_register(undo.value, value, instruction.width);
  };
  const Value source = instruction.source.is_register ? thread.registers[instruction.source.value]
                                                      : instruction.source.value;
  undo.written = instruction.destination;
  undo.value = thread.registers[instruction.destination];

  MemoryEvent event;
  event.location = instruction.location;
  event.instruction = thread.next;
  ++thread.next;
  const auto add_event = [&](MemoryEventKind kind) {
    // Ids are 16 bits; 65,000 events of one thread are no small program.
    TSOMON_CHECK(thread.events.size() < 0xFFFF, "a thread made more than 65535 memory events");
    event.kind = kind;
    undo.made_event = true;
    thread.events.push_back(event);
  };

  switch (instruction.opcode) {
    case Opcode::kNothing:
      return;
    case Opcode::kMove:
      write_register(instruction.destination, source);
      return;
    case Opcode::kArithmetic: {
      const Computed computed =
          compute(instruction.operation, thread.registers[instruction.destination], source,
                  instruction.width, thread.flags);
      thread.flags = computed.flags;
      if (instruction.operation != Operation::kCompare &&
          instruction.operation != Operation::kTest) {
        write_register(instruction.destination, computed.value);
      }
      return;
    }
    case Opcode::kLoad: {
      const Seen seen = load(state, thread, number, instruction.location);
      event.read = truncate(seen.value, instruction.width);
      event.source = seen.source;
      event.forwarded = seen.forwarded;
      write_register(instruction.destination, event.read);
      add_event(MemoryEventKind::kLoad);
      return;
    }
    case Opcode::kStore:
      event.written = truncate(source, instruction.width);
      event.writes = true;
      thread.stores.push_back(static_cast<uint32_t>(thread.events.size()));
      add_event(MemoryEventKind::kStore);
      if (rules_.model == Model::kSc) {
        state.coherence[event.location].push_back(
            {number, static_cast<uint16_t>(thread.stores.back())});
        ++thread.committed;
      }
      return;
    case Opcode::kLocked: {
      const Seen seen = in_memory(state, instruction.location);
      event.read = truncate(seen.value, instruction.width);
      event.source = seen.source;
      const bool exchanges_if = instruction.operation == Operation::kCompareExchange;
      const Value accumulator = thread.registers[kAccumulator];
      const Computed computed = exchanges_if ? compute(instruction.operation, accumulator,
                                                       event.read, instruction.width, thread.flags)
                                             : compute(instruction.operation, event.read, source,
                                                       instruction.width, thread.flags);
      thread.flags = computed.flags;
      event.writes = !exchanges_if || computed.value == 0;
      event.written = exchanges_if ? truncate(source, instruction.width) : computed.value;
      if (!event.writes) {
        event.written = 0;
        write_register(kAccumulator, event.read);
      } else if (!exchanges_if && instruction.operation >= Operation::kExchange) {
        write_register(instruction.destination, event.read);
      }
      if (event.writes) {
        state.coherence[event.location].push_back(
            {number, static_cast<uint16_t>(thread.events.size())});
      }
      add_event(MemoryEventKind::kLocked);
      return;
    }
    case Opcode::kFence:
      add_event(MemoryEventKind::kFence);
      return;
    case Opcode::kJumpIf:
      if (!holds(instruction.condition, thread.flags)) {
        return;
      }
      [[fallthrough]];
    case Opcode::kJump:
      // The index was advanced already: a jump to itself is backward too.
      if (instruction.target < thread.next) {
        ++thread.backward_jumps;
      }
      thread.next = instruction.target;
      return;
  }
}

}  // namespace tsomon::machine
