// Exploration of the abstract machine against two twins: the enumeration of all sequences of steps,
// and the axioms of x86-TSO tried on every conceivable reads-from and coherence.
#include "tso/machine/explore.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/tso/random_program.h"

using namespace tsomon::machine;

namespace {

constexpr Location kX = 0;
constexpr Location kY = 1;
constexpr Location kZ = 2;

using Code = std::vector<Instruction>;

Instruction store(Location location, Value value) {
  return Instruction::store(location, immediate(value));
}
Instruction load(Register target, Location location) { return Instruction::load(target, location); }
Instruction exchange(Location location, Value value, Register target) {
  return Instruction::locked(Operation::kExchange, location, immediate(value), target);
}

Program program_of(const std::vector<Code>& threads) {
  Program program;
  program.memory = {0, 0, 0};
  for (const Code& code : threads) {
    program.threads.push_back({code, {}});
  }
  return program;
}

// Registers 0 and 1 of all threads, then memory.
std::set<std::vector<Value>> results(const Program& program, Model model) {
  const Machine machine(program, {.model = model});
  const Outcomes found = outcomes(machine, {}, [&](const State& state) {
    std::vector<Value> values;
    for (const ThreadState& thread : state.threads) {
      values.push_back(thread.registers[0]);
      values.push_back(thread.registers[1]);
    }
    for (Location location = 0; location < program.memory.size(); ++location) {
      values.push_back(machine.memory(state, location));
    }
    return values;
  });
  CHECK(found.exploration.complete());
  CHECK(found.exploration.executions == found.classes.size());
  return found.final_states;
}

// Whether some final state has these values at these places.
bool reaches(const Program& program, Model model,
             const std::vector<std::pair<size_t, Value>>& wanted) {
  const auto found = results(program, model);
  return std::any_of(found.begin(), found.end(), [&](const auto& values) {
    return std::all_of(wanted.begin(), wanted.end(),
                       [&](const auto& want) { return values[want.first] == want.second; });
  });
}

std::set<std::string> classes(const Program& program, Rules rules) {
  const Machine machine(program, rules);
  const Outcomes found = outcomes(machine, {}, [](const State&) { return std::vector<Value>(); });
  CHECK(found.exploration.complete());
  CHECK(found.exploration.executions == found.classes.size());
  return found.classes;
}

bool robust(const Program& program) {
  return classes(program, {.model = Model::kSc}) == classes(program, {.model = Model::kTso});
}

// The axiomatic twin, for straight-line programs: events with every reads-from and coherence that
// one can write down, kept when the model's axioms hold.
class Axioms {
 public:
  Axioms(const Program& program, Model model) : model_(model) {
    const Machine machine(program);
    state_ = machine.initial();
    for (uint16_t thread = 0; thread < machine.threads(); ++thread) {
      for (const Instruction& instruction : program.threads[thread].instructions) {
        MemoryEvent event;
        event.location = instruction.location;
        switch (instruction.opcode) {
          case Opcode::kLoad:
            event.kind = MemoryEventKind::kLoad;
            break;
          case Opcode::kStore:
            event.kind = MemoryEventKind::kStore;
            event.writes = true;
            break;
          case Opcode::kLocked:
            event.kind = MemoryEventKind::kLocked;
            event.writes = true;
            break;
          case Opcode::kFence:
            event.kind = MemoryEventKind::kFence;
            break;
          default:
            continue;
        }
        auto& events = state_.threads[thread].events;
        nodes_.push_back({thread, static_cast<uint16_t>(events.size())});
        events.push_back(event);
      }
    }
  }

  std::set<std::string> classes() {
    choose_coherence(0);
    return std::move(classes_);
  }

 private:
  const MemoryEvent& event(WriteId id) const { return state_.threads[id.thread].events[id.event]; }
  MemoryEvent& event(WriteId id) { return state_.threads[id.thread].events[id.event]; }
  static bool reads(const MemoryEvent& event) {
    return event.kind == MemoryEventKind::kLoad || event.kind == MemoryEventKind::kLocked;
  }

  void choose_coherence(Location location) {
    if (location == state_.coherence.size()) {
      choose_source(0);
      return;
    }
    std::vector<size_t> writes;
    for (size_t node = 0; node < nodes_.size(); ++node) {
      if (event(nodes_[node]).writes && event(nodes_[node]).location == location) {
        writes.push_back(node);
      }
    }
    do {
      state_.coherence[location].clear();
      for (const size_t node : writes) {
        state_.coherence[location].push_back(nodes_[node]);
      }
      choose_coherence(location + 1);
    } while (std::next_permutation(writes.begin(), writes.end()));
  }

