// One thread makes new states, the other looks at the latest, in a unit, as readers of configurations
// do: std::atomic<std::shared_ptr>. What the library counts on the way is nothing of the unit's.
//
//   snapshot [parts]
//
// parts: each half of a state has a pointer of its own, and a look may see halves of two states.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>

#include "tsomon.h"

namespace {

struct State {
  long first = 0;
  long second = 0;
};
using Pointer = std::shared_ptr<const State>;

constexpr long kStates = 300;

std::atomic<Pointer> whole{std::make_shared<const State>()};
std::atomic<Pointer> halves[2] = {std::make_shared<const State>(), std::make_shared<const State>()};

void make_state(long i, bool parts) {
  TSOMON_UNIT("make");
  const Pointer next = std::make_shared<const State>(State{i, i});
  if (parts) {
    halves[0].store(next);
    std::this_thread::yield();
    halves[1].store(next);
  } else {
    whole.store(next);
  }
}

bool is_torn(bool parts) {
  TSOMON_UNIT("look");
  if (parts) {
    const Pointer first = halves[0].load();
    std::this_thread::yield();
    const Pointer second = halves[1].load();
    return first->first != second->second;
  }
  const Pointer seen = whole.load();
  const Pointer again = seen;  // counted once more
  return seen->first != again->second;
}

}  // namespace

int main(int argc, char** argv) {
  const bool parts = argc > 1 && std::strcmp(argv[1], "parts") == 0;
  long torn = 0;
  std::atomic<int> ready{0};
  const auto start_together = [&ready] {
    ++ready;
    while (ready.load() != 2) {
    }
  };
  std::thread maker([&start_together, parts] {
    start_together();
    for (long i = 1; i <= kStates; ++i) {
      make_state(i, parts);
    }
  });
  start_together();
  for (long i = 0; i < kStates; ++i) {
    torn += is_torn(parts) ? 1 : 0;
  }
  maker.join();
  std::printf("%ld of %ld states torn\n", torn, kStates);
}
