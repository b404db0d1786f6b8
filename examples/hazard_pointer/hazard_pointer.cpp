// A hazard pointer without its fence: hazard_pointer [plain|fenced] [ROUNDS]
//
// A reader announces which node it is about to use, then looks whether the node is still the
// current one. Another thread replaces the node, then looks whether somebody has announced it; if
// not it reclaims the node. One of the two must see the other. On x86 the announcement may still
// sit in the store buffer while the reader looks again: the node is reclaimed while it is used.
// The exchange of the other thread is locked, so only the reader needs a fence.

#include <cstdio>
#include <cstring>
#include <thread>

#include "examples/rounds.h"

namespace {

constexpr auto kRelease = std::memory_order_release;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr uint64_t kEnough = 10;  // stop when this many nodes were reclaimed while in use

alignas(128) std::atomic<uint64_t> current{1};  // a node is a number here
alignas(128) std::atomic<uint64_t> hazard{0};

// Whether the node may be used until the announcement is taken back.
bool protect(uint64_t node, bool fenced) {
  hazard.store(node, kRelease);
  if (fenced) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  return current.load(kAcquire) == node;
}

// Whether the node may be reclaimed.
bool replace(uint64_t node) {
  current.exchange(node + 1);
  return hazard.load(kAcquire) != node;
}

}  // namespace

int main(int argc, char** argv) {
  const bool fenced = argc > 1 && std::strcmp(argv[1], "fenced") == 0;
  const uint64_t most = examples::number_argument(argc, argv, 2, fenced ? 300 : 20'000);

  examples::Rounds rounds(2);
  bool did[2] = {false, false};
  uint64_t done[2] = {0, 0};  // both threads count, alike
  uint64_t both[2] = {0, 0};
  const auto work = [&](uint32_t thread) {
    examples::Rounds::take_processor(thread);
    examples::Results results;
    while (done[thread] < most && both[thread] < kEnough) {
      const uint64_t node = ++done[thread];
      results.flush();
      rounds.begin_round(3 * examples::Rounds::stagger(node, thread));
      if (thread == 0) {
        results.write(node);
      }
      did[thread] = thread == 0 ? protect(node, fenced) : replace(node);
      rounds.begin_round();
      both[thread] += did[0] && did[1] ? 1 : 0;
    }
  };
  std::thread reader(work, 0);
  std::thread writer(work, 1);
  reader.join();
  writer.join();

  std::printf("%llu nodes, reclaimed while in use: %llu\n",
              static_cast<unsigned long long>(done[0]), static_cast<unsigned long long>(both[0]));
  return 0;
}
