// Lost updates of a plain counter by units with a hundred other plain accesses in between, in 100
// rounds that both threads begin together. For the study of verdicts.
#include <cstdint>
#include <thread>

#include "examples/rounds.h"
#include "tsomon.h"

volatile uint64_t counter = 0;
volatile uint64_t own[2][128];

int main() {
  examples::Rounds rounds(2);
  const auto work = [&](uint32_t me) {
    examples::Rounds::take_processor(me);
    for (int round = 0; round < 100; ++round) {
      rounds.begin_round();
      TSOMON_UNIT("add");
      const uint64_t seen = counter;
      for (int i = 0; i < 100; ++i) {
        own[me][i] = seen;
      }
      counter = seen + 1;
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
}
