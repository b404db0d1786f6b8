#include "tso/support/nearby.h"

#include <random>

#include <doctest/doctest.h>

using namespace tsomon;

TEST_CASE("a search from nearby finds what one from anywhere finds, in few steps") {
  std::mt19937_64 random(27);
  for (int round = 0; round < 20'000; ++round) {
    const auto size = static_cast<uint32_t>(random() % 200);
    const auto answer = static_cast<uint32_t>(random() % (size + 1));
    auto near = static_cast<uint32_t>(random() % 220);
    const uint32_t distance = std::max(near, answer) - std::min(near, answer);
    uint32_t asked = 0;
    const uint32_t found = first_without(size, &near, [&](uint32_t place) {
      REQUIRE(place < size);
      ++asked;
      return place < answer;
    });
    REQUIRE(found == answer);
    REQUIRE(near == answer);
    uint32_t steps = 4;  // twice the logarithm of the distance, and some
    for (uint32_t reach = 1; reach <= distance; reach *= 2) {
      steps += 2;
    }
    REQUIRE(asked <= steps);
  }
}
