// Objects whose operations are not linearizable, with the calls that show it, for `tsomon
// critical-races`: which races decide that it goes wrong.
//
//   explore_races pair_snapshot | lock_free_list | optimistic_queue | snark | simple_list |
//   linked_list | adjacent
//
// But for the last, the objects are those of the published evaluations of critical race sequences; each client
// asserts what every order of the calls would give.
#include <atomic>
#undef NDEBUG  // the assertions are what is explored
#include <cassert>
#include <climits>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

// Two numbers that are read without a lock: again until the first one did not change.
namespace pair_snapshot {
std::atomic<int> d[2] = {1, 1};

void write(int i, int value) { d[i].store(value, kRelaxed); }

void read(int* x, int* y) {
  do {
    *x = d[0].load(kRelaxed);
    *y = d[1].load(kRelaxed);
  } while (*x != d[0].load(kRelaxed));
}

void run() {
  std::thread writer([] {
    write(0, 2);
    write(1, 2);
    write(1, 1);
    write(0, 1);
  });
  std::thread reader([] {
    int x = 0;
    int y = 0;
    read(&x, &y);
    assert(!(x == 1 && y == 2));  // the pair was never that
  });
  writer.join();
  reader.join();
}
}  // namespace pair_snapshot

// A list without locks. A node is deleted by a mark in its next pointer, the lowest bit here.
// attempt_mark() also succeeds where the mark was there before.
namespace lock_free_list {
struct Node {
  int key;
  std::atomic<uintptr_t> next;
};
Node tail{INT_MAX, {0}};
Node one{1, {reinterpret_cast<uintptr_t>(&tail)}};
Node head{INT_MIN, {reinterpret_cast<uintptr_t>(&one)}};

Node* node_of(uintptr_t link) { return reinterpret_cast<Node*>(link & ~uintptr_t{1}); }

bool attempt_mark(Node* node, uintptr_t expected) {
  uintptr_t link = node->next.load(kRelaxed);
  if (node_of(link) != node_of(expected)) {
    return false;
  }
  return (link & 1) != 0 || node->next.compare_exchange_strong(link, link | 1);
}

// The first node that does not come before the key, and the one before it. Marked nodes are taken
// out on the way.
std::pair<Node*, Node*> find(int key) {
  for (;;) {
    Node* before = &head;
    Node* node = node_of(before->next.load(kRelaxed));
    for (;;) {
      const uintptr_t link = node == &tail ? 0 : node->next.load(kRelaxed);
      auto old = reinterpret_cast<uintptr_t>(node);
      if ((link & 1) != 0) {
        if (!before->next.compare_exchange_strong(old, link & ~uintptr_t{1})) {
          break;
        }
        node = node_of(link);
        continue;
      }
      if (node->key >= key) {
        return {before, node};
      }
      before = node;
      node = node_of(link);
    }
  }
}

bool remove(int key) {
  for (;;) {
    const auto [before, node] = find(key);
    if (node->key != key) {
      return false;
    }
    const uintptr_t after = node->next.load(kRelaxed) & ~uintptr_t{1};
    if (!attempt_mark(node, after)) {
      continue;
    }
    auto link = reinterpret_cast<uintptr_t>(node);
    before->next.compare_exchange_strong(link, after);
    return true;
  }
}

void run() {
  bool removed[2] = {};
  std::thread one([&] { removed[0] = remove(1); });
  std::thread other([&] { removed[1] = remove(1); });
  one.join();
  other.join();
  assert(removed[0] != removed[1]);
}
}  // namespace lock_free_list

// A queue whose poll() does not look whether it was the one that moved the head.
namespace optimistic_queue {
struct Node {
  int item;
  Node* next;
};
Node two{2, nullptr};
Node one{1, &two};
std::atomic<Node*> head{&one};

bool cas_head(Node* from, Node* to) { return head.compare_exchange_strong(from, to); }

int poll() {
  Node* const first = head.load(kRelaxed);
  const int item = first->item;
  cas_head(first, first->next);
  return item;
}

void run() {
  int taken[2] = {};
  std::thread one([&] { taken[0] = poll(); });
  std::thread other([&] { taken[1] = poll(); });
  one.join();
  other.join();
  assert(taken[0] != taken[1]);
}
}  // namespace optimistic_queue

