// A hash map under a lock, two threads. Prints the seconds of the work.
#include <mutex>
#include <unordered_map>

#include "tests/bench/probe/two_threads.h"

int main(int argc, char** argv) {
  std::mutex mutex;
  std::unordered_map<uint64_t, uint64_t> map;
  const uint64_t count = 40000 * scale(argc, argv);
  run_two_threads([&](uint64_t thread) {
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t key = (i * 2654435761U + thread) % 4096;
      const std::lock_guard<std::mutex> guard(mutex);
      map[key] += i;
    }
  });
  return map.size() == 4096 ? 0 : 1;
}
