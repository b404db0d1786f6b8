// A hash map in parts, each under a lock, two threads without an end; for each line that comes, how much they have done. Threads that meet all
// the time are faster when something disturbs them, so these seldom meet; and a thread that never comes to a function is not watched.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace {

struct Part {
  std::mutex mutex;
  std::unordered_map<uint64_t, uint64_t> map;
};
std::array<Part, 64> parts;
std::atomic<uint64_t> done[2];
std::atomic<bool> end{false};

[[gnu::noinline]] void add(uint64_t key, uint64_t number) {
  Part& part = parts[key % parts.size()];
  const std::lock_guard<std::mutex> guard(part.mutex);
  part.map[key] += number;
}

void work(uint64_t thread) {
  constexpr uint64_t kRound = 4096;
  uint64_t random = thread;
  for (uint64_t i = 0; !end.load(std::memory_order_relaxed);) {
    for (const uint64_t next = i + kRound; i < next; ++i) {
      random = random * 6364136223846793005U + 1442695040888963407U;
      add(random >> 52, i);
    }
    done[thread].store(i, std::memory_order_relaxed);
  }
}

}  // namespace

int main() {
  std::thread one(work, 0);
  std::thread other(work, 1);
  while (std::getchar() != EOF) {
    std::printf("%lu\n", done[0].load() + done[1].load());
    std::fflush(stdout);
  }
  end.store(true);
  one.join();
  other.join();
  return 0;
}
