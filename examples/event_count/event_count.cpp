// A lost wake-up: event_count [plain|fenced] [ROUNDS]
//
// A producer publishes an item, then looks whether the consumer sleeps and has to be woken. The
// consumer says that it is about to sleep, then looks once more whether there is an item. One of
// the two must see the other; on x86 both stores may still sit in the store buffers while both
// loads are performed: the item lies there, nobody is woken. Submission rings (the kernel side
// polls or sleeps), event counts and futex-based queues have this shape. A fence on both sides
// cures it.

#include <cstdio>
#include <cstring>
#include <thread>

#include "examples/rounds.h"

namespace {

constexpr auto kRelease = std::memory_order_release;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr uint64_t kEnough = 10;  // stop after so many lost wake-ups

alignas(128) std::atomic<uint64_t> published{0};  // items
alignas(128) std::atomic<uint64_t> asleep{0};     // waiting for this item; 0: awake

template <bool kFenced>
void fence() {
  if constexpr (kFenced) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

// Whether the consumer has to be woken.
template <bool kFenced>
bool publish(uint64_t item) {
  published.store(item, kRelease);
  fence<kFenced>();
  return asleep.load(kAcquire) == item;
}

// Whether the consumer really goes to sleep.
template <bool kFenced>
bool prepare_sleep(uint64_t item) {
  asleep.store(item, kRelease);
  fence<kFenced>();
  return published.load(kAcquire) < item;
}

template <bool kFenced>
void run(uint64_t most) {
  examples::Rounds rounds(2);
  bool did[2] = {false, false};
  uint64_t items[2] = {0, 0};  // both threads count, alike
  uint64_t lost[2] = {0, 0};
  const auto work = [&](uint32_t thread) {
    examples::Rounds::take_processor(thread);
    examples::Results results;
    while (items[thread] < most && lost[thread] < kEnough) {
      const uint64_t item = ++items[thread];
      results.flush();
      rounds.begin_round(examples::Rounds::stagger(item, thread));
      results.write(item);
      did[thread] = thread == 0 ? publish<kFenced>(item) : prepare_sleep<kFenced>(item);
      rounds.begin_round();
      lost[thread] += !did[0] && did[1] ? 1 : 0;
    }
  };
  std::thread producer(work, 0);
  std::thread consumer(work, 1);
  producer.join();
  consumer.join();
  std::printf("%llu items, lost wake-ups: %llu\n", static_cast<unsigned long long>(items[0]),
              static_cast<unsigned long long>(lost[0]));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "fenced") == 0) {
    run<true>(examples::number_argument(argc, argv, 2, 300));
  } else {
    run<false>(examples::number_argument(argc, argv, 2, 20'000));
  }
  return 0;
}
