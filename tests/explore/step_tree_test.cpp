// The tree of interleavings, and every state once, against the abstract machine and against the
// tree without merging.
#include "offline/explore/step_tree.h"

#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "offline/explore/execution_graph.h"
#include "offline/explore/state_search.h"
#include "tests/explore/machine_program.h"
#include "tests/explore/random_program.h"
#include "tests/rounds.h"
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

// Until no more words turn out to be contended: `steps`.
uint64_t all_leaves(const machine::Program& program, Model model, Judged judged, bool merge,
                    uint64_t* visited, std::set<uint64_t>* steps = nullptr) {
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
      if (steps != nullptr) {
        *steps = tree.contended();
      }
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

// What others can see of an execution: by whom, a commit or not, the how manyth event of its thread.
using Seen = std::vector<std::tuple<uint16_t, bool, size_t>>;

// All of them, from the machine itself: every step of every thread in every order.
class AllSeen {
 public:
  AllSeen(const machine::Machine& machine, const std::set<uint64_t>& contended)
      : machine_(machine), contended_(contended) {}

  const std::set<Seen>& after(const machine::State& state) {
    const auto [known, is_new] = known_.try_emplace(key_of(state));
    std::set<Seen>& all = known->second;
    if (!is_new) {
      return all;
    }
    if (machine_.is_final(state)) {
      all.insert(Seen());
      final_.insert(all_of(machine_, state));
    }
    std::vector<machine::Step> steps;
    machine_.enabled_steps(state, steps);
    for (const machine::Step& step : steps) {
      machine::State next = state;
      machine_.apply(next, step);
      const std::optional<size_t> seen = seen_of(step, state, next);
      for (Seen rest : after(next)) {
        if (seen) {
          rest.insert(rest.begin(),
                      {step.thread, step.kind == machine::Step::Kind::kCommit, *seen});
        }
        all.insert(std::move(rest));
      }
    }
    return all;
  }
  const std::set<FinalState>& final_states() const { return final_; }

 private:
  bool is_contended(uint16_t thread, machine::Location location, bool load) const {
    return contended_.count(
               explore::contended_access(0x1000 + 16 * uint64_t{location}, thread, load)) != 0;
  }

  // Which event of its thread others see with this step; nothing: none.
  std::optional<size_t> seen_of(const machine::Step& step, const machine::State& before,
                                const machine::State& after) const {
    const machine::ThreadState& then = before.threads[step.thread];
    const std::vector<machine::MemoryEvent>& events = after.threads[step.thread].events;
    size_t event = then.stores.size() > then.committed ? then.stores[then.committed] : 0;
    if (step.kind == machine::Step::Kind::kExecute) {
      event = events.size() - 1;
      const bool made = events.size() > then.events.size();
      if (!made || events[event].kind == machine::MemoryEventKind::kStore ||
          events[event].kind == machine::MemoryEventKind::kFence || events[event].forwarded) {
        return std::nullopt;
      }
    }
    const bool load = events[event].kind == machine::MemoryEventKind::kLoad;
    return is_contended(step.thread, events[event].location, load) ? std::optional(event)
                                                                   : std::nullopt;
  }

  std::string key_of(const machine::State& state) const {
    std::string key;
    const auto add = [&](uint64_t word) { key += std::to_string(word) + ' '; };
    for (const machine::ThreadState& thread : state.threads) {
      add(thread.next);
      add(thread.flags);
      add(thread.events.size());
      for (const machine::Value value : thread.registers) {
        add(value);
      }
      for (size_t i = thread.committed; i < thread.stores.size(); ++i) {
        add(thread.events[thread.stores[i]].location);
        add(thread.events[thread.stores[i]].written);
      }
      key += '\n';
    }
    for (machine::Location location = 0; location < machine_.program().memory.size(); ++location) {
      add(machine_.memory(state, location));
    }
    return key;
  }

  const machine::Machine& machine_;
  const std::set<uint64_t>& contended_;
  std::map<std::string, std::set<Seen>> known_;
  std::set<FinalState> final_;
};

// The interleavings of the tree, as often as they are, are the sequences of what others can see.
uint64_t compare_with_machine(const machine::Program& program) {
  uint64_t visited = 0;
  std::set<uint64_t> contended;
  const uint64_t leaves =
      all_leaves(program, Model::kTso, Judged::kEnd, false, &visited, &contended);
  const machine::Machine machine(program, {.model = machine::Model::kTso});
  AllSeen expected(machine, contended);
  CHECK(leaves == expected.after(machine.initial()).size());
  CHECK(all_leaves(program, Model::kTso, Judged::kGraph, true, &visited) == leaves);
  MachineProgram explored(program, Model::kTso);
  StateSearch search(explored, Model::kTso, Judged::kEnd);
  std::set<FinalState> met;
  while (const Run* run = search.next()) {
    explore::Request again;
    for (const explore::Step& step : run->steps) {
      again.prefix.push_back(step.choice);
    }
    explored.run(again);
    met.insert(all_of(machine, explored.state()));
  }
  CHECK(met == expected.final_states());
  return leaves;
}

TEST_CASE("A load that is forwarded is no step: each sequence of what others can see comes once") {
  using machine::Instruction;
  const auto store = [](machine::Location location) {
    return Instruction::store(location, machine::immediate(1));
  };
  machine::Program forwarding;
  forwarding.memory = {0, 0};
  forwarding.threads.resize(2);
  forwarding.threads[0].instructions = {store(0), Instruction::load(1, 1), Instruction::load(2, 0),
                                        Instruction::load(3, 1)};
  forwarding.threads[1].instructions = {store(0), Instruction::load(1, 0), store(1)};
  CHECK(compare_with_machine(forwarding) == 160);  // 280, if these loads were steps
  std::mt19937_64 random(33);
  const int count = rounds(50, 1200);
  uint64_t leaves = 0;
  for (int i = 0; i < count; ++i) {
    CAPTURE(i);
    const uint32_t threads = 2 + static_cast<uint32_t>(random() % 4 == 0);
    leaves += compare_with_machine(random_program(random, threads, threads == 2 ? 5 : 2, 3));
  }
  MESSAGE(leaves << " interleavings of " << count << " programs");
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
