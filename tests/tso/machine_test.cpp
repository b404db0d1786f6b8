// The abstract machine step by step: what is enabled, what loads see, that steps can be taken back.
#include "tso/machine/machine.h"

#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/tso/random_program.h"
#include "tso/machine/alu.h"

using namespace tsomon::machine;

namespace {

constexpr Location kX = 0;
constexpr Location kY = 1;

Program store_buffering() {
  Program program;
  program.memory = {0, 0};
  program.threads.resize(2);
  program.threads[0].instructions = {Instruction::store(kX, immediate(1)),
                                     Instruction::load(0, kY)};
  program.threads[1].instructions = {Instruction::store(kY, immediate(2)),
                                     Instruction::load(0, kX)};
  return program;
}

// Everything that a state holds, as text.
std::string dump(const State& state) {
  std::string text;
  const auto add = [&](uint64_t number) { text += std::to_string(number) + ","; };
  for (const ThreadState& thread : state.threads) {
    for (const uint64_t number : {uint64_t{thread.next}, uint64_t{thread.backward_jumps},
                                  uint64_t{thread.flags}, uint64_t{thread.committed}}) {
      add(number);
    }
    for (const Value value : thread.registers) {
      add(value);
    }
    for (const MemoryEvent& event : thread.events) {
      add(static_cast<uint64_t>(event.kind));
      add(event.forwarded);
      add(event.writes);
      add(event.location);
      add(event.instruction);
      add(event.source.thread);
      add(event.source.event);
      add(event.read);
      add(event.written);
    }
    text += "s";
    for (const uint32_t store : thread.stores) {
      add(store);
    }
    text += "\n";
  }
  for (const auto& writes : state.coherence) {
    for (const WriteId write : writes) {
      add(write.thread);
      add(write.event);
    }
    text += "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("store buffering, by hand") {
  const Program program = store_buffering();
  const Machine tso(program);
  State state = tso.initial();
  std::vector<Step> steps;
  tso.enabled_steps(state, steps);
  CHECK(steps == std::vector<Step>{Step::execute(0), Step::execute(1)});
  CHECK(!tso.is_enabled(state, Step::commit(0)));
  CHECK(!tso.is_enabled(state, Step::execute(7)));

  tso.apply(state, Step::execute(0));
  tso.apply(state, Step::execute(1));
  CHECK(tso.memory(state, kX) == 0);
  CHECK(tso.is_enabled(state, Step::commit(0)));
  tso.apply(state, Step::execute(0));
  tso.apply(state, Step::execute(1));
  for (const ThreadState& thread : state.threads) {
    CHECK(thread.registers[0] == 0);
    CHECK(thread.events[1].kind == MemoryEventKind::kLoad);
    CHECK(thread.events[1].source.is_initial());
    CHECK(!thread.events[1].forwarded);
  }
  CHECK(!tso.is_final(state));
  tso.apply(state, Step::commit(1));
  CHECK(tso.memory(state, kY) == 2);
  tso.apply(state, Step::commit(0));
  CHECK(tso.is_final(state));
  tso.enabled_steps(state, steps);
  CHECK(steps.empty());
  CHECK(state.coherence[kX] == std::vector<WriteId>{{0, 0}});
}

TEST_CASE("under SC stores are in memory at once") {
  const Program program = store_buffering();
  const Machine sc(program, {.model = Model::kSc});
  State state = sc.initial();
  sc.apply(state, Step::execute(0));
  CHECK(sc.memory(state, kX) == 1);
  CHECK(!sc.is_enabled(state, Step::commit(0)));
  sc.apply(state, Step::execute(1));
  sc.apply(state, Step::execute(1));
  CHECK(state.threads[1].registers[0] == 1);
  CHECK(state.threads[1].events[1].source == WriteId{0, 0});
}

TEST_CASE("a load takes the newest store of its own buffer") {
  Program program;
  program.memory = {9, 9};
  program.threads.resize(2);
  program.threads[0].instructions = {
      Instruction::store(kX, immediate(1)), Instruction::store(kX, immediate(2)),
      Instruction::store(kY, immediate(3)), Instruction::load(0, kX), Instruction::load(1, kX)};
  program.threads[1].instructions = {
      Instruction::locked(Operation::kExchange, kX, immediate(7), 0)};
  const Machine tso(program);
  State state = tso.initial();
  for (int count = 0; count < 4; ++count) {
    tso.apply(state, Step::execute(0));
  }
  CHECK(state.threads[0].registers[0] == 2);
  CHECK(state.threads[0].events[3].forwarded);
  CHECK(state.threads[0].events[3].source == WriteId{0, 1});
  tso.apply(state, Step::commit(0));
  tso.apply(state, Step::commit(0));
  tso.apply(state, Step::execute(1));
  CHECK(state.threads[1].registers[0] == 2);
  CHECK(state.threads[1].events[0].source == WriteId{0, 1});
  tso.apply(state, Step::execute(0));
  CHECK(state.threads[0].registers[1] == 7);
  CHECK(!state.threads[0].events[4].forwarded);
  CHECK(state.threads[0].events[4].source == WriteId{1, 0});
  CHECK(state.coherence[kX] == std::vector<WriteId>{{0, 0}, {0, 1}, {1, 0}});
}

TEST_CASE("fences and locked operations wait for an empty buffer, stores for room in it") {
  for (const Instruction& draining :
       {Instruction::fence(), Instruction::locked(Operation::kIncrement, kY)}) {
    Program program;
    program.memory = {0, 0};
    program.threads.resize(1);
    program.threads[0].instructions = {Instruction::store(kX, immediate(1)),
                                       Instruction::store(kX, immediate(2)), draining};
    const Machine tso(program, {.model = Model::kTso, .store_buffer = 1});
    State state = tso.initial();
    tso.apply(state, Step::execute(0));
    CHECK(!tso.is_enabled(state, Step::execute(0)));
    tso.apply(state, Step::commit(0));
    tso.apply(state, Step::execute(0));
    CHECK(!tso.is_enabled(state, Step::execute(0)));
    tso.apply(state, Step::commit(0));
    CHECK(tso.is_enabled(state, Step::execute(0)));
    tso.apply(state, Step::execute(0));
    CHECK(tso.is_final(state));
  }
}

TEST_CASE("locked operations load, compute and store in one step") {
  struct Row {
    Operation operation;
    Value memory;  // after, from 12 with operand 10
    Value reg;     // register 1 after, from 5
  };
  for (const Row& row : std::vector<Row>{{Operation::kAdd, 22, 5},
                                         {Operation::kSubtract, 2, 5},
                                         {Operation::kAnd, 8, 5},
                                         {Operation::kOr, 14, 5},
                                         {Operation::kXor, 6, 5},
                                         {Operation::kIncrement, 13, 5},
                                         {Operation::kDecrement, 11, 5},
                                         {Operation::kNegate, 0xFFFFFFF4, 5},
                                         {Operation::kNot, 0xFFFFFFF3, 5},
                                         {Operation::kExchange, 10, 12},
                                         {Operation::kExchangeAdd, 22, 12}}) {
    Program program;
    program.memory = {12};
    program.threads.resize(1);
    program.threads[0].registers[1] = 5;
    program.threads[0].instructions = {
        Instruction::locked(row.operation, kX, immediate(10), 1).with_width(4)};
    const Machine tso(program);
    State state = tso.initial();
    tso.apply(state, Step::execute(0));
    CHECK(tso.memory(state, kX) == row.memory);
    CHECK(state.threads[0].registers[1] == row.reg);
    CHECK(state.threads[0].events[0].read == 12);
  }
  for (const Value accumulator : {12, 13}) {
    Program program;
    program.memory = {12};
    program.threads.resize(1);
    program.threads[0].registers[kAccumulator] = accumulator;
    program.threads[0].instructions = {
        Instruction::locked(Operation::kCompareExchange, kX, immediate(7))};
    const Machine tso(program);
    State state = tso.initial();
    const Undo undo = tso.apply(state, Step::execute(0));
    const bool equal = accumulator == 12;
    CHECK(tso.memory(state, kX) == (equal ? 7 : 12));
    CHECK(state.threads[0].registers[kAccumulator] == 12);
    CHECK(state.threads[0].events[0].writes == equal);
    CHECK(holds(Condition::kEqual, state.threads[0].flags) == equal);
    CHECK(state.coherence[kX].size() == (equal ? 1 : 0));
    tso.undo(state, undo);
    CHECK(state.threads[0].registers[kAccumulator] == accumulator);
  }
}

TEST_CASE("arithmetic agrees with the processor's own") {
  std::mt19937_64 random(20090817);
  for (int round = 0; round < 20000; ++round) {
    const uint32_t left = static_cast<uint32_t>(random()) >> (random() % 32);
    const uint32_t right = static_cast<uint32_t>(random()) >> (random() % 32);
    INFO(left, " ", right);
    const Computed compared = compute(Operation::kCompare, left, right, 4, 0);
    const auto is = [&](Condition condition) { return holds(condition, compared.flags); };
    const auto signed_left = static_cast<int32_t>(left);
    const auto signed_right = static_cast<int32_t>(right);
    int32_t difference = 0;
    const bool overflow = __builtin_sub_overflow(signed_left, signed_right, &difference);
    CHECK(is(Condition::kEqual) == (left == right));
    CHECK(is(Condition::kNotEqual) == (left != right));
    CHECK(is(Condition::kBelow) == (left < right));
    CHECK(is(Condition::kAboveOrEqual) == (left >= right));
    CHECK(is(Condition::kBelowOrEqual) == (left <= right));
    CHECK(is(Condition::kAbove) == (left > right));
    CHECK(is(Condition::kLess) == (signed_left < signed_right));
    CHECK(is(Condition::kGreaterOrEqual) == (signed_left >= signed_right));
    CHECK(is(Condition::kLessOrEqual) == (signed_left <= signed_right));
    CHECK(is(Condition::kGreater) == (signed_left > signed_right));
    CHECK(is(Condition::kOverflow) == overflow);
    CHECK(is(Condition::kNotOverflow) == !overflow);
    CHECK(is(Condition::kSign) == (difference < 0));
    CHECK(is(Condition::kNotSign) == (difference >= 0));

    const Computed sum = compute(Operation::kAdd, left, right, 4, 0);
    uint32_t expected = 0;
    CHECK(holds(Condition::kBelow, sum.flags) == __builtin_add_overflow(left, right, &expected));
    CHECK(sum.value == expected);
    CHECK(holds(Condition::kOverflow, sum.flags) ==
          __builtin_add_overflow(signed_left, signed_right, &difference));
    CHECK(compute(Operation::kAnd, left, right, 4, 15).value == (left & right));
    CHECK(holds(Condition::kBelow, compute(Operation::kTest, left, right, 4, 15).flags) == false);
    CHECK(compute(Operation::kIncrement, left, 0, 4, kCarryFlag).value == left + 1);
    CHECK(holds(Condition::kBelow, compute(Operation::kDecrement, left, 0, 4, kCarryFlag).flags));
    CHECK(compute(Operation::kNot, left, 0, 4, 5).flags == 5);
  }
  CHECK(merge_register(0x1122334455667788, 0xAABBCCDDEEFF0011, 1) == 0x1122334455667711);
  CHECK(merge_register(0x1122334455667788, 0xAABBCCDDEEFF0011, 2) == 0x1122334455660011);
  CHECK(merge_register(0x1122334455667788, 0xAABBCCDDEEFF0011, 4) == 0xEEFF0011);
  CHECK(merge_register(0x1122334455667788, 0xAABBCCDDEEFF0011, 8) == 0xAABBCCDDEEFF0011);
}

TEST_CASE("random walks can be taken back, and keep the machine's invariants") {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    INFO("seed ", seed);
    std::mt19937_64 random(seed);
    const Program program = testing::random_program(
        random, {.threads = 3, .instructions = 5, .locations = 2, .branches = true});
    REQUIRE(program.check() == "");
    const Rules rules{seed % 3 == 0 ? Model::kSc : Model::kTso, seed % 2 == 0 ? 2U : 100U};
    const Machine machine(program, rules);
    State state = machine.initial();
    std::vector<std::string> dumps;
    std::vector<Undo> undos;
    std::vector<Value> memory = program.memory;  // a second account of it
    std::vector<Step> steps;
    for (machine.enabled_steps(state, steps); !steps.empty(); machine.enabled_steps(state, steps)) {
      dumps.push_back(dump(state));
      const Step step = steps[random() % steps.size()];
      const ThreadState& thread = state.threads[step.thread];
      const size_t events = thread.events.size();
      if (step.kind == Step::Kind::kCommit) {
        const MemoryEvent& oldest = thread.events[thread.stores[thread.committed]];
        memory[oldest.location] = oldest.written;
      }
      undos.push_back(machine.apply(state, step));
      CHECK(thread.stores.size() - thread.committed <= rules.store_buffer);
      if (thread.events.size() > events) {
        const MemoryEvent& event = thread.events.back();
        if (event.writes && (event.kind == MemoryEventKind::kLocked || rules.model == Model::kSc)) {
          memory[event.location] = event.written;
        }
        if (event.kind == MemoryEventKind::kLoad) {
          const Value source =
              event.source.is_initial()
                  ? program.memory[event.location]
                  : state.threads[event.source.thread].events[event.source.event].written;
          CHECK(event.read == source);
          CHECK(!(event.forwarded && event.source.thread != step.thread));
          if (!event.forwarded) {
            CHECK(event.read == memory[event.location]);
          }
        }
      }
      for (Location location = 0; location < memory.size(); ++location) {
        CHECK(machine.memory(state, location) == memory[location]);
      }
    }
    CHECK(machine.is_final(state));
    while (!undos.empty()) {
      machine.undo(state, undos.back());
      CHECK(dump(state) == dumps.back());
      undos.pop_back();
      dumps.pop_back();
    }
  }
}

TEST_CASE("programs are checked before they run") {
  const auto problem = [](const Instruction& instruction) {
    Program program;
    program.memory = {0};
    program.threads.resize(1);
    program.threads[0].instructions = {instruction};
    return program.check();
  };
  CHECK(problem(Instruction::load(0, 0)) == "");
  CHECK(problem(Instruction::load(0, 1)) ==
        "thread 0, instruction 0: expected a location below 1, found 1");
  CHECK(problem(Instruction::load(17, 0)) ==
        "thread 0, instruction 0: expected a register below 17");
  CHECK(problem(Instruction::store(0, from_register(17))) ==
        "thread 0, instruction 0: expected a register below 17");
  CHECK(problem(Instruction::jump(1)) == "");
  CHECK(problem(Instruction::jump(2)) ==
        "thread 0, instruction 0: expected a jump target of at most 1, found 2");
  CHECK(problem(Instruction::load(0, 0).with_width(3)) ==
        "thread 0, instruction 0: expected a width of 1, 2, 4 or 8 bytes, found 3");
  CHECK(problem(Instruction::locked(Operation::kCompare, 0)) ==
        "thread 0, instruction 0: the operation does not go with the opcode");
  CHECK(problem(Instruction::arithmetic(Operation::kExchange, 0)) ==
        "thread 0, instruction 0: the operation does not go with the opcode");
}
