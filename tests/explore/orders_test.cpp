#include <map>
#include <random>
#include <set>

#include <doctest/doctest.h>

#include "offline/explore/graph_search.h"
#include "offline/explore/naive_search.h"
#include "offline/explore/real_time_orders.h"
#include "tests/explore/machine_program.h"
#include "tests/explore/random_program.h"

namespace {

using namespace tsomon;
using namespace tsomon::explore;

// A place in a thread, and what is there.
struct Place {
  uint16_t thread = 0;
  uint32_t index = 0;
  bool returns = false;
};
// Which return comes before which call, as numbers of places.
using Pairs = std::set<std::pair<size_t, size_t>>;

std::vector<Place> random_places(std::mt19937_64& random, uint32_t threads) {
  std::vector<Place> places;
  for (uint32_t thread = 0; thread < threads; ++thread) {
    bool returns = false;
    for (uint32_t index = 0; index < 4; ++index) {
      if (random() % 3 != 0) {
        places.push_back({static_cast<uint16_t>(thread), index, returns});
        returns = !returns;
      }
    }
  }
  return places;
}

// The places that the graph has, with their numbers.
std::vector<std::pair<CallMoment, size_t>> moments_of(const Graph& graph,
                                                      const std::vector<Place>& places) {
  std::vector<std::pair<CallMoment, size_t>> moments;
  for (size_t p = 0; p < places.size(); ++p) {
    for (uint32_t e = 0; e < graph.events.size(); ++e) {
      if (graph.events[e].thread == places[p].thread && graph.events[e].index == places[p].index) {
        moments.push_back({{places[p].thread, places[p].returns, 0, e}, p});
      }
    }
  }
  return moments;
}

Pairs pairs_of(const std::vector<size_t>& order, const std::vector<Place>& places) {
  Pairs pairs;
  for (size_t a = 0; a < order.size(); ++a) {
    for (size_t b = a + 1; b < order.size(); ++b) {
      if (places[order[a]].returns && !places[order[b]].returns) {
        pairs.insert({order[a], order[b]});
      }
    }
  }
  return pairs;
}

// What the runs of each class had.
std::map<std::string, std::set<Pairs>> by_sequences(const machine::Program& program, Model model,
                                                    const std::vector<Place>& places) {
  MachineProgram explored(program, model);
  GraphBuilder builder;
  NaiveSearch search(explored, model);
  std::map<std::string, std::set<Pairs>> classes;
  while (!search.done()) {
    const Run& run = search.next();
    std::map<uint16_t, uint32_t> next;
    std::vector<size_t> order;
    for (const Step& step : run.steps) {
      if (step.choice.commit != 0) {
        continue;
      }
      const uint32_t index = next[step.choice.thread]++;
      for (size_t p = 0; p < places.size(); ++p) {
        if (places[p].thread == step.choice.thread && places[p].index == index) {
          order.push_back(p);
        }
      }
    }
    classes[class_name(builder.of_run(run, model, false))].insert(pairs_of(order, places));
  }
  return classes;
}

}  // namespace

TEST_CASE("Orders of calls and returns: those of all runs of a class, or with more pairs") {
  std::mt19937_64 random(30);
  int open = 0;
  for (int i = 0; i < 150; ++i) {
    const uint32_t threads = 2 + (i % 4 == 0 ? 1 : 0);
    const machine::Program program = random_program(random, threads, threads == 2 ? 3 : 2);
    const std::vector<Place> places = random_places(random, threads);
    for (const Model model : {Model::kSc, Model::kTso}) {
      CAPTURE(i);
      if (threads == 3 && model == Model::kTso) {
        continue;  // too many sequences
      }
      const auto expected = by_sequences(program, model, places);
      MachineProgram explored(program, model);
      GraphBuilder builder;
      GraphSearch search(explored, builder, model);
      size_t classes = 0;
      while (!search.done()) {
        const GraphSearch::Result result = search.next();
        const Graph& graph = *result.graph;
        ++classes;
        const std::set<Pairs>& runs = expected.at(class_name(graph));
        std::vector<CallMoment> moments;
        std::vector<size_t> numbers;
        for (const auto& [moment, number] : moments_of(graph, places)) {
          moments.push_back(moment);
          numbers.push_back(number);
        }
        std::set<Pairs> visited;
        const OrdersEnd end =
            for_each_order(graph, model, moments, 1000, [&](const std::vector<uint32_t>& order) {
              std::vector<size_t> numbered;
              for (const uint32_t moment : order) {
                numbered.push_back(numbers[moment]);
              }
              const Pairs pairs = pairs_of(numbered, places);
              CHECK(runs.contains(pairs));
              visited.insert(pairs);
              // The schedule has this order.
              const std::vector<Choice> schedule = schedule_of_order(graph, model, moments, order);
              Request request;
              request.model = model;
              request.prefix = schedule;
              MachineProgram again(program, model);
              const Run& run = again.run(request);
              CHECK(run.end == End::kFinished);
              CHECK(run.steps.size() == schedule.size());
              CHECK(class_name(builder.of_run(run, model, false)) == class_name(graph));
              return true;
            });
        REQUIRE(end == OrdersEnd::kAll);
        open += visited.size() > 1 ? 1 : 0;
        for (const Pairs& pairs : runs) {
          bool covered = false;
          for (const Pairs& more : visited) {
            covered =
                covered || std::includes(more.begin(), more.end(), pairs.begin(), pairs.end());
          }
          CHECK(covered);
        }
      }
      REQUIRE(classes == expected.size());
    }
  }
  CHECK(open > 100);
}

TEST_CASE("Orders of calls and returns: a bound ends them") {
  // Three threads that share nothing.
  Graph graph;
  std::vector<CallMoment> moments;
  for (uint16_t thread = 0; thread < 3; ++thread) {
    for (uint32_t index = 0; index < 2; ++index) {
      GraphEvent event;
      event.thread = thread;
      event.index = index;
      event.op = Op::kCall;
      moments.push_back({thread, index == 1, 0, static_cast<uint32_t>(graph.events.size())});
      graph.events.push_back(event);
    }
  }
  int orders = 0;
  const auto count = [&](const std::vector<uint32_t>&) { return ++orders > 0; };
  CHECK(for_each_order(graph, Model::kTso, moments, 100, count) == OrdersEnd::kAll);
  CHECK(orders == 6);
  orders = 0;
  CHECK(for_each_order(graph, Model::kTso, moments, 4, count) == OrdersEnd::kBound);
  CHECK(orders == 4);
  orders = 0;
  CHECK(for_each_order(graph, Model::kTso, moments, 100, [&](const std::vector<uint32_t>&) {
          return ++orders < 3;
        }) == OrdersEnd::kStopped);
  CHECK(orders == 3);
}
