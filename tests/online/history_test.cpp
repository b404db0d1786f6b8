// Blocks that the history takes over against blocks that it copies.
#include "online/history.h"

#include <algorithm>
#include <random>

#include <doctest/doctest.h>

using namespace tsomon;

TEST_CASE("a history that takes blocks over holds what one that copies them holds") {
  std::mt19937_64 random(std::random_device{}());
  const uint64_t seed = random();
  CAPTURE(seed);
  random.seed(seed);
  for (int round = 0; round < 40; ++round) {
    const uint64_t capacity = 1 + random() % 20'000;
    History copies(capacity);
    History takes(capacity);
    EventBlock block;
    uint64_t first = 0;
    std::vector<uint64_t> starts;
    for (int i = 0; i < 30; ++i) {
      first += i > 0 && random() % 4 == 0 ? random() % 3 : 0;  // a gap
      const size_t size = i == 0 ? 1 : random() % 2 == 0 ? random() % 16 : random() % 6000;
      for (size_t e = 0; e < size; ++e) {
        Event event;
        event.set_kind(random() % 2 == 0 ? EventKind::kWrite : EventKind::kFence);
        event.address = random() % 8;
        const auto time = static_cast<int64_t>(first + e);
        block.add(event, time, time, {},
                  random() % 3 == 0 ? std::optional(random()) : std::nullopt);
      }
      starts.push_back(first);
      copies.add(block, first);
      takes.take(std::move(block), first);
      CHECK(block.events.empty());
      CHECK(block.extras.empty());
      first += size;
    }
    for (const uint64_t from : starts) {
      // A slice looks back to the latest fence of its thread, which is not further than this.
      const uint64_t back = from - std::min<uint64_t>(from, 200);
      if (!copies.contains(back) || !takes.contains(back) || from >= first) {
        CHECK((back + capacity < first || from >= first));
        continue;
      }
      const auto expected = copies.slice(from, first - 1, kinds::kDrains);
      const auto slice = takes.slice(from, first - 1, kinds::kDrains);
      REQUIRE(slice.index == expected.index);
      CHECK(slice.all_stores == expected.all_stores);
      bool equal = true;
      for (size_t e = 0; e < slice.index.size(); ++e) {
        const Event& event = slice.events.events[e];
        const Event& other = expected.events.events[e];
        equal = equal && event.address == other.address && event.lo == other.lo &&
                slice.events.write_value(event) == expected.events.write_value(other);
      }
      CHECK(equal);
    }
  }
}
