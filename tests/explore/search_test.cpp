#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include <doctest/doctest.h>

#include "decoders/litmus/parser.h"
#include "offline/explore/execution_graph.h"
#include "offline/explore/graph_search.h"
#include "offline/explore/naive_search.h"
#include "tests/explore/machine_program.h"
#include "tests/explore/random_program.h"
#include "tests/rounds.h"
#include "tso/machine/explore.h"

namespace {

using namespace tsomon;
using explore::GraphBuilder;
using explore::GraphSearch;
using explore::MachineProgram;
using explore::Model;
using explore::NaiveSearch;
using explore::random_program;

using State = std::vector<machine::Value>;

// All that a final state has.
State everything(const machine::Machine& machine, const machine::State& state) {
  State values;
  for (const machine::ThreadState& thread : state.threads) {
    values.insert(values.end(), thread.registers.begin(), thread.registers.end());
  }
  for (machine::Location location = 0; location < machine.program().memory.size(); ++location) {
    values.push_back(machine.memory(state, location));
  }
  return values;
}

struct Found {
  std::set<State> states;
  std::map<std::string, int> classes;
  uint64_t other_ends = 0;
  bool ok = true;
};

machine::Model of(Model model) {
  return model == Model::kSc ? machine::Model::kSc : machine::Model::kTso;
}

Found by_graphs(const machine::Program& program, Model model) {
  const machine::Machine machine(program, {.model = of(model)});
  MachineProgram explored(program, model);
  GraphBuilder builder;
  GraphSearch search(explored, builder, model);
  Found found;
  while (!search.done()) {
    const GraphSearch::Result result = search.next();
    if (result.run == nullptr || result.run->end == explore::End::kDiverged) {
      found.ok = false;
      return found;
    }
    if (result.run->end != explore::End::kFinished) {
      ++found.other_ends;
      continue;
    }
    ++found.classes[explore::class_name(*result.graph)];
    found.states.insert(everything(machine, explored.state()));
    // The graph is what the run was.
    found.ok = found.ok && explore::class_name(builder.of_run(*result.run, model, false)) ==
                               explore::class_name(*result.graph);
  }
  return found;
}

Found by_sequences(const machine::Program& program, Model model) {
  const machine::Machine machine(program, {.model = of(model)});
  MachineProgram explored(program, model);
  GraphBuilder builder;
  NaiveSearch search(explored, model);
  Found found;
  while (!search.done()) {
    const explore::Run& run = search.next();
    if (run.end != explore::End::kFinished) {
      ++found.other_ends;
      continue;
    }
    ++found.classes[explore::class_name(builder.of_run(run, model, false))];
    found.states.insert(everything(machine, explored.state()));
  }
  return found;
}

machine::Outcomes by_machine(const machine::Program& program, Model model) {
  const machine::Machine machine(program, {.model = of(model)});
  return machine::outcomes(machine, {},
                           [&](const machine::State& state) { return everything(machine, state); });
}

int redundant(const Found& found) {
  int count = 0;
  for (const auto& [name, times] : found.classes) {
    count += times - 1;
  }
  return count;
}

}  // namespace

TEST_CASE("Graphs: classes and final states of random programs are the machine's, each once") {
  std::mt19937_64 random(28);
  for (int i = 0; i < 3000; ++i) {
    const uint32_t threads = 2 + static_cast<uint32_t>(random() % 2);
    const machine::Program program = random_program(random, threads, threads == 2 ? 5 : 3);
    REQUIRE(program.check().empty());
    for (const Model model : {Model::kSc, Model::kTso}) {
      CAPTURE(i);
      CAPTURE(static_cast<int>(model));
      const machine::Outcomes expected = by_machine(program, model);
      REQUIRE(expected.exploration.complete());
      const Found found = by_graphs(program, model);
      REQUIRE(found.ok);
      REQUIRE(found.other_ends == 0);
      REQUIRE(redundant(found) == 0);
      REQUIRE(found.classes.size() == expected.classes.size());
      REQUIRE(found.states == expected.final_states);
    }
  }
}

