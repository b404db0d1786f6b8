// The parts of the orientation search against their definitions.
#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "offline/check/growing_order.h"
#include "offline/check/unit_order.h"
#include "tests/rounds.h"

using namespace tsomon;

namespace {

const int kRounds = rounds(1'000, 20'000);

struct Rule {
  Edge when;
  Edge then;
};

// Edges closed under transitivity and rules; an empty matrix if that makes a cycle.
std::vector<std::vector<bool>> close(uint32_t size, const std::vector<Edge>& edges,
                                     const std::vector<Rule>& rules) {
  std::vector<std::vector<bool>> order(size, std::vector<bool>(size, false));
  for (uint32_t i = 0; i < size; ++i) {
    order[i][i] = true;
  }
  for (const Edge& edge : edges) {
    order[edge.from][edge.to] = true;
  }
  for (bool changed = true; changed;) {
    changed = false;
    const auto add = [&](uint32_t from, uint32_t to) {
      changed = changed || !order[from][to];
      order[from][to] = true;
    };
    for (uint32_t i = 0; i < size; ++i) {
      for (uint32_t j = 0; j < size; ++j) {
        for (uint32_t k = 0; k < size; ++k) {
          if (order[i][j] && order[j][k]) {
            add(i, k);
          }
        }
      }
    }
    for (const Rule& rule : rules) {
      if (order[rule.when.from][rule.when.to]) {
        add(rule.then.from, rule.then.to);
      }
    }
  }
  for (uint32_t i = 0; i < size; ++i) {
    for (uint32_t j = 0; j < i; ++j) {
      if (order[i][j] && order[j][i]) {
        return {};
      }
    }
  }
  return order;
}

}  // namespace

TEST_CASE("a growing order is the closure of its edges and rules, and goes back") {
  constexpr uint64_t kSeed = 11;
  std::mt19937_64 random(kSeed);
  int refused = 0;
  for (int round = 0; round < kRounds / 10; ++round) {
    INFO("seed " << kSeed << " round " << round);
    const auto size = static_cast<uint32_t>(2 + random() % 70);
    const auto pick = [&] { return static_cast<uint32_t>(random() % std::min(size, 9U)); };
    const auto edge = [&] {
      Edge result{pick(), pick()};
      while (result.from == result.to) {
        result.to = pick();
      }
      return result;
    };
    GrowingOrder order{PartialOrder(size)};
    std::vector<Rule> rules;
    for (int i = 0; i < 6; ++i) {
      rules.push_back({edge(), edge()});
      order.imply(rules.back().when, rules.back().then);
    }
    REQUIRE(order.settle());
    std::vector<Edge> edges;
    std::vector<std::pair<size_t, size_t>> marks;  // of the order, and how many edges
    for (int step = 0; step < 12; ++step) {
      if (!marks.empty() && random() % 4 == 0) {
        order.undo(marks.back().first);
        edges.resize(marks.back().second);
        marks.pop_back();
      } else {
        marks.emplace_back(order.mark(), edges.size());
        const Edge next = edge();
        edges.push_back(next);
        const bool fits = order.insert(next.from, next.to);
        REQUIRE(fits == !close(size, edges, rules).empty());
        if (!fits) {
          ++refused;
          order.undo(marks.back().first);
          edges.resize(marks.back().second);
          marks.pop_back();
        }
      }
      const auto expected = close(size, edges, rules);
      for (uint32_t i = 0; i < size; ++i) {
        std::vector<bool> after(size, false);
        std::vector<bool> before(size, false);
        order.for_each_after(i, [&](uint32_t j) { after[j] = true; });
        order.for_each_before(i, [&](uint32_t j) { before[j] = true; });
        bool equal = true;
        const std::vector<uint64_t> among{random(), random()};
        std::vector<uint64_t> left = among;
        std::vector<bool> taken(size, false);
        order.take_before(i, &left, [&](uint32_t j) { taken[j] = true; });
        bool any = false;
        for (uint32_t j = 0; j < size; ++j) {
          const bool wanted = ((among[j / 64] >> (j % 64)) & 1) != 0;
          any = any || (wanted && expected[j][i]);
          equal = equal && taken[j] == (wanted && expected[j][i]) &&
                  ((left[j / 64] >> (j % 64)) & 1) == (wanted && !expected[j][i] ? 1 : 0);
        }
        equal = equal && order.any_before(i, among, [](uint32_t) { return true; }) == any &&
                !order.any_before(i, among, [](uint32_t) { return false; });
        for (uint32_t j = 0; j < size; ++j) {
          equal = equal && order.reaches(i, j) == expected[i][j] && after[j] == expected[i][j] &&
                  before[j] == expected[j][i];
        }
        REQUIRE(equal);
      }
    }
  }
  CHECK(refused > kRounds / 50);
}

TEST_CASE("an order of units is found exactly when one exists") {
  constexpr uint64_t kSeed = 12;
  std::mt19937_64 random(kSeed);
  int none = 0;
  for (int round = 0; round < kRounds; ++round) {
    INFO("seed " << kSeed << " round " << round);
    const auto size = static_cast<uint32_t>(3 + random() % 4);
    PartialOrder directed(size);
    uint64_t work = 0;
    for (uint32_t i = 0; i < size / 2; ++i) {
      directed.insert(static_cast<uint32_t>(random() % size),
                      static_cast<uint32_t>(random() % size), &work);
    }
    std::vector<ReadsFrom> rules;
    for (uint64_t i = random() % 12; i > 0; --i) {
      std::vector<uint32_t> three(size);
      std::iota(three.begin(), three.end(), 0U);
      std::shuffle(three.begin(), three.end(), random);
      rules.push_back({three[0], three[1], three[2]});
    }
    const auto fits = [&](const std::vector<uint32_t>& place) {
      for (uint32_t i = 0; i < size; ++i) {
        for (uint32_t j = 0; j < size; ++j) {
          if (i != j && directed.reaches(i, j) && place[i] > place[j]) {
            return false;
          }
        }
      }
      return std::none_of(rules.begin(), rules.end(), [&](const ReadsFrom& rule) {
        return place[rule.write] < place[rule.other] && place[rule.other] < place[rule.read];
      });
    };
    std::vector<uint32_t> priority(size);
    std::iota(priority.begin(), priority.end(), 0U);
    std::vector<uint32_t> all = priority;
    bool exists = false;
    do {
      exists = exists || fits(all);
    } while (!exists && std::next_permutation(all.begin(), all.end()));
    std::shuffle(priority.begin(), priority.end(), random);
    std::vector<uint32_t> place;
    uint64_t states = 0;
    const Answer answer = order_units(GrowingOrder(directed), rules, priority, {}, &place, &states);
    REQUIRE(answer == (exists ? Answer::kYes : Answer::kNo));
    if (exists) {
      REQUIRE(place.size() == size);
      REQUIRE(fits(place));
    }
    none += exists ? 0 : 1;
  }
  CHECK(none > kRounds / 100);
}
