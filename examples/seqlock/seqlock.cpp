// A sequence lock: seqlock [checked|unchecked] [ROUNDS]
//
// One thread writes two values, between two changes of a sequence number that is odd meanwhile.
// The other reads both without a lock and looks whether the number is still the even one that it
// was before. If not, what it read is thrown away and it tries again: that attempt is no unit. With
// `unchecked` it takes whatever it read.
//
// The writer's unit is its data alone: a reader may see the number odd, and the one value of a
// write without the other, if that read comes to nothing. What it read then counts one access at a
// time. It reads the values in the opposite order, in which stores cannot be seen the wrong way
// round.

#include <cstdio>
#include <cstring>
#include <thread>

#include <tsomon.h>

#include "examples/rounds.h"

namespace {

struct Pair {
  uint64_t first;
  uint64_t second;
};

class SequenceLock {
 public:
  void write(uint64_t value) {
    const uint64_t sequence = sequence_.load(std::memory_order_relaxed);
    sequence_.store(sequence + 1, std::memory_order_relaxed);
    {
      TSOMON_UNIT("write");
      first_.store(value, std::memory_order_release);
      examples::think(3);
      second_.store(value, std::memory_order_release);
    }
    sequence_.store(sequence + 2, std::memory_order_release);
  }

  // False: another thread wrote meanwhile.
  bool try_read(bool checked, Pair* pair) {
    TSOMON_UNIT("read");
    const uint64_t before = sequence_.load(std::memory_order_acquire);
    if (checked && before % 2 != 0) {  // being written: what follows would see it half done
      TSOMON_UNIT_CANCEL();
      return false;
    }
    pair->second = second_.load(std::memory_order_acquire);
    examples::think(3);
    pair->first = first_.load(std::memory_order_acquire);
    if (checked && sequence_.load(std::memory_order_relaxed) != before) {
      TSOMON_UNIT_CANCEL();
      return false;
    }
    return true;
  }

 private:
  alignas(128) std::atomic<uint64_t> sequence_{0};
  alignas(128) std::atomic<uint64_t> first_{0};
  alignas(128) std::atomic<uint64_t> second_{0};
};

}  // namespace

int main(int argc, char** argv) {
  const bool checked = argc < 2 || std::strcmp(argv[1], "unchecked") != 0;
  const uint64_t count = examples::number_argument(argc, argv, 2, 300);
  SequenceLock lock;
  examples::Rounds rounds(2);
  uint64_t failed = 0;
  uint64_t mixed = 0;
  std::thread writer([&] {
    examples::Rounds::take_processor(1);
    for (uint64_t round = 1; round <= count; ++round) {
      rounds.begin_round(examples::Rounds::stagger(round, 1));
      lock.write(round);
    }
  });
  examples::Rounds::take_processor(0);
  for (uint64_t round = 1; round <= count; ++round) {
    rounds.begin_round(examples::Rounds::stagger(round, 0));
    Pair pair{};
    while (!lock.try_read(checked, &pair)) {
      ++failed;
    }
    mixed += pair.first != pair.second ? 1 : 0;
  }
  writer.join();
  std::printf("%llu reads, %llu attempts failed, %llu saw one value without the other\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(failed),
              static_cast<unsigned long long>(mixed));
  return 0;
}
