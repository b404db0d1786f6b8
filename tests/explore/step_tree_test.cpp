// The tree of interleavings, and every state once, against the abstract machine and against the
// tree without merging.
#include "offline/explore/step_tree.h"

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "offline/explore/execution_graph.h"
#include "offline/explore/state_search.h"
#include "tests/explore/machine_program.h"
#include "tests/explore/random_program.h"
#include "tso/machine/explore.h"

namespace {

using namespace tsomon;
using explore::Judged;
using explore::MachineProgram;
using explore::Model;
using explore::random_program;
using explore::Run;
using explore::StateSearch;
using explore::StepTree;

using FinalState = std::vector<machine::Value>;

FinalState all_of(const machine::Machine& machine, const machine::State& state) {
  FinalState values;
  for (const machine::ThreadState& thread : state.threads) {
    values.insert(values.end(), thread.registers.begin(), thread.registers.end());
  }
  for (machine::Location location = 0; location < machine.program().memory.size(); ++location) {
    values.push_back(machine.memory(state, location));
  }
  return values;
}

machine::Model machine_model(Model model) {
  return model == Model::kSc ? machine::Model::kSc : machine::Model::kTso;
}

// The leaves below the node, each as often as it comes.
uint64_t leaves_of(StepTree& tree, std::map<std::string, uint64_t>* known, uint64_t* visited) {
  if (known != nullptr) {
    if (const auto before = known->find(tree.key()); before != known->end()) {
      return before->second;
    }
  }
  ++*visited;
  const std::string key = tree.key();
  const size_t choices = tree.choices().size();
  uint64_t leaves = choices == 0 ? 1 : 0;
  for (size_t i = 0; i < choices; ++i) {
    tree.take(i);
    leaves += leaves_of(tree, known, visited);
    tree.back();
  }
  if (known != nullptr) {
    (*known)[key] = leaves;
  }
  return leaves;
}

// Until no more words turn out to be contended.
uint64_t all_leaves(const machine::Program& program, Model model, Judged judged, bool merge,
                    uint64_t* visited) {
  std::set<uint64_t> contended;
  for (;;) {
    MachineProgram explored(program, model);
    StepTree tree(explored, model, judged, contended);
    tree.begin();
    std::map<std::string, uint64_t> known;
    *visited = 0;
    const uint64_t leaves = leaves_of(tree, merge ? &known : nullptr, visited);
    REQUIRE(!tree.ended());
    if (!tree.changed()) {
      return leaves;
    }
    contended = tree.contended();
  }
}

TEST_CASE("Merging nodes of one state leaves the number of interleavings as it is") {
  std::mt19937_64 random(31);
  uint64_t merged = 0;
  for (int i = 0; i < 200; ++i) {
    const machine::Program program = random_program(random, 2, 4);
    for (const Model model : {Model::kSc, Model::kTso}) {
      for (const Judged judged : {Judged::kEnd, Judged::kGraph}) {
        CAPTURE(i);
        uint64_t visited = 0;
        uint64_t fewer = 0;
        const uint64_t leaves = all_leaves(program, model, judged, false, &visited);
        CHECK(all_leaves(program, model, judged, true, &fewer) == leaves);
        merged += visited - fewer;
      }
    }
  }
  CHECK(merged > 1000);
}

TEST_CASE("States: every final state and class of random programs is met") {
  std::mt19937_64 random(32);
  for (int i = 0; i < 300; ++i) {
    const uint32_t threads = 2 + static_cast<uint32_t>(random() % 2);
    const machine::Program program = random_program(random, threads, threads == 2 ? 4 : 3);
    for (const Model model : {Model::kSc, Model::kTso}) {
      CAPTURE(i);
      const machine::Machine machine(program, {.model = machine_model(model)});
      const machine::Outcomes expected = machine::outcomes(
          machine, {}, [&](const machine::State& state) { return all_of(machine, state); });
      for (const Judged judged : {Judged::kEnd, Judged::kGraph}) {
        MachineProgram explored(program, model);
        explore::GraphBuilder builder;
        StateSearch search(explored, model, judged);
        std::set<FinalState> states;
        std::set<std::string> classes;
        while (const Run* run = search.next()) {
          REQUIRE(run->end == explore::End::kFinished);
          explore::Request again;
          again.model = model;
          for (const explore::Step& step : run->steps) {
            again.prefix.push_back(step.choice);
          }
          classes.insert(explore::class_name(builder.of_run(*run, model, false)));
          explored.run(again);
          states.insert(all_of(machine, explored.state()));
        }
        CHECK(search.done());
        CHECK(states == expected.final_states);
        if (judged == Judged::kGraph) {
          CHECK(classes.size() == expected.classes.size());
        }
      }
    }
  }
}

}  // namespace
