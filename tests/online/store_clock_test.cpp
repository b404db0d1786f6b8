#include "online/tso_policy/store_clock.h"

#include <map>
#include <random>

#include <doctest/doctest.h>

using namespace tsomon;

namespace {

// The twin: a number for each thread.
struct PlainClock {
  std::map<ThreadId, uint64_t> stores;

  void raise(ThreadId thread, uint64_t count) { stores[thread] = std::max(stores[thread], count); }
  void join(const PlainClock& other) {
    for (const auto& [thread, count] : other.stores) {
      raise(thread, count);
    }
  }
};

}  // namespace

TEST_CASE("a clock of store numbers is a number for each thread") {
  constexpr uint64_t kSeed = 41;
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 2000; ++round) {
    INFO("seed " << kSeed << " round " << round);
    const auto threads = static_cast<ThreadId>(1 + random() % 12);
    StoreClock clocks[3];
    PlainClock plain[3];
    for (int step = 0; step < 60; ++step) {
      const size_t one = random() % 3;
      const size_t other = random() % 3;
      const auto thread = static_cast<ThreadId>(random() % threads);
      switch (random() % 4) {
        case 0:
        case 1: {
          const uint64_t count = 1 + random() % 100;
          clocks[one].raise(thread, count);
          plain[one].raise(thread, count);
          break;
        }
        case 2:
          clocks[one].join(clocks[other]);
          plain[one].join(plain[other]);
          break;
        default: {
          const uint64_t gone = random();
          const auto is_past = [&](ThreadId id) { return (gone >> id & 3) == 0; };
          clocks[one].forget_if(is_past);
          std::erase_if(plain[one].stores, [&](const auto& entry) { return is_past(entry.first); });
        }
      }
      REQUIRE(clocks[one].size() == plain[one].stores.size());
      for (ThreadId id = 0; id <= threads; ++id) {
        const auto at = plain[one].stores.find(id);
        REQUIRE(clocks[one].of(id) == (at == plain[one].stores.end() ? 0 : at->second));
      }
    }
  }
}
