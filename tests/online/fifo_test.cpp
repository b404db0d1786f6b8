// Fifo against std::deque.
#include "online/structures/fifo.h"

#include <algorithm>
#include <deque>
#include <random>

#include <doctest/doctest.h>

using namespace tsomon;

TEST_CASE("a fifo holds what a deque holds") {
  constexpr uint64_t kSeed = 20261123;
  std::mt19937_64 random(kSeed);
  Fifo<int> fifo;
  std::deque<int> expected;
  size_t longest = 0;
  for (int i = 0; i < 200'000; ++i) {
    INFO("seed " << kSeed << " step " << i);
    // Grows for a while, then shrinks.
    const bool grows = i / 1'000 % 2 == 0;
    if (random() % 1'000 == 0) {
      fifo.clear();
      expected.clear();
    } else if (random() % 1'000 == 0) {
      const auto odd = [](int value) { return value % 2 != 0; };
      fifo.erase_if(odd);
      std::erase_if(expected, odd);
    } else if (grows && random() % 50 == 0) {
      const auto place = static_cast<ptrdiff_t>(random() % (expected.size() + 1));
      fifo.insert(fifo.begin() + place, i);
      expected.insert(expected.begin() + place, i);
    } else if (random() % 3 == (grows ? 0U : 1U) || (!grows && random() % 3 == 0)) {
      if (!expected.empty() && random() % 4 == 0) {
        fifo.pop_back();
        expected.pop_back();
      } else if (!expected.empty()) {
        fifo.pop_front();
        expected.pop_front();
      }
    } else {
      int& added = fifo.push_back();
      REQUIRE(added == 0);
      added = i;
      expected.push_back(i);
    }
    REQUIRE(fifo.size() == expected.size());
    REQUIRE(fifo.empty() == expected.empty());
    if (!expected.empty()) {
      REQUIRE(fifo.front() == expected.front());
      REQUIRE(fifo.back() == expected.back());
    }
    if (i % 16 == 0) {
      REQUIRE(std::equal(fifo.begin(), fifo.end(), expected.begin(), expected.end()));
    }
    longest = std::max(longest, fifo.size());
  }
  CHECK(longest > 100);
}
