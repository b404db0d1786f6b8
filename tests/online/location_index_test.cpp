#include "online/structures/location_index.h"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace tsomon {
namespace {

TEST_CASE("the ranges that overlap are those that a comparison of all finds") {
  std::mt19937_64 random(7);
  const auto below = [&](uint64_t bound) { return random() % bound; };
  for (int round = 0; round < 40; ++round) {
    LocationIndex index;
    std::vector<LocationKey> used;
    std::vector<LocationId> ids;
    const uint64_t top = round % 4 == 0 ? UINT64_MAX - 40'000 : 0x7000'0000'0000;
    for (int step = 0; step < 600; ++step) {
      if (!used.empty() && below(3) == 0) {
        const size_t victim = below(used.size());
        index.erase(ids[victim]);
        used.erase(used.begin() + static_cast<ptrdiff_t>(victim));
        ids.erase(ids.begin() + static_cast<ptrdiff_t>(victim));
      } else {
        LocationKey key{top + below(20'000), 1};
        switch (below(4)) {
          case 0:
            key.size = static_cast<uint32_t>(1 + below(20'000));
            break;
          case 1:
            key.size = static_cast<uint32_t>(1 + below(200));
            break;
          case 2:
            key.size = 8;
            break;
          default:
            key = {below(20), 0};  // named
            break;
        }
        bool is_new = false;
        const LocationId id = index.find_or_add(key.address, key.size, &is_new);
        const auto known = std::find(used.begin(), used.end(), key);
        REQUIRE(is_new == (known == used.end()));
        if (is_new) {
          used.push_back(key);
          ids.push_back(id);
        } else {
          REQUIRE(id == ids[static_cast<size_t>(known - used.begin())]);
        }
      }
      REQUIRE(index.size() == used.size());
      for (size_t i = step % 16; i < used.size(); i += 16) {
        std::vector<LocationId> expected;
        for (size_t other = 0; other < used.size(); ++other) {
          if (other != i && overlap(used[i], used[other])) {
            expected.push_back(ids[other]);
          }
        }
        std::sort(expected.begin(), expected.end());
        REQUIRE(index.key(ids[i]) == used[i]);
        REQUIRE(index.others(ids[i]) == expected);
      }
    }
  }
}

}  // namespace
}  // namespace tsomon