  void choose_source(size_t node) {
    if (node == nodes_.size()) {
      if (consistent()) {
        classes_.insert(execution_class(state_));
      }
      return;
    }
    MemoryEvent& read = event(nodes_[node]);
    if (!reads(read)) {
      choose_source(node + 1);
      return;
    }
    read.source = {};
    choose_source(node + 1);
    for (const WriteId write : state_.coherence[read.location]) {
      read.source = write;
      choose_source(node + 1);
    }
  }

  // -1 for the initial value.
  int position(Location location, WriteId write) const {
    const auto& writes = state_.coherence[location];
    return write.is_initial()
               ? -1
               : static_cast<int>(std::find(writes.begin(), writes.end(), write) - writes.begin());
  }

  bool communicates(WriteId from, WriteId to) const {  // reads-from, coherence, from-reads
    const MemoryEvent& e = event(from);
    const MemoryEvent& f = event(to);
    if (e.kind == MemoryEventKind::kFence || f.kind == MemoryEventKind::kFence ||
        e.location != f.location || from == to) {
      return false;
    }
    const Location location = e.location;
    if (e.writes && reads(f) && f.source == from) {
      return true;
    }
    if (e.writes && f.writes && position(location, from) < position(location, to)) {
      return true;
    }
    return reads(e) && f.writes && position(location, e.source) < position(location, to);
  }

  template <typename Edge>
  bool acyclic(const Edge& edge) const {
    const size_t n = nodes_.size();
    std::vector<std::vector<char>> reach(n, std::vector<char>(n));
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        reach[i][j] = edge(nodes_[i], nodes_[j]) ? 1 : 0;
      }
    }
    for (size_t k = 0; k < n; ++k) {
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < n; ++j) {
          reach[i][j] |= reach[i][k] & reach[k][j];
        }
      }
    }
    for (size_t i = 0; i < n; ++i) {
      if (reach[i][i] != 0) {
        return false;
      }
    }
    return true;
  }

  bool consistent() const {
    const auto program_order = [](WriteId from, WriteId to) {
      return from.thread == to.thread && from.event < to.event;
    };
    for (const WriteId node : nodes_) {  // a locked operation reads what it overwrites
      const MemoryEvent& locked = event(node);
      if (locked.kind == MemoryEventKind::kLocked &&
          position(locked.location, locked.source) + 1 != position(locked.location, node)) {
        return false;
      }
      if (reads(locked) && locked.source == node) {
        return false;
      }
    }
    if (model_ == Model::kSc) {
      return acyclic([&](WriteId from, WriteId to) {
        return program_order(from, to) || communicates(from, to);
      });
    }
    const auto is_fence = [&](WriteId id) { return event(id).kind == MemoryEventKind::kFence; };
    const bool per_location = acyclic([&](WriteId from, WriteId to) {
      return communicates(from, to) ||
             (program_order(from, to) && !is_fence(from) && !is_fence(to) &&
              event(from).location == event(to).location);
    });
    return per_location && acyclic([&](WriteId from, WriteId to) {
             const bool relaxed = event(from).kind == MemoryEventKind::kStore &&
                                  event(to).kind == MemoryEventKind::kLoad;
             const bool internal_source = from.thread == to.thread && relaxed;
             return (program_order(from, to) && !relaxed) ||
                    (communicates(from, to) && !internal_source);
           });
  }

  Model model_;
  State state_;
  std::vector<WriteId> nodes_;
  std::set<std::string> classes_;
};

}  // namespace

TEST_CASE("the classic outcomes") {
  const Program sb = program_of({{store(kX, 1), load(0, kY)}, {store(kY, 1), load(0, kX)}});
  CHECK(!reaches(sb, Model::kSc, {{0, 0}, {2, 0}}));
  CHECK(reaches(sb, Model::kTso, {{0, 0}, {2, 0}}));
  CHECK(!robust(sb));
  CHECK(classes(sb, {}).size() == 4);

  const Program fenced = program_of({{store(kX, 1), Instruction::fence(), load(0, kY)},
                                     {store(kY, 1), Instruction::fence(), load(0, kX)}});
  CHECK(!reaches(fenced, Model::kTso, {{0, 0}, {2, 0}}));
  CHECK(robust(fenced));

  const Program locked =
      program_of({{exchange(kX, 1, 1), load(0, kY)}, {exchange(kY, 1, 1), load(0, kX)}});
  CHECK(!reaches(locked, Model::kTso, {{0, 0}, {2, 0}}));
  CHECK(robust(locked));

  // A buffered store is not overtaken by its own locked operation elsewhere.
  const Program drained = program_of({{store(kX, 1), exchange(kZ, 1, 1), load(0, kY)},
                                      {store(kY, 1), exchange(kZ, 2, 1), load(0, kX)}});
  CHECK(!reaches(drained, Model::kTso, {{0, 0}, {2, 0}}));

  const Program mp = program_of({{store(kX, 1), store(kY, 1)}, {load(0, kY), load(1, kX)}});
  CHECK(!reaches(mp, Model::kTso, {{2, 1}, {3, 0}}));
  CHECK(robust(mp));

  const Program lb = program_of({{load(0, kX), store(kY, 1)}, {load(0, kY), store(kX, 1)}});
  CHECK(!reaches(lb, Model::kTso, {{0, 1}, {2, 1}}));
  CHECK(robust(lb));

  const Program iriw = program_of(
      {{store(kX, 1)}, {store(kY, 1)}, {load(0, kX), load(1, kY)}, {load(0, kY), load(1, kX)}});
  CHECK(!reaches(iriw, Model::kTso, {{4, 1}, {5, 0}, {6, 1}, {7, 0}}));
  CHECK(classes(iriw, {}).size() == 15);
  CHECK(robust(iriw));
}

