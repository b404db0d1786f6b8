#include "tests/offline/simulated_run.h"

#include <deque>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tsomon::testing {

Trace simulated_run(const RunShape& shape, uint64_t seed,
                    const std::function<uint64_t(uint32_t, uint64_t)>& recorded) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
  Trace trace;
  std::vector<uint64_t> memory(shape.locations, 0);
  std::vector<std::deque<std::pair<uint32_t, uint64_t>>> buffers(shape.threads);
  for (uint32_t location = 0; location < shape.locations; ++location) {
    trace.symbols.names.intern(fmt::format("M[{}]", location));
  }
  for (uint32_t thread = 0; thread < shape.threads; ++thread) {
    trace.symbols.threads.intern(fmt::format("{}", thread));
  }
  uint64_t stores = 0;
  uint32_t reads = 0;
  const auto fresh = [&] {
    ++stores;
    return shape.values == 0 ? stores : stores * 7919 % shape.values;
  };
  const auto seen = [&](uint64_t value) {
    const uint32_t n = reads++;
    return recorded ? recorded(n, value) : value;
  };
  const auto commit = [&](uint32_t thread) {
    memory[buffers[thread].front().first] = buffers[thread].front().second;
    buffers[thread].pop_front();
  };
  while (trace.events.size() < shape.operations) {
    const uint32_t thread = below(shape.threads);
    auto& buffer = buffers[thread];
    if (!buffer.empty() && (buffer.size() > 16 || below(1 + shape.lag) == 0)) {
      commit(thread);
      continue;
    }
    Event event;
    event.thread = thread;
    event.address = below(shape.locations);
    const auto location = static_cast<uint32_t>(event.address);
    const auto place = static_cast<int64_t>(trace.events.size());
    const uint32_t choice = below(100);
    if (choice < 49) {
      event.set_kind(EventKind::kRead);
      uint64_t value = memory[location];
      for (const auto& [where, written] : buffer) {
        value = where == location ? written : value;
      }
      trace.add(event, place, place, seen(value));
    } else if (choice < 98) {
      event.set_kind(EventKind::kWrite);
      const uint64_t value = fresh();
      buffer.emplace_back(location, value);
      trace.add(event, place, place, {}, value);
    } else {
      while (!buffer.empty()) {
        commit(thread);
      }
      if (choice == 98) {
        event.set_kind(EventKind::kFence);
        event.address = 0;
        trace.add(event, place, place);
      } else {
        event.set_kind(EventKind::kReadModifyWrite);
        const uint64_t value = fresh();
        const uint64_t old = std::exchange(memory[location], value);
        trace.add(event, place, place, seen(old), value);
      }
    }
  }
  return trace;
}

}  // namespace tsomon::testing
