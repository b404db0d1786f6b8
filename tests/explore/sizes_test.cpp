// Accesses of different sizes that share bytes, against every execution of a machine of bytes.
#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "offline/explore/class_properties.h"
#include "offline/explore/execution_graph.h"
#include "offline/explore/graph_search.h"
#include "tests/rounds.h"

namespace {

using namespace tsomon;
using explore::Choice;
using explore::GraphBuilder;
using explore::GraphSearch;
using explore::Model;
using explore::Op;
using explore::Request;
using explore::Run;
using explore::Step;
using explore::Value;

constexpr uint32_t kBytes = 8;
constexpr uint64_t kAddress = 0x1000;

struct Access {
  Op op = Op::kLoad;
  uint32_t begin = 0;
  uint32_t size = 0;
  uint64_t value = 0;
  bool adds_read = false;     // the value of a store depends on what was read last
  bool if_read_even = false;  // done only then
};
using Thread = std::vector<Access>;
using Threads = std::vector<Thread>;

// The machine: threads with buffers, memory byte by byte, and who wrote each byte.
class Machine {
 public:
  Machine(const Threads& threads, Model model)
      : threads_(&threads), tso_(model == Model::kTso), locals_(threads.size()) {
    for (uint32_t byte = 0; byte < kBytes; ++byte) {
      memory_[byte] = static_cast<uint8_t>(byte * 2);
      writer_[byte] = "-";
    }
    for (size_t t = 0; t < threads.size(); ++t) {
      skip(t);
    }
  }

  bool can_execute(size_t t) const {
    const Local& local = locals_[t];
    if (local.next == (*threads_)[t].size()) {
      return false;
    }
    return !explore::drains((*threads_)[t][local.next].op) || local.buffer.empty();
  }
  bool can_commit(size_t t) const { return !locals_[t].buffer.empty(); }

  Step execute(size_t t) {
    Local& local = locals_[t];
    const Access& access = (*threads_)[t][local.next];
    Step step;
    step.choice = {static_cast<uint16_t>(t), 0, 0};
    step.op = access.op;
    const std::string name = std::to_string(t) + "." + std::to_string(local.done++);
    if (access.op != Op::kFence) {
      step.address = kAddress + access.begin;
      step.size = static_cast<uint8_t>(access.size);
      step.initial = number(access, memory_);
      step.a = explore::low_bytes(access.value + (access.adds_read ? local.read : 0), access.size);
      if (access.op == Op::kCompareExchange) {
        step.b = explore::low_bytes(access.value + 7, access.size);
        step.a = explore::low_bytes(local.read, access.size);
      }
    }
    if (explore::reads(access.op)) {
      std::array<uint8_t, kBytes> seen = memory_;
      std::array<std::string, kBytes> from = writer_;
      for (const Stored& stored : local.buffer) {
        put(stored, &seen, &from);
      }
      step.read = number(access, seen);
      classes_[name] += "r";
      for (uint32_t byte = access.begin; byte < access.begin + access.size; ++byte) {
        classes_[name] += from[byte] + " ";
      }
      local.read = static_cast<uint64_t>(step.read);
    }
    if (access.op == Op::kStore) {
      step.written = step.a;
      const Stored stored{name, access, static_cast<uint64_t>(step.a)};
      tso_ ? local.buffer.push_back(stored) : commit(stored);
    } else if (explore::is_locked(access.op)) {
      step.exact = true;
      const explore::Effect effect = explore::apply_exactly(access.op, step.read, step.a, step.b,
                                                            access.size, static_cast<uint32_t>(t));
      step.written = effect.value;
      classes_[name] += effect.writes ? "w" : "f";
      if (effect.writes) {
        commit({name, access, static_cast<uint64_t>(effect.value)});
      }
    }
    ++local.next;
    skip(t);
    return step;
  }

  void commit(size_t t) {
    commit(locals_[t].buffer.front());
    locals_[t].buffer.pop_front();
  }