TEST_CASE("forwarding from the own buffer") {
  // n6 of Owens, Sarkar and Sewell: x=1 is read early, and yet overwrites x=2.
  const Program n6 =
      program_of({{store(kX, 1), load(0, kX), load(1, kY)}, {store(kY, 2), store(kX, 2)}});
  CHECK(!reaches(n6, Model::kSc, {{0, 1}, {1, 0}, {4, 1}}));
  CHECK(reaches(n6, Model::kTso, {{0, 1}, {1, 0}, {4, 1}}));

  const Program both = program_of(
      {{store(kX, 1), load(0, kX), load(1, kY)}, {store(kY, 1), load(0, kY), load(1, kX)}});
  CHECK(!reaches(both, Model::kSc, {{0, 1}, {1, 0}, {2, 1}, {3, 0}}));
  CHECK(reaches(both, Model::kTso, {{0, 1}, {1, 0}, {2, 1}, {3, 0}}));
  // Never older than the own store.
  CHECK(!reaches(both, Model::kTso, {{0, 0}}));
}

TEST_CASE("two locked increments are not lost, two unlocked ones may be") {
  const Code locked = {Instruction::locked(Operation::kIncrement, kX)};
  CHECK(results(program_of({locked, locked}), Model::kTso).size() == 1);
  CHECK(reaches(program_of({locked, locked}), Model::kTso, {{4, 2}}));
  const Code unlocked = {load(kScratch, kX),
                         Instruction::arithmetic(Operation::kIncrement, kScratch),
                         Instruction::store(kX, from_register(kScratch))};
  CHECK(reaches(program_of({unlocked, unlocked}), Model::kTso, {{4, 1}}));
  CHECK(reaches(program_of({unlocked, unlocked}), Model::kTso, {{4, 2}}));
}

TEST_CASE("branches depend on what was read") {
  const Code writer = {store(kX, 1), store(kY, 1)};
  const Code reader = {load(0, kY),
                       Instruction::arithmetic(Operation::kCompare, 0, immediate(1)),
                       Instruction::jump_if(Condition::kNotEqual, 5),
                       load(1, kX),
                       Instruction::jump(6),
                       Instruction::move(1, immediate(7))};
  const auto found = results(program_of({writer, reader}), Model::kTso);
  std::set<std::vector<Value>> registers;
  for (const auto& values : found) {
    registers.insert({values[2], values[3]});
  }
  CHECK(registers == std::set<std::vector<Value>>{{0, 7}, {1, 1}});
}

TEST_CASE("loops and large programs stop at their bounds and say so") {
  const Program forever = program_of({{Instruction::jump(0)}, {load(0, kX)}});
  const Machine loops(forever);
  Exploration found = explore(loops, {}, [](const State&) { FAIL("no end can be reached"); });
  CHECK(found.loop_limit_hit);
  CHECK(!found.state_limit_hit);
  CHECK(!found.complete());
  CHECK(found.executions == 0);

  // Waits for x; one class for every number of rounds up to the bound.
  const Program waits =
      program_of({{store(kX, 1)},
                  {load(0, kX), Instruction::arithmetic(Operation::kCompare, 0, immediate(0)),
                   Instruction::jump_if(Condition::kEqual, 0)}});
  const Machine waiting(waits);
  for (const uint32_t bound : {0U, 1U, 5U}) {
    found = explore(waiting, {.max_backward_jumps = bound},
                    [](const State& state) { CHECK(state.threads[1].registers[0] == 1); });
    CHECK(found.executions == bound + 1);
    CHECK(found.loop_limit_hit);
  }

  // A loop that counts ends by itself.
  const Program counts = program_of({{Instruction::arithmetic(Operation::kIncrement, 0),
                                      Instruction::arithmetic(Operation::kCompare, 0, immediate(4)),
                                      Instruction::jump_if(Condition::kNotEqual, 0)}});
  const Machine counting(counts);
  CHECK(explore(counting, {.max_backward_jumps = 3}, [](const State&) {}).complete());
  CHECK(!explore(counting, {.max_backward_jumps = 2}, [](const State&) {}).complete());

  const Program sb = program_of({{store(kX, 1), load(0, kY)}, {store(kY, 1), load(0, kX)}});
  const Machine machine(sb);
  const uint64_t states = explore(machine, {}, [](const State&) {}).states;
  CHECK(explore(machine, {.max_states = states}, [](const State&) {}).complete());
  CHECK(explore(machine, {.max_states = states - 1}, [](const State&) {}).state_limit_hit);

  int seen = 0;
  found =
      enumerate(machine, {}, [&](const std::vector<Step>&, const State&) { return ++seen < 3; });
  CHECK(found.stopped);
  CHECK(!found.complete());
  CHECK(seen == 3);
}

