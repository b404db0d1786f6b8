// Concurrent containers with two or three calls each.
//
//   explore_containers treiber | treiber_racy | queue | queue_racy | chase_lev | chase_lev_fenced |
//                      ring | ring_shared | treiber_push | queue_pop
//
// Blocks that were freed are not used again in an exploration, so no ABA comes from the allocator.
#include <atomic>
#undef NDEBUG  // the assertions are what is explored
#include <cassert>
#include <cstring>
#include <thread>

#include <tsomon.h>

namespace {

struct Node {
  int value;
  std::atomic<Node*> next{nullptr};
  explicit Node(int v) : value(v) {}
};

// Treiber's stack; the racy one takes the head without comparing.
template <bool kRacy>
class Stack {
 public:
  void push(int value) {
    Node* const node = new Node(value);
    Node* head = head_.load(std::memory_order_relaxed);
    do {
      node->next.store(head, std::memory_order_relaxed);
    } while (!head_.compare_exchange_weak(head, node, std::memory_order_release,
                                          std::memory_order_relaxed));
  }
  int pop() {
    Node* head = head_.load(std::memory_order_acquire);
    if (kRacy) {
      if (head != nullptr) {
        head_.store(head->next.load(std::memory_order_relaxed), std::memory_order_release);
      }
      return head == nullptr ? 0 : head->value;
    }
    while (head != nullptr &&
           !head_.compare_exchange_weak(head, head->next.load(std::memory_order_relaxed),
                                        std::memory_order_acquire, std::memory_order_acquire)) {
    }
    return head == nullptr ? 0 : head->value;
  }

 private:
  std::atomic<Node*> head_{nullptr};
};

// Michael and Scott's queue; the racy one links without comparing.
template <bool kRacy>
class Queue {
 public:
  Queue() : head_(new Node(0)), tail_(head_.load()) {}
  void push(int value) {
    Node* const node = new Node(value);
    for (;;) {
      Node* tail = tail_.load(std::memory_order_acquire);
      Node* next = tail->next.load(std::memory_order_acquire);
      if (next != nullptr) {
        tail_.compare_exchange_strong(tail, next, std::memory_order_release);
        continue;
      }
      if (kRacy) {
        tail->next.store(node, std::memory_order_release);
        tail_.store(node, std::memory_order_release);
        return;
      }
      if (tail->next.compare_exchange_strong(next, node, std::memory_order_release)) {
        tail_.compare_exchange_strong(tail, node, std::memory_order_release);
        return;
      }
    }
  }
  int pop() {
    for (;;) {
      Node* head = head_.load(std::memory_order_acquire);
      Node* tail = tail_.load(std::memory_order_acquire);
      Node* const next = head->next.load(std::memory_order_acquire);
      if (next == nullptr) {
        return 0;
      }
      if (head == tail) {
        tail_.compare_exchange_strong(tail, next, std::memory_order_release);
        continue;
      }
      if (head_.compare_exchange_strong(head, next, std::memory_order_acq_rel)) {
        return next->value;
      }
    }
  }