  // What was read from where, and the order of the writes of each byte.
  std::string class_text() const {
    std::string text;
    for (const auto& [name, reads] : classes_) {
      text += name + ":" + reads + ";";
    }
    for (uint32_t byte = 0; byte < kBytes; ++byte) {
      text += orders_[byte] + "|";
    }
    return text;
  }
  std::string final_text() const {
    std::string text(memory_.begin(), memory_.end());
    for (const Local& local : locals_) {
      text += " " + std::to_string(local.read);
    }
    return text;
  }

 private:
  struct Stored {
    std::string name;
    Access access;
    uint64_t value = 0;
  };
  struct Local {
    size_t next = 0;
    size_t done = 0;
    uint64_t read = 0;
    std::deque<Stored> buffer;
  };

  static uint64_t number(const Access& access, const std::array<uint8_t, kBytes>& bytes) {
    uint64_t value = 0;
    for (uint32_t i = access.size; i-- > 0;) {
      value = value << 8 | bytes[access.begin + i];
    }
    return value;
  }
  static void put(const Stored& stored, std::array<uint8_t, kBytes>* bytes,
                  std::array<std::string, kBytes>* writers) {
    for (uint32_t i = 0; i < stored.access.size; ++i) {
      (*bytes)[stored.access.begin + i] = static_cast<uint8_t>(stored.value >> (8 * i));
      (*writers)[stored.access.begin + i] = stored.name;
    }
  }
  void commit(const Stored& stored) {
    put(stored, &memory_, &writer_);
    for (uint32_t i = 0; i < stored.access.size; ++i) {
      orders_[stored.access.begin + i] += stored.name + " ";
    }
  }
  void skip(size_t t) {
    Local& local = locals_[t];
    while (local.next < (*threads_)[t].size() && (*threads_)[t][local.next].if_read_even &&
           local.read % 2 != 0) {
      ++local.next;
    }
  }

  const Threads* threads_;
  bool tso_;
  std::vector<Local> locals_;
  std::array<uint8_t, kBytes> memory_{};
  std::array<std::string, kBytes> writer_;
  std::array<std::string, kBytes> orders_;
  std::map<std::string, std::string> classes_;
};

class ByteProgram : public explore::Program {
 public:
  ByteProgram(const Threads& threads, Model model)
      : threads_(threads), model_(model), machine_(threads, model) {}

  const Run& run(const Request& request) override {
    run_ = {};
    machine_ = Machine(threads_, model_);
    for (;;) {
      uint64_t enabled = 0;
      uint64_t commits = 0;
      for (size_t t = 0; t < threads_.size(); ++t) {
        enabled |= uint64_t{machine_.can_execute(t)} << t;
        commits |= uint64_t{machine_.can_commit(t)} << t;
      }
      if (enabled == 0 && commits == 0) {
        return run_;
      }
      Choice choice{static_cast<uint16_t>(__builtin_ctzll(commits != 0 ? commits : enabled)),
                    static_cast<uint8_t>(commits != 0 ? 1 : 0), 0};
      if (run_.steps.size() < request.prefix.size()) {
        choice = request.prefix[run_.steps.size()];
      }
      if ((((choice.commit != 0 ? commits : enabled) >> choice.thread) & 1) == 0) {
        run_.end = explore::End::kDiverged;
        return run_;
      }
      Step step;
      if (choice.commit != 0) {
        machine_.commit(choice.thread);
      } else {
        step = machine_.execute(choice.thread);
      }
      step.choice = choice;
      run_.steps.push_back(step);
    }
  }
  const Machine& machine() const { return machine_; }

