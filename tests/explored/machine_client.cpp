// A program of the abstract machine, performed by a real one: machine_client atomic|plain TEXT
//
// Every thread performs its instructions one after the other: memory by atomic operations and fences,
// or loads and stores by plain accesses; the rest by the machine's arithmetic. The first of
// several threads is main itself. The outcome is the final state: the registers of named_registers(), then all locations.
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <tsomon.h>

#include "tests/explored/program_text.h"
#include "tso/machine/alu.h"

namespace {

using namespace tsomon::machine;

constexpr size_t kMost = 16;  // threads and locations

// A location each has a cache line, which nothing else is accessed in.
struct alignas(64) Cell {
  std::atomic<Value> value{0};
};

Program program;
bool plain = false;
Cell memory[kMost];
Value results[kMost][kRegisters];

// Not instrumented: what a thread leaves is no part of the program.
__attribute__((noinline, no_sanitize("thread"))) void leave(size_t thread, const Value* registers) {
  for (size_t i = 0; i < kRegisters; ++i) {
    results[thread][i] = registers[i];
  }
}
__attribute__((noinline, no_sanitize("thread"))) Value left(size_t thread, Register number) {
  return results[thread][number];
}

Value load(Location location) {
  return plain ? *reinterpret_cast<Value*>(&memory[location].value)
               : memory[location].value.load(std::memory_order_acquire);
}

void store(Location location, Value value) {
  if (plain) {
    *reinterpret_cast<Value*>(&memory[location].value) = value;
  } else {
    memory[location].value.store(value, std::memory_order_release);
  }
}

// What the location held.
Value locked(const Instruction& instruction, Value source, Value accumulator) {
  std::atomic<Value>& value = memory[instruction.location].value;
  switch (instruction.operation) {
    case Operation::kAdd:
    case Operation::kExchangeAdd:
      return value.fetch_add(source);
    case Operation::kSubtract:
      return value.fetch_sub(source);
    case Operation::kIncrement:
      return value.fetch_add(1);
    case Operation::kDecrement:
      return value.fetch_sub(1);
    case Operation::kAnd:
      return value.fetch_and(source);
    case Operation::kOr:
      return value.fetch_or(source);
    case Operation::kXor:
      return value.fetch_xor(source);
    case Operation::kNot:
      return value.fetch_xor(~Value{0});
    case Operation::kExchange:
      return value.exchange(source);
    case Operation::kCompareExchange:
      value.compare_exchange_strong(accumulator, source);
      return accumulator;
    default:
      std::fprintf(stderr, "no atomic operation does this\n");
      std::exit(2);
  }
}

void run(size_t number) {
  const Thread& thread = program.threads[number];
  std::array<Value, kRegisters> registers = thread.registers;
  uint8_t flags = 0;
  for (size_t next = 0; next < thread.instructions.size();) {
    const Instruction& instruction = thread.instructions[next++];
    const uint8_t width = instruction.width;
    const Value source =
        truncate(instruction.source.is_register ? registers[instruction.source.value]
                                                : instruction.source.value,
                 width);
    const auto set = [&](Register target, Value value) {
      registers[target] = merge_register(registers[target], value, width);
    };
    switch (instruction.opcode) {
      case Opcode::kNothing:
        break;
      case Opcode::kMove:
        set(instruction.destination, source);
        break;
      case Opcode::kArithmetic: {
        const Computed computed = compute(instruction.operation, registers[instruction.destination],
                                          source, width, flags);
        flags = computed.flags;
        if (instruction.operation != Operation::kCompare &&
            instruction.operation != Operation::kTest) {
          set(instruction.destination, computed.value);
        }
        break;
      }
      case Opcode::kLoad:
        set(instruction.destination, truncate(load(instruction.location), width));
        break;
      case Opcode::kStore:
        store(instruction.location, source);
        break;
      case Opcode::kLocked: {
        const bool compares = instruction.operation == Operation::kCompareExchange;
        const Value expected = truncate(registers[kAccumulator], width);
        const Value old = truncate(locked(instruction, source, expected), width);
        const Computed computed = compares
                                      ? compute(instruction.operation, expected, old, width, flags)
                                      : compute(instruction.operation, old, source, width, flags);
        flags = computed.flags;
        if (compares && old != expected) {
          set(kAccumulator, old);
        } else if (!compares && instruction.operation >= Operation::kExchange) {
          set(instruction.destination, old);
        }
        break;
      }
      case Opcode::kFence:
        std::atomic_thread_fence(std::memory_order_seq_cst);
        break;
      case Opcode::kJumpIf:
        if (!holds(instruction.condition, flags)) {
          break;
        }
        [[fallthrough]];
      case Opcode::kJump:
        next = instruction.target;
        break;
    }
  }
  leave(number, registers.data());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    return 2;
  }
  plain = std::strcmp(argv[1], "plain") == 0;
  program = tsomon::explored::parse_program(argv[2]);
  if (program.threads.size() > kMost || program.memory.size() > kMost) {
    return 2;
  }
  for (size_t i = 0; i < program.memory.size(); ++i) {
    memory[i].value = program.memory[i];
  }
  // All that the threads read is there before the first of them starts.
  std::vector<std::thread> threads(program.threads.size());
  const size_t of_main = threads.size() > 1 ? 1 : 0;
  for (size_t i = of_main; i < threads.size(); ++i) {
    threads[i] = std::thread(run, i);
  }
  if (of_main != 0) {
    run(0);
  }
  for (std::thread& thread : threads) {
    if (thread.joinable()) {
      thread.join();
    }
  }
  // What main itself has stored is in memory then, too.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::string outcome;
  for (const auto& [thread, number] : tsomon::explored::named_registers(program)) {
    outcome += std::to_string(left(thread, number)) + " ";
  }
  for (size_t i = 0; i < program.memory.size(); ++i) {
    outcome += std::to_string(memory[i].value.load()) + " ";
  }
  tsomon_outcome("%s", outcome.c_str());
  return 0;
}
