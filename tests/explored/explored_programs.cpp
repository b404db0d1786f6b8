// Real programs explored are what the abstract machine says: explored_programs CLIENT FIRST COUNT [FILE.litmus...]
//
// CLIENT is machine_client. It performs each litmus test, and the random programs FIRST, FIRST + 1, ... (COUNT of them, and
// fifty times as many in the full run, tests/rounds.h), under SC and TSO. The machine's final states and its number of classes
// must come out of `dpor` and of `naive`, `dpor` runs no class twice and nothing is blocked. One in ten is also explored by two
// jobs, one in twenty by forks. `naive` is bounded: where it was not complete, what it found must be there.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "decoders/litmus/parser.h"
#include "monitor/explore/explore.h"
#include "tests/explore/random_program.h"
#include "tests/explored/program_text.h"
#include "tso/machine/explore.h"

namespace {

using namespace tsomon;
using explore::Exploration;
using explore::ExploreOptions;
using explore::Model;
using explore::Strategy;

// Of sequences of steps, where there may be too many, and where there are seldom.
constexpr uint64_t kFewSequences = 1'000;
constexpr uint64_t kManySequences = 20'000;

struct Counts {
  uint64_t programs = 0;
  uint64_t classes = 0;
  uint64_t executions = 0;      // of naive
  uint64_t all_sequences = 0;   // explorations by naive that were complete
  uint64_t some_sequences = 0;  // that were not
  uint64_t by_jobs = 0;
  uint64_t forked = 0;
  uint64_t left_out = 0;  // programs that the machine or the client cannot run
};

bool everything() {
  const char* const share = std::getenv("TSOMON_ROUNDS");
  return share != nullptr && std::atoi(share) >= 100;
}

struct Tested {
  std::string name;
  machine::Program program;
  uint64_t number = 0;
  uint64_t sequences = 0;  // most of naive
};

ExploreOptions options(Model model, Strategy strategy, uint32_t jobs = 1, bool fork = false) {
  ExploreOptions asked;
  asked.model = model;
  asked.strategy = strategy;
  asked.jobs = jobs;
  asked.fork = fork;
  return asked;
}

// A locked operation that writes what was there already is a load to the exploration
// (offline/explore/operation.h): who reads from it reads from what it read.
bool is_silent(const machine::MemoryEvent& event) {
  return event.kind == machine::MemoryEventKind::kLocked && event.written == event.read;
}

// As machine::execution_class(), without silent writes.
std::string class_name(const machine::State& state) {
  std::string name;
  const auto event_of = [&](machine::WriteId write) -> const machine::MemoryEvent& {
    return state.threads[write.thread].events[write.event];
  };
  const auto put = [&](machine::WriteId write) {
    while (!write.is_initial() && is_silent(event_of(write))) {
      write = event_of(write).source;
    }
    name += fmt::format("{}.{} ", write.thread, write.event);
  };
  for (const machine::ThreadState& thread : state.threads) {
    for (const machine::MemoryEvent& event : thread.events) {
      if (event.kind == machine::MemoryEventKind::kLoad ||
          event.kind == machine::MemoryEventKind::kLocked) {
        put(event.source);
      }
    }
    name += "| ";
  }
  for (const std::vector<machine::WriteId>& writes : state.coherence) {
    for (const machine::WriteId& write : writes) {
      if (!is_silent(event_of(write))) {
        put(write);
      }
    }
    name += "; ";
  }
  return name;
}

class Comparison {
 public:
  explicit Comparison(std::string client) : client_(std::move(client)) {}

  // False: they differ, which was said.
  bool compare(const Tested& tested) {
    if (!can_be_performed(tested.program)) {
      ++counts_.left_out;
      return true;
    }
    for (const Model model : {Model::kSc, Model::kTso}) {
      if (!compare(tested, model)) {
        return false;
      }
    }
    ++counts_.programs;
    return true;
  }
  const Counts& counts() const { return counts_; }

 private:
  static bool can_be_performed(const machine::Program& program) {
    for (const machine::Thread& thread : program.threads) {
      for (const machine::Instruction& instruction : thread.instructions) {
        if (instruction.opcode == machine::Opcode::kLocked &&
            instruction.operation == machine::Operation::kNegate) {
          return false;  // no atomic operation of C++
        }
      }
    }
    return true;
  }

  bool compare(const Tested& tested, Model model) {
    const machine::Program& program = tested.program;
    const machine::Machine machine(
        program, {.model = model == Model::kSc ? machine::Model::kSc : machine::Model::kTso});
    const auto registers = explored::named_registers(program);
    std::set<std::string> ends;
    std::set<std::string> classes;
    const machine::Exploration all_states =
        machine::explore(machine, {}, [&](const machine::State& state) {
          std::string end;
          for (const auto& [thread, reg] : registers) {
            end += std::to_string(state.threads[thread].registers[reg]) + " ";
          }
          for (machine::Location location = 0; location < program.memory.size(); ++location) {
            end += std::to_string(machine.memory(state, location)) + " ";
          }
          ends.insert(end);
          classes.insert(class_name(state));
        });
    if (!all_states.complete()) {
      ++counts_.left_out;
      return true;
    }
    const char* const accesses = tested.number % 2 == 0 ? "atomic" : "plain";
    const std::vector<std::string> command = {client_, accesses, explored::program_text(program)};
    const auto wrong = [&](const ExploreOptions& asked, const std::string& what) {
      fmt::print("{} under {}, {}, {} jobs{}: {}\n  '{}' {} '{}'\n", tested.name,
                 model == Model::kSc ? "SC" : "TSO", explore::strategy_text(asked.strategy),
                 asked.jobs, asked.fork ? ", forked" : "", what, client_, accesses, command[2]);
      return false;
    };
    std::vector<ExploreOptions> all = {options(model, Strategy::kDpor),
                                       options(model, Strategy::kNaive)};
    if (tested.number % 10 == 0) {
      all.push_back(options(model, Strategy::kDpor, 2));
      all.push_back(options(model, Strategy::kNaive, 2));
    }
    if (tested.number % 20 == 0) {
      all.push_back(options(model, Strategy::kDpor, 1, true));
    }
    for (ExploreOptions& asked : all) {
      asked.command = command;
      asked.executions = asked.strategy == Strategy::kNaive ? tested.sequences : 0;
      const auto explored = explore::explore(asked);
      if (!explored) {
        return wrong(asked, explored.error().to_string());
      }
      const std::string difference = difference_of(*explored, asked, ends, classes.size());
      if (!difference.empty()) {
        return wrong(asked, difference);
      }
    }
    counts_.classes += classes.size();
    return true;
  }