 private:
  const Threads threads_;
  const Model model_;
  Machine machine_;
  Run run_;
};

struct Found {
  std::map<std::string, std::set<std::string>> classes;  // to names of the graphs
  std::set<std::string> names;
  std::set<std::string> finals;
  uint64_t robust = 0;
  uint64_t runs = 0;
};

void all_executions(const Machine& machine, size_t threads, Found* found) {
  bool any = false;
  for (size_t t = 0; t < threads; ++t) {
    if (machine.can_execute(t)) {
      any = true;
      Machine next = machine;
      next.execute(t);
      all_executions(next, threads, found);
    }
    if (machine.can_commit(t)) {
      any = true;
      Machine next = machine;
      next.commit(t);
      all_executions(next, threads, found);
    }
  }
  if (!any) {
    ++found->runs;
    found->classes[machine.class_text()];
    found->finals.insert(machine.final_text());
  }
}

Found by_graphs(const Threads& threads, Model model) {
  ByteProgram program(threads, model);
  GraphBuilder::Ranges ranges;
  for (;;) {
    Found found;
    GraphBuilder builder;
    builder.set_ranges(ranges);
    GraphSearch search(program, builder, model);
    while (!search.done() && builder.ranges() == ranges) {
      const GraphSearch::Result result = search.next();
      if (builder.ranges() != ranges) {
        break;
      }
      REQUIRE(result.run != nullptr);
      REQUIRE(result.run->end == explore::End::kFinished);
      ++found.runs;
      const std::string name = explore::class_name(*result.graph);
      const std::string text = program.machine().class_text();
      REQUIRE(explore::class_name(builder.of_run(*result.run, model, false)) == name);
      if (found.names.insert(name).second && explore::is_robust(*result.graph)) {
        ++found.robust;
      }
      found.classes[text].insert(name);
      found.finals.insert(program.machine().final_text());
      // The class has schedules that run it.
      std::vector<Choice> schedule;
      REQUIRE(explore::linearize(*result.graph, model, &schedule));
      Request again;
      again.prefix = schedule;
      REQUIRE(program.run(again).end == explore::End::kFinished);
      REQUIRE(program.machine().class_text() == text);
    }
    if (builder.ranges() == ranges) {
      return found;
    }
    ranges = builder.ranges();
  }
}

Threads random_threads(std::mt19937_64& random, uint32_t threads, uint32_t length, uint32_t bytes) {
  const auto below = [&](uint64_t bound) { return static_cast<uint32_t>(random() % bound); };
  Threads all(threads);
  for (uint32_t t = 0; t < threads; ++t) {
    const uint32_t count = 1 + below(length);
    for (uint32_t i = 0; i < count; ++i) {
      Access access;
      constexpr std::array kOps = {
          Op::kLoad,  Op::kLoad, Op::kLoad,     Op::kStore,           Op::kStore,
          Op::kStore, Op::kAdd,  Op::kExchange, Op::kCompareExchange, Op::kFence};
      access.op = kOps[below(kOps.size())];
      access.size = 1U << below(bytes >= 4 ? 3 : 2);
      access.begin =
          below(2) == 0 ? below(bytes - access.size + 1) : access.size * below(bytes / access.size);
      access.value = 0x0101010101010101 * (1 + t * 3 + i) + below(2);
      access.adds_read = below(4) == 0;
      access.if_read_even = below(6) == 0;
      all[t].push_back(access);
    }
  }
  return all;
}

uint64_t runs = 0;
uint64_t classes = 0;

void require_all(const Threads& threads) {
  uint64_t sc_classes = 0;
  for (const Model model : {Model::kSc, Model::kTso}) {
    CAPTURE(static_cast<int>(model));
    Found expected;
    all_executions(Machine(threads, model), threads.size(), &expected);
    const Found found = by_graphs(threads, model);
    REQUIRE(found.classes.size() == expected.classes.size());
    REQUIRE(found.names.size() == expected.classes.size());
    for (const auto& [text, names] : found.classes) {
      REQUIRE(expected.classes.contains(text));
      REQUIRE(names.size() == 1);
    }
    REQUIRE(found.finals == expected.finals);
    sc_classes = model == Model::kSc ? expected.classes.size() : sc_classes;
    REQUIRE(found.robust == sc_classes);
    runs += found.runs;
    classes += found.classes.size();
  }
}

}  // namespace

TEST_CASE("Sizes: classes, final states and robustness of random programs are the machine's") {
  std::mt19937_64 random(381);
  const int count = rounds(600, 6'000);
  for (int i = 0; i < count; ++i) {
    CAPTURE(i);
    const uint32_t threads = 2 + static_cast<uint32_t>(random() % 2);
    require_all(random_threads(random, threads, threads == 2 ? 3 : 2,
                               2 + 2 * static_cast<uint32_t>(random() % 2)));
  }
  MESSAGE("runs: ", runs, ", classes: ", classes);
}