// One operation a thread, of the kind that the digits of `client` to the base of 5 say.
machine::Program one_operation_each(uint32_t threads, uint32_t client) {
  using machine::Instruction;
  using machine::Operation;
  machine::Program program;
  program.memory.assign(1, 0);
  for (uint32_t t = 0; t < threads; ++t, client /= 5) {
    const machine::Operand value = machine::immediate(10 * (t + 1));
    machine::Thread thread;
    switch (client % 5) {
      case 0:
        thread.instructions.push_back(Instruction::store(0, value));
        break;
      case 1:
        thread.instructions.push_back(Instruction::load(1, 0));
        break;
      case 2:
        thread.instructions.push_back(
            Instruction::locked(Operation::kExchangeAdd, 0, machine::immediate(1), 1));
        break;
      case 3:
        thread.instructions.push_back(Instruction::locked(Operation::kExchange, 0, value, 1));
        break;
      default:
        thread.instructions.push_back(Instruction::locked(Operation::kCompareExchange, 0, value));
        break;
    }
    program.threads.push_back(thread);
  }
  return program;
}

void require_all_once(const machine::Program& program, Model model) {
  const machine::Outcomes expected = by_machine(program, model);
  REQUIRE(expected.exploration.complete());
  const Found found = by_graphs(program, model);
  REQUIRE(found.ok);
  REQUIRE(found.other_ends == 0);
  REQUIRE(redundant(found) == 0);
  REQUIRE(found.classes.size() == expected.classes.size());
  REQUIRE(found.states == expected.final_states);
}

TEST_CASE("Graphs: every client of up to five threads with one operation each, each class once") {
  for (uint32_t threads = 2, clients = 25; threads <= 5; ++threads, clients *= 5) {
    for (uint32_t client = 0; client < clients; ++client) {
      CAPTURE(threads);
      CAPTURE(client);
      const machine::Program program = one_operation_each(threads, client);
      require_all_once(program, Model::kTso);
      if (threads < 5) {
        require_all_once(program, Model::kSc);
      }
    }
  }
}

TEST_CASE("Graphs: random programs of four and five threads, each class once") {
  std::mt19937_64 random(38);
  const int count = rounds(100, 3'000);
  for (int i = 0; i < count; ++i) {
    const bool four = random() % 4 != 0;
    const machine::Program program = random_program(random, four ? 4 : 5, four ? 2 : 1, 2);
    CAPTURE(i);
    require_all_once(program, i % 2 == 0 ? Model::kSc : Model::kTso);
  }
}

TEST_CASE("Sequences: classes and final states of random programs are the machine's") {
  std::mt19937_64 random(29);
  for (int i = 0; i < 150; ++i) {
    const machine::Program program = random_program(random, 2, 3);
    for (const Model model : {Model::kSc, Model::kTso}) {
      CAPTURE(i);
      const machine::Outcomes expected = by_machine(program, model);
      const Found found = by_sequences(program, model);
      REQUIRE(found.classes.size() == expected.classes.size());
      REQUIRE(found.states == expected.final_states);
    }
  }
}

TEST_CASE("Litmus tests: classes and final states are the machine's, each class once") {
  int tests = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(TSOMON_TEST_DATA "/litmus")) {
    if (entry.path().extension() != ".litmus") {
      continue;
    }
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    const auto test = litmus::parse_litmus(text.str(), entry.path().string());
    if (!test) {
      continue;
    }
    ++tests;
    for (const Model model : {Model::kSc, Model::kTso}) {
      CAPTURE(entry.path().string());
      const machine::Outcomes expected = by_machine(test->program, model);
      if (!expected.exploration.complete()) {
        continue;
      }
      const Found found = by_graphs(test->program, model);
      CHECK(found.ok);
      CHECK(redundant(found) == 0);
      CHECK(found.classes.size() == expected.classes.size());
      CHECK(found.states == expected.final_states);
    }
  }
  CHECK(tests > 20);
}