  // Empty: there is none.
  std::string difference_of(const Exploration& explored, const ExploreOptions& asked,
                            const std::set<std::string>& ends, size_t classes) {
    std::string all;
    for (const std::string& note : explored.notes) {
      all += " (" + note + ")";
    }
    if (!explored.findings.empty()) {
      return "found: " + explored.findings.front().text + all;
    }
    if (explored.refused || explored.blocked != 0) {
      return fmt::format("{} blocked{}", explored.blocked, all);
    }
    for (const auto& [outcome, count] : explored.outcomes) {
      if (!ends.contains(outcome)) {
        return fmt::format("ends as no execution of the machine: {}{}", outcome, all);
      }
    }
    const bool bounded = asked.executions != 0 && explored.executions >= asked.executions;
    if (asked.strategy == Strategy::kNaive) {
      counts_.executions += explored.executions;
      ++(bounded ? counts_.some_sequences : counts_.all_sequences);
    } else if (explored.redundant != 0) {
      return fmt::format("{} redundant{}", explored.redundant, all);
    }
    counts_.by_jobs += asked.jobs > 1 ? 1 : 0;
    counts_.forked += asked.fork ? 1 : 0;
    if (explored.classes > classes || (!bounded && explored.classes != classes)) {
      return fmt::format("{} classes, the machine has {}{}", explored.classes, classes, all);
    }
    if (!bounded && !explored.complete()) {
      return "not complete" + all;
    }
    if (!bounded && explored.outcomes.size() != ends.size()) {
      return fmt::format("{} final states, the machine has {}{}", explored.outcomes.size(),
                         ends.size(), all);
    }
    return {};
  }

  std::string client_;
  Counts counts_;
};

// Each of two threads stores to a location of its own and loads the other's, with up to two instructions between: what a
// fence, or a locked operation, there makes of it.
machine::Program buffering_program(std::mt19937_64& random) {
  using machine::Instruction;
  machine::Program program;
  program.memory.assign(2, 0);
  for (machine::Location own = 0; own < 2; ++own) {
    machine::Thread thread;
    thread.instructions.push_back(Instruction::store(own, machine::immediate(own + 1)));
    for (uint64_t more = random() % 3; more > 0; --more) {
      const auto at = static_cast<machine::Location>(random() % 2);
      switch (random() % 4) {
        case 0:
          thread.instructions.push_back(Instruction::load(2, at));
          break;
        case 1:
          thread.instructions.push_back(
              Instruction::locked(machine::Operation::kExchangeAdd, at, machine::immediate(10), 2));
          break;
        default:
          thread.instructions.push_back(Instruction::fence());
      }
    }
    thread.instructions.push_back(Instruction::load(1, 1 - own));
    program.threads.push_back(thread);
  }
  return program;
}

// Most are so small that every sequence of steps can be run.
Tested random_test(uint64_t number) {
  std::mt19937_64 random(28'000 + number);
  const auto of = [&](uint32_t threads, uint32_t length, uint64_t sequences) {
    return Tested{fmt::format("program {}", number),
                  explore::random_program(random, threads, length), number, sequences};
  };
  switch (number % 20) {
    case 1:
    case 6:
    case 11:
    case 16:
      return {fmt::format("program {}", number), buffering_program(random), number, kManySequences};
    case 17:
      return of(2, 5, kFewSequences);
    case 18:
      return of(3, 3, kFewSequences);
    case 19:
      return of(3, 2, kFewSequences);
    default:
      return of(2, 3, kManySequences);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    return 2;
  }
  Comparison comparison(argv[1]);
  const uint64_t first = std::strtoull(argv[2], nullptr, 10);
  const uint64_t count = std::strtoull(argv[3], nullptr, 10) * (everything() ? 50 : 1);
  bool same = true;
  for (int i = 4; i < argc; ++i) {
    std::ifstream file(argv[i]);
    std::stringstream text;
    text << file.rdbuf();
    const auto test = litmus::parse_litmus(text.str(), argv[i]);
    if (!test) {
      fmt::print("{}\n", test.error().to_string());
      same = false;
    } else {
      same = comparison.compare({argv[i], test->program, static_cast<uint64_t>(i),
                                 everything() ? kManySequences : kFewSequences}) &&
             same;
    }
  }
  for (uint64_t number = first; number < first + count; ++number) {
    same = comparison.compare(random_test(number)) && same;
  }
  const Counts& counts = comparison.counts();
  fmt::print(
      "{} programs, {} classes under both models; every sequence of steps of {} explorations, some "
      "of {}: {} executions; {} "
      "explorations with two jobs, {} forked; {} left out\n",
      counts.programs, counts.classes, counts.all_sequences, counts.some_sequences,
      counts.executions, counts.by_jobs, counts.forked, counts.left_out);
  return same ? 0 : 1;
}
