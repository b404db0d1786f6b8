#include <map>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "offline/explore/class_properties.h"
#include "offline/explore/graph_search.h"
#include "offline/explore/naive_search.h"
#include "tests/explore/machine_program.h"
#include "tests/explore/random_program.h"

namespace {

using namespace tsomon;
using namespace tsomon::explore;

// Memory of one location is freed right behind an operation of a thread.
struct Freed {
  uint16_t thread = 0;
  uint32_t index = 0;
  uint64_t address = 0;
};

bool is_access(const Step& step, const Freed& freed) {
  return step.choice.commit == 0 && step.choice.thread != freed.thread && has_cell(step.op) &&
         step.address == freed.address;
}

// Classes of which some run accesses it later.
std::map<std::string, bool> by_sequences(const machine::Program& program, Model model,
                                         const Freed& freed) {
  MachineProgram explored(program, model);
  GraphBuilder builder;
  NaiveSearch search(explored, model);
  std::map<std::string, bool> classes;
  while (!search.done()) {
    const Run& run = search.next();
    uint32_t next = 0;
    bool is_free = false;
    bool late = false;
    for (const Step& step : run.steps) {
      late = late || (is_free && is_access(step, freed));
      if (step.choice.commit == 0 && step.choice.thread == freed.thread) {
        is_free = is_free || next++ == freed.index;
      }
    }
    bool& any = classes[class_name(builder.of_run(run, model, false))];
    any = any || late;
  }
  return classes;
}

}  // namespace

TEST_CASE("Freed memory: a class whose runs use it is known by any of them") {
  std::mt19937_64 random(33);
  int late = 0;
  int never = 0;
  for (int i = 0; i < 150; ++i) {
    const machine::Program program = random_program(random, 2, 3);
    const Freed freed{static_cast<uint16_t>(random() % 2), static_cast<uint32_t>(random() % 3),
                      0x1000 + 16 * (random() % 2)};
    for (const Model model : {Model::kSc, Model::kTso}) {
      CAPTURE(i);
      const auto expected = by_sequences(program, model, freed);
      MachineProgram explored(program, model);
      GraphBuilder builder;
      GraphSearch search(explored, builder, model);
      while (!search.done()) {
        const Graph& graph = *search.next().graph;
        Mark mark;
        mark.kind = MarkKind::kFree;
        mark.thread = freed.thread;
        mark.operation = freed.index + 1;
        mark.address = freed.address;
        mark.size = 16;
        uint32_t length = 0;
        for (const GraphEvent& event : graph.events) {
          length += event.thread == freed.thread ? 1 : 0;
        }
        const auto found = length > freed.index ? early_free(graph, model, {mark}) : std::nullopt;
        REQUIRE(found.has_value() == expected.at(class_name(graph)));
        ++(found ? late : never);
        if (!found) {
          continue;
        }
        // The schedule does it.
        Request request;
        request.model = model;
        request.prefix = found->schedule;
        MachineProgram again(program, model);
        const Run& run = again.run(request);
        CHECK(run.end == End::kFinished);
        CHECK(class_name(builder.of_run(run, model, false)) == class_name(graph));
      }
    }
  }
  CHECK(late > 20);
  CHECK(never > 20);
}
