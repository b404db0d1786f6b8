#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "offline/explore/graph_search.h"
#include "offline/explore/naive_search.h"
#include "offline/explore/task_pool.h"
#include "tests/explore/machine_program.h"
#include "tests/explore/random_program.h"

namespace {

using namespace tsomon;
using namespace tsomon::explore;

// How often each class was run; its name is that of a graph of another builder than the searches'.
using Classes = std::map<std::string, int>;

struct Counted {
  std::mutex mutex;
  Classes classes;
  int given = 0;
  bool ok = true;
};

void count(const Run& run, Model model, Counted* counted) {
  GraphBuilder builder;
  std::string name = class_name(builder.of_run(run, model, false));
  const std::lock_guard lock(counted->mutex);
  ++counted->classes[std::move(name)];
  counted->ok = counted->ok && run.end == End::kFinished;
}

void by_graphs(const machine::Program& program, Model model, uint32_t workers, bool always,
               Counted* counted) {
  TaskPool<GraphSearch::Subtree> pool(workers);
  pool.give({});
  std::vector<std::thread> threads;
  for (uint32_t w = 0; w < workers; ++w) {
    threads.emplace_back([&] {
      MachineProgram explored(program, model);
      GraphBuilder builder;
      // Another builder has other numbers.
      while (const auto task = pool.take()) {
        GraphSearch search(explored, builder, model);
        search.begin(*task);
        while (!search.done()) {
          count(*search.next().run, model, counted);
          while (always || pool.wants_more()) {
            auto part = search.give();
            if (!part) {
              break;
            }
            pool.give(std::move(*part));
            const std::lock_guard lock(counted->mutex);
            ++counted->given;
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

void by_sequences(const machine::Program& program, Model model, uint32_t workers, bool always,
                  Counted* counted) {
  TaskPool<std::vector<Choice>> pool(workers);
  pool.give({});
  std::vector<std::thread> threads;
  for (uint32_t w = 0; w < workers; ++w) {
    threads.emplace_back([&] {
      MachineProgram explored(program, model);
      while (auto task = pool.take()) {
        NaiveSearch search(explored, model);
        search.begin(std::move(*task));
        while (!search.done()) {
          count(search.next(), model, counted);
          while (always || pool.wants_more()) {
            auto part = search.give();
            if (!part) {
              break;
            }
            pool.give(std::move(*part));
            const std::lock_guard lock(counted->mutex);
            ++counted->given;
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace

TEST_CASE("Jobs: searches that give parts away run the same classes, each once") {
  std::mt19937_64 random(31);
  int given = 0;
  for (int i = 0; i < 300; ++i) {
    const uint32_t threads = 2 + static_cast<uint32_t>(random() % 2);
    const machine::Program program = random_program(random, threads, threads == 2 ? 5 : 3);
    for (const Model model : {Model::kSc, Model::kTso}) {
      CAPTURE(i);
      Counted alone;
      by_graphs(program, model, 1, false, &alone);
      Counted parts;
      by_graphs(program, model, 1, true, &parts);
      Counted together;
      by_graphs(program, model, 2, i % 2 == 0, &together);
      REQUIRE(alone.ok);
      REQUIRE(parts.classes == alone.classes);
      REQUIRE(together.classes == alone.classes);
      for (const auto& [name, times] : alone.classes) {
        REQUIRE(times == 1);
      }
      given += parts.given + together.given;
    }
  }
  CHECK(given > 1000);
}

TEST_CASE("Jobs: sequences that begin alike are run once, by one or another") {
  std::mt19937_64 random(32);
  int given = 0;
  for (int i = 0; i < 60; ++i) {
    const machine::Program program = random_program(random, 2, 3);
    for (const Model model : {Model::kSc, Model::kTso}) {
      CAPTURE(i);
      Counted alone;
      by_sequences(program, model, 1, false, &alone);
      Counted together;
      by_sequences(program, model, 2, i % 2 == 0, &together);
      // As often, too: every sequence is run once.
      REQUIRE(together.classes == alone.classes);
      given += together.given;
    }
  }
  CHECK(given > 10);
}
