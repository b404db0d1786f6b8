// OrderList against a vector that holds the same order.
#include "online/order/order_list.h"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "tests/rounds.h"

using namespace tsomon;

namespace {

using Id = OrderList::Id;

const int kRounds = rounds(60, 1'200);
constexpr uint64_t kSeed = 20020917;

// Where elements are moved to.
enum class Place : uint8_t { kAnywhere, kOneElement, kFront, kBack, kPlaces };

void check(const OrderList& list, const std::vector<Id>& expected) {
  REQUIRE(list.check_invariants() == "");
  Id at = list.first();
  for (size_t i = 0; i < expected.size(); ++i) {
    REQUIRE(at == expected[i]);
    REQUIRE((i == 0 || list.before(expected[i - 1], at)));
    at = list.next(at);
  }
  REQUIRE(at == OrderList::kEnd);
  REQUIRE(list.last() == (expected.empty() ? OrderList::kEnd : expected.back()));
}

// Takes up to `most` elements out of the vector, at random; they keep their order or not.
std::vector<Id> take(std::vector<Id>& order, size_t most, std::mt19937_64& random) {
  std::vector<Id> taken;
  const size_t count = 1 + random() % std::min(most, order.size() - 1);
  for (size_t i = 0; i < count; ++i) {
    const auto at = order.begin() + static_cast<ptrdiff_t>(random() % order.size());
    taken.push_back(*at);
    order.erase(at);
  }
  return taken;
}

}  // namespace

TEST_CASE("an order list does what a vector does, also when labels run out") {
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t seed = kSeed + static_cast<uint64_t>(round);
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    // With few bits there is soon no room between two elements, with many there is none at the
    // ends.
    const unsigned bits = round % 3 == 0 ? 2 : round % 3 == 1 ? 32 : 58;
    const auto place = static_cast<Place>(round % static_cast<int>(Place::kPlaces));
    OrderList list(bits);
    constexpr Id kIds = 100;
    list.grow(kIds + 1);
    std::vector<Id> order;
    std::vector<Id> unused(kIds);
    for (Id id = 0; id < kIds; ++id) {
      unused[id] = id + 1;
    }
    for (int i = 0; i < 300; ++i) {
      const unsigned dice = random() % 100;
      if (order.size() < 3 || (dice < 30 && !unused.empty())) {
        list.push_back(unused.back());
        order.push_back(unused.back());
        unused.pop_back();
      } else if (dice < 40) {
        const auto at = order.begin() + static_cast<ptrdiff_t>(random() % order.size());
        list.erase(*at);
        REQUIRE(!list.contains(*at));
        unused.push_back(*at);
        order.erase(at);
      } else {
        const std::vector<Id> moved = take(order, random() % 8 == 0 ? 40 : 3, random);
        size_t at = random() % order.size();
        at = place == Place::kFront        ? 0
             : place == Place::kBack       ? order.size() - 1
             : place == Place::kOneElement ? std::min<size_t>(1, order.size() - 1)
                                           : at;
        const bool after = place == Place::kBack || (place != Place::kFront && random() % 2 == 0);
        if (after) {
          list.move_after(order[at], moved);
        } else {
          list.move_before(order[at], moved);
        }
        order.insert(order.begin() + static_cast<ptrdiff_t>(at + (after ? 1 : 0)), moved.begin(),
                     moved.end());
      }
      check(list, order);
    }
  }
}

TEST_CASE("labels are spread anew when the ends are reached") {
  OrderList list(60);
  list.grow(9);
  for (Id id = 1; id <= 8; ++id) {
    list.push_back(id);
  }
  // The front and the back move apart by 2^60 each time.
  std::vector<Id> order{1, 2, 3, 4, 5, 6, 7, 8};
  for (int i = 0; i < 100; ++i) {
    const Id first = order.front();
    list.move_after(order.back(), {&first, 1});
    std::rotate(order.begin(), order.begin() + 1, order.end());
    check(list, order);
  }
  for (int i = 0; i < 100; ++i) {
    const Id last = order.back();
    list.move_before(order.front(), {&last, 1});
    std::rotate(order.begin(), order.end() - 1, order.end());
    check(list, order);
  }
}