TEST_CASE("enumeration shows every sequence of steps once, commits included") {
  // Two independent threads of a store and its commit: 4!/(2! 2!) interleavings.
  const Program program = program_of({{store(kX, 1)}, {store(kY, 1)}});
  const Machine machine(program);
  std::set<std::vector<int>> sequences;
  const Exploration found =
      enumerate(machine, {}, [&](const std::vector<Step>& steps, const State& state) {
        CHECK(steps.size() == 4);
        State replayed = machine.initial();
        std::vector<int> sequence;
        for (const Step step : steps) {
          REQUIRE(machine.is_enabled(replayed, step));
          machine.apply(replayed, step);
          sequence.push_back(2 * step.thread + (step.kind == Step::Kind::kCommit ? 1 : 0));
        }
        CHECK(machine.is_final(replayed));
        CHECK(execution_class(replayed) == execution_class(state));
        CHECK(sequences.insert(sequence).second);
        return true;
      });
  CHECK(found.complete());
  CHECK(found.executions == 6);
}

TEST_CASE("exploration finds the classes of all sequences of steps") {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 800; ++seed) {
    INFO("seed ", seed);
    std::mt19937_64 random(seed);
    const Program program =
        testing::random_program(random, {.threads = 2 + static_cast<uint32_t>(seed % 5 == 0),
                                         .instructions = seed % 5 == 0 ? 2U : 3U,
                                         .locations = 2,
                                         .branches = seed % 2 == 0});
    for (const Rules rules :
         {Rules{Model::kSc, 100}, Rules{Model::kTso, 100}, Rules{Model::kTso, 1}}) {
      const Machine machine(program, rules);
      std::set<std::string> enumerated;
      const Exploration found = enumerate(machine, {.max_states = 50'000},
                                          [&](const std::vector<Step>&, const State& state) {
                                            enumerated.insert(execution_class(state));
                                            return true;
                                          });
      if (found.complete()) {
        CHECK(classes(program, rules) == enumerated);
        ++compared;
      }
    }
  }
  CHECK(compared > 2000);  // some have too many sequences
}

TEST_CASE("exploration finds the executions that satisfy the axioms of x86-TSO and of SC") {
  int relaxed = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    INFO("seed ", seed);
    std::mt19937_64 random(seed);
    const Program program =
        testing::random_program(random, {.threads = 2 + static_cast<uint32_t>(seed % 2),
                                         .instructions = seed % 2 == 0 ? 4U : 3U,
                                         .locations = 2});
    const auto tso = classes(program, {.model = Model::kTso});
    const auto sc = classes(program, {.model = Model::kSc});
    CHECK(tso == Axioms(program, Model::kTso).classes());
    CHECK(sc == Axioms(program, Model::kSc).classes());
    CHECK(std::includes(tso.begin(), tso.end(), sc.begin(), sc.end()));
    relaxed += tso.size() > sc.size() ? 1 : 0;
  }
  CHECK(relaxed > 100);  // the comparison is of something
}

TEST_CASE("a fence after every store makes every program robust") {
  int with_branches = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    INFO("seed ", seed);
    const bool branches = seed % 2 == 0;
    with_branches += branches ? 1 : 0;
    std::mt19937_64 random(seed);
    CHECK(robust(testing::random_program(random, {.threads = 3,
                                                  .instructions = 3,
                                                  .locations = 3,
                                                  .branches = branches,
                                                  .fence_after_store = true})));
  }
  CHECK(with_branches == 500);
}

TEST_CASE("a smaller store buffer has fewer executions, never others") {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    INFO("seed ", seed);
    std::mt19937_64 random(seed);
    const Program program = testing::random_program(
        random, {.threads = 2, .instructions = 5, .locations = 2, .branches = true});
    std::set<std::string> smaller = classes(program, {.model = Model::kSc});
    for (const uint32_t entries : {1U, 2U, 3U, 100U}) {
      const auto larger = classes(program, {.model = Model::kTso, .store_buffer = entries});
      CHECK(std::includes(larger.begin(), larger.end(), smaller.begin(), smaller.end()));
      smaller = larger;
    }
  }
}
