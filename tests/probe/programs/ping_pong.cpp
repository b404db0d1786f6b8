// Two threads take turns: the true order of all accesses is known.
#include <atomic>
#include <thread>

std::atomic<uint64_t> turn{0};
uint64_t payload = 0;

void play(uint64_t me) {
  for (uint64_t i = me; i < 400; i += 2) {
    while (turn.load(std::memory_order_acquire) != i) {
      std::this_thread::yield();
    }
    payload = payload + 1;
    turn.store(i + 1, std::memory_order_release);
  }
}

int main() {
  std::thread other(play, 1);
  play(0);
  other.join();
}
