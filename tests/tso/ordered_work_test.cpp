#include "tso/support/ordered_work.h"

#include <chrono>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

using namespace tsomon;

TEST_CASE("results are taken up in order, whoever computed them") {
  for (const unsigned threads : {1U, 2U, 5U}) {
    for (const size_t count : {0U, 1U, 3U, 200U}) {
      std::vector<size_t> taken;
      std::vector<std::thread::id> computed_by(count);
      uint64_t committed = 0;
      work_in_order(
          count, threads,
          [&](size_t i) {
            computed_by[i] = std::this_thread::get_id();
            std::this_thread::sleep_for(std::chrono::microseconds(i % 7 == 0 ? 3000 : 100));
            return i * i;
          },
          [&](size_t i, size_t&& result) {
            taken.push_back(i);
            committed += result == i * i ? 1 : 0;
          });
      REQUIRE(committed == count);
      REQUIRE(taken.size() == count);
      for (size_t i = 0; i < count; ++i) {
        REQUIRE(taken[i] == i);
      }
      const std::set<std::thread::id> workers(computed_by.begin(), computed_by.end());
      REQUIRE(workers.size() <= threads);
      if (count == 200) {
        REQUIRE((threads == 1) == (workers.size() == 1));
      }
    }
  }
}
