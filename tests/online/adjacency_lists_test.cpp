// AdjacencyLists against sets.
#include "online/order/adjacency_lists.h"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

using namespace tsomon;

namespace {

using Id = AdjacencyLists::Id;

#if defined(TSOMON_SANITIZED) || !defined(NDEBUG)
constexpr int kOperations = 20'000;
#else
constexpr int kOperations = 400'000;
#endif
constexpr uint64_t kSeed = 64;

}  // namespace

TEST_CASE("lists of all lengths hold what was put in") {
  constexpr Id kLists = 12;
  constexpr Id kItems = 150;  // several sizes of blocks
  std::mt19937_64 random(kSeed);
  CAPTURE(kSeed);
  AdjacencyLists lists;
  std::vector<std::set<Id>> twins;
  for (int i = 0; i < kOperations; ++i) {
    CAPTURE(i);
    if (twins.size() < kLists && i % 100 == 0) {
      twins.emplace_back();
      lists.grow(static_cast<Id>(twins.size()));
    }
    const Id list = static_cast<Id>(random() % twins.size());
    const Id item = 1 + static_cast<Id>(random() % kItems);
    const Id other = 1 + static_cast<Id>(random() % kItems);
    std::set<Id>& twin = twins[list];
    REQUIRE(lists.contains(list, item) == twin.contains(item));
    // Lists grow and shrink in turns.
    const unsigned dice = random() % 100;
    if (dice == 0) {
      lists.clear(list);
      twin.clear();
    } else if (dice < 20 && twin.contains(item) && !twin.contains(other)) {
      lists.replace(list, item, other);
      twin.erase(item);
      twin.insert(other);
    } else if (twin.contains(item)) {
      lists.erase(list, item);
      twin.erase(item);
    } else {
      lists.append(list, item);
      twin.insert(item);
    }
    const auto items = lists.items(list);
    REQUIRE(items.size() == twin.size());
    REQUIRE(lists.size(list) == twin.size());
    if (i % 16 == 0) {
      REQUIRE(std::set<Id>(items.begin(), items.end()) == twin);
    }
  }
}

TEST_CASE("blocks of cleared lists are used again") {
  AdjacencyLists lists;
  lists.grow(4);
  const auto fill = [&](Id list, Id count) {
    for (Id item = 1; item <= count; ++item) {
      lists.append(list, item);
    }
  };
  fill(0, 500);
  fill(1, 500);
  const size_t before = lists.memory_bytes();
  for (int i = 0; i < 100; ++i) {
    lists.clear(0);
    fill(2, 500);
    lists.clear(2);
    fill(0, 500);
  }
  CHECK(lists.memory_bytes() == before);
}
