// A lock that is handed over (MCS), whose functions are named by the option lock=, one that is left by an exception, and a try.
// Units are whole functions.
#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#ifdef __clang__
#define OUT \
  __attribute__((noinline, used))  // used: else clang leaves arguments out that are always the same
#else
#define OUT __attribute__((noipa))
#endif

namespace {

struct Node {
  std::atomic<Node*> next{nullptr};
  std::atomic<bool> waits{false};
};
struct Queue {
  std::atomic<Node*> last{nullptr};
} queue;
std::atomic<int> door{1};
long first;
long second;

OUT void queue_lock(Queue* lock, Node* mine, bool throws) {
  if (throws) {
    throw std::runtime_error("not now");
  }
  mine->next.store(nullptr);
  mine->waits.store(true);
  if (Node* const before = lock->last.exchange(mine); before != nullptr) {
    before->next.store(mine);
    while (mine->waits.load()) {
      std::this_thread::yield();
    }
  }
}
OUT void queue_unlock(Queue* lock, Node* mine) {
  if (mine->next.load() == nullptr) {
    Node* last = mine;
    if (lock->last.compare_exchange_strong(last, nullptr)) {
      return;
    }
    while (mine->next.load() == nullptr) {
      std::this_thread::yield();
    }
  }
  mine->next.load()->waits.store(false);
}
OUT bool try_enter(std::atomic<int>* at) { return at->exchange(0) != 0; }
OUT void leave(std::atomic<int>* at) { at->store(1); }

void work() {
  first = first + 1;
  second = second + 1;
  if (first != second) {
    std::abort();
  }
}

OUT void unit_queue() {
  Node mine;
  try {
    queue_lock(&queue, &mine, true);
  } catch (const std::runtime_error&) {
  }
  queue_lock(&queue, &mine, false);
  work();
  queue_unlock(&queue, &mine);
}
OUT void unit_door() {
  while (!try_enter(&door)) {
    std::this_thread::yield();
  }
  work();
  leave(&door);
}

}  // namespace

int main(int argc, char**) {
  const auto loop = [argc] {
    for (int i = 0; i < 500; ++i) {
      argc > 1 ? unit_door() : unit_queue();
    }
  };
  std::thread a(loop);
  std::thread b(loop);
  a.join();
  b.join();
}