// The deque Snark, which needs a compare-and-swap of two places (Detlefs et al., DISC 2000). That
// and every other access is made under one lock, so that each is one step.
namespace snark {
struct Node {
  Node* l;
  Node* r;
  int value;
};
std::mutex memory;
Node dummy{&dummy, &dummy, 0};
Node first{&dummy, &dummy, 1};
Node* left_hat = &first;
Node* right_hat = &first;
constexpr int kEmpty = -1;

#define ATOMICALLY(expression)                     \
  [&] {                                            \
    const std::lock_guard<std::mutex> one(memory); \
    return expression;                             \
  }()

bool dcas(Node** a, Node** b, Node* old_a, Node* old_b, Node* new_a, Node* new_b) {
  if (*a != old_a || *b != old_b) {
    return false;
  }
  *a = new_a;
  *b = new_b;
  return true;
}

int pop_right() {
  for (;;) {
    Node* const rh = ATOMICALLY(right_hat);
    Node* const lh = ATOMICALLY(left_hat);
    if (ATOMICALLY(rh->r) == rh) {
      return kEmpty;
    }
    if (rh == lh) {
      if (ATOMICALLY(dcas(&right_hat, &left_hat, rh, lh, &dummy, &dummy))) {
        return rh->value;
      }
    } else {
      Node* const next = ATOMICALLY(rh->l);
      if (ATOMICALLY(dcas(&right_hat, &rh->l, rh, next, next, rh))) {
        const int value = rh->value;
        ATOMICALLY(rh->r = &dummy);
        return value;
      }
    }
  }
}

int pop_left() {
  for (;;) {
    Node* const lh = ATOMICALLY(left_hat);
    Node* const rh = ATOMICALLY(right_hat);
    if (ATOMICALLY(lh->l) == lh) {
      return kEmpty;
    }
    if (lh == rh) {
      if (ATOMICALLY(dcas(&left_hat, &right_hat, lh, rh, &dummy, &dummy))) {
        return lh->value;
      }
    } else {
      Node* const next = ATOMICALLY(lh->r);
      if (ATOMICALLY(dcas(&left_hat, &lh->r, lh, next, next, lh))) {
        const int value = lh->value;
        ATOMICALLY(lh->l = &dummy);
        return value;
      }
    }
  }
}

void push_right(int value) {
  Node* const node = new Node{&dummy, &dummy, value};
  for (;;) {
    Node* const rh = ATOMICALLY(right_hat);
    Node* const next = ATOMICALLY(rh->r);
    if (next == rh) {
      node->l = &dummy;
      Node* const lh = ATOMICALLY(left_hat);
      if (ATOMICALLY(dcas(&right_hat, &left_hat, rh, lh, node, node))) {
        return;
      }
    } else {
      node->l = rh;
      if (ATOMICALLY(dcas(&right_hat, &rh->r, rh, next, node, node))) {
        return;
      }
    }
  }
}

void run() {
  int right = 0;
  int left = 0;
  std::thread one([&] { right = pop_right(); });
  std::thread other([&] {
    push_right(2);
    left = pop_left();
  });
  one.join();
  other.join();
  assert((right == 1 && left == 2) || (right == 2 && left == 1));
}
}  // namespace snark

// A sorted list without any synchronisation.
namespace simple_list {
struct Node {
  int value;
  std::atomic<Node*> next;
};
Node tail{INT_MAX, {nullptr}};
Node one{1, {&tail}};
Node head{INT_MIN, {&one}};

void add(int value) {
  Node* before = &head;
  Node* after = before->next.load(kRelaxed);
  while (after->value < value) {
    before = after;
    after = before->next.load(kRelaxed);
  }
  before->next.store(new Node{value, {after}}, kRelaxed);
}

bool contains(int value) {
  Node* node = head.next;
  while (node->value < value) {
    node = node->next;
  }
  return node->value == value;
}

void run() {
  std::thread one([] { add(3); });
  std::thread other([] { add(4); });
  one.join();
  other.join();
  assert(contains(3) && contains(4));
}
}  // namespace simple_list

// A list whose changes are made under a lock, and whose size() is not.
namespace linked_list {
struct Node {
  int value;
  std::atomic<Node*> next;
};
Node tail{0, {nullptr}};
Node five{5, {&tail}};
Node one{1, {&five}};
Node head{0, {&one}};
std::mutex lock;

void remove(int value) {
  const std::lock_guard<std::mutex> mine(lock);
  Node* before = &head;
  Node* node = before->next.load(kRelaxed);
  while (node != &tail && node->value != value) {
    before = node;
    node = node->next.load(kRelaxed);
  }
  if (node != &tail) {
    before->next.store(node->next.load(kRelaxed), kRelaxed);
  }
}

void add(int value) {
  const std::lock_guard<std::mutex> mine(lock);
  Node* last = &head;
  for (Node* next = last->next.load(kRelaxed); next != &tail; next = last->next.load(kRelaxed)) {
    last = next;
  }
  last->next.store(new Node{value, {&tail}}, kRelaxed);
}

int size() {
  int count = 0;
  for (Node* node = head.next.load(kRelaxed); node != &tail; node = node->next.load(kRelaxed)) {
    ++count;
  }
  return count;
}

void run() {
  std::thread changer([] {
    remove(1);
    add(9);
  });
  std::thread counter([] {
    const int count = size();
    assert(count == 1 || count == 2);  // there were never more
  });
  changer.join();
  counter.join();
}
}  // namespace linked_list

// Two variables of one word: no two accesses conflict, and it is always wrong.
namespace adjacent {
alignas(8) int both[2] = {0, 0};

void run() {
  std::thread first([] { both[0] = 1; });
  std::thread second([] { both[1] = 1; });
  first.join();
  second.join();
  assert(both[0] + both[1] == 3);
}
}  // namespace adjacent

struct Client {
  const char* name;
  void (*run)();
};
constexpr Client kClients[] = {
    {"pair_snapshot", pair_snapshot::run},
    {"lock_free_list", lock_free_list::run},
    {"optimistic_queue", optimistic_queue::run},
    {"snark", snark::run},
    {"simple_list", simple_list::run},
    {"linked_list", linked_list::run},
    {"adjacent", adjacent::run},
};

}  // namespace

int main(int argc, char** argv) {
  for (const Client& client : kClients) {
    if (argc == 2 && std::strcmp(argv[1], client.name) == 0) {
      client.run();
      return 0;
    }
  }
  return 2;
}