 private:
  std::atomic<Node*> head_;
  std::atomic<Node*> tail_;
};

template <typename Container>
int two_pushes() {
  static Container container;
  std::thread other([] { container.push(2); });
  container.push(1);
  other.join();
  const int a = container.pop();
  const int b = container.pop();
  assert(a + b == 3 && "a value is lost");
  tsomon_outcome("%d %d", a, b);
  return 0;
}

template <typename Container>
int two_pops() {
  static Container container;
  static int theirs = 0;
  container.push(1);
  container.push(2);
  std::thread other([] { theirs = container.pop(); });
  const int mine = container.pop();
  other.join();
  assert(mine + theirs == 3 && "a value is taken twice");
  tsomon_outcome("%d %d", mine, theirs);
  return 0;
}

// Chase and Lev's deque: the owner takes at the bottom, a thief at the top. The owner's store of
// bottom must have committed before it reads top.
class Deque {
 public:
  explicit Deque(bool fenced) : fenced_(fenced) {}
  void push(int value) {
    const int bottom = bottom_.load(std::memory_order_relaxed);
    buffer_[bottom].store(value, std::memory_order_relaxed);
    bottom_.store(bottom + 1, std::memory_order_release);
  }
  int take() {
    const int bottom = bottom_.load(std::memory_order_relaxed) - 1;
    bottom_.store(bottom, std::memory_order_relaxed);
    if (fenced_) {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    int top = top_.load(std::memory_order_relaxed);
    if (top > bottom) {
      bottom_.store(bottom + 1, std::memory_order_relaxed);
      return 0;
    }
    const int value = buffer_[bottom].load(std::memory_order_relaxed);
    if (top == bottom) {
      const bool mine = top_.compare_exchange_strong(top, top + 1);
      bottom_.store(bottom + 1, std::memory_order_relaxed);
      return mine ? value : 0;
    }
    return value;
  }
  int steal() {
    int top = top_.load(std::memory_order_acquire);
    if (top >= bottom_.load(std::memory_order_acquire)) {
      return 0;
    }
    const int value = buffer_[top].load(std::memory_order_relaxed);
    return top_.compare_exchange_strong(top, top + 1) ? value : 0;
  }

 private:
  const bool fenced_;
  std::atomic<int> top_{0};
  std::atomic<int> bottom_{0};
  std::atomic<int> buffer_[4] = {};
};

int chase_lev(bool fenced) {
  static Deque deque(fenced);
  static int stolen = 0;
  deque.push(1);
  deque.push(2);
  std::thread thief([] {
    stolen = deque.steal();
    stolen += 10 * deque.steal();
  });
  const int a = deque.take();
  const int b = deque.take();
  thief.join();
  const int first = stolen % 10;
  const int second = stolen / 10;
  assert((a == 0 || (a != b && a != first && a != second)) &&
         (b == 0 || (b != first && b != second)) && "a task is taken twice");
  tsomon_outcome("owner %d %d thief %d %d", a, b, first, second);
  return 0;
}

// A ring with one producer and one consumer; the shared one has two producers, which it cannot
// have.
class Ring {
 public:
  bool push(int value) {
    const int tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) == 2) {
      return false;
    }
    slots_[tail % 2] = value;
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }
  int pop() {
    const int head = head_.load(std::memory_order_relaxed);
    if (tail_.load(std::memory_order_acquire) == head) {
      return 0;
    }
    const int value = slots_[head % 2];
    head_.store(head + 1, std::memory_order_release);
    return value;
  }

 private:
  std::atomic<int> head_{0};
  std::atomic<int> tail_{0};
  int slots_[2] = {};
};

int ring(bool shared) {
  static Ring ring;
  if (shared) {
    std::thread other([] { ring.push(2); });
    ring.push(1);
    other.join();
    const int a = ring.pop();
    assert(a + ring.pop() == 3 && "a value is lost");
    return 0;
  }
  std::thread producer([] {
    ring.push(1);
    ring.push(2);
  });
  const int a = ring.pop();
  const int b = ring.pop();
  producer.join();
  assert((a == 0 || a == 1) && (b == 0 || b == a + 1));
  tsomon_outcome("%d %d", a, b);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  const auto is = [what](const char* name) { return std::strcmp(what, name) == 0; };
  return is("treiber")            ? two_pops<Stack<false>>()
         : is("treiber_racy")     ? two_pops<Stack<true>>()
         : is("treiber_push")     ? two_pushes<Stack<false>>()
         : is("queue")            ? two_pushes<Queue<false>>()
         : is("queue_racy")       ? two_pushes<Queue<true>>()
         : is("queue_pop")        ? two_pops<Queue<false>>()
         : is("chase_lev")        ? chase_lev(false)
         : is("chase_lev_fenced") ? chase_lev(true)
         : is("ring")             ? ring(false)
         : is("ring_shared")      ? ring(true)
                                  : 2;
}
