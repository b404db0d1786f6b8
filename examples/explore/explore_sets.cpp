// Sets whose operations hold their locks for too short a time.
//
//   explore_sets coarse|optimistic|avl none|add|remove|both INITIAL OPERATIONS OPERATIONS...
//   explore_sets coarse add 1 a3 a2c3       # {1}; two threads: add(3); add(2), contains(3)
// Compiled with SETS_AS_OBJECTS it is a program for `explore --clients`, explore_set_clients coarse
// add, say, which looks for clients by itself.
//
// The objects are three of Synchrobench, written anew: a sorted list under one readers-writer lock;
// the optimistic list, which locks two nodes and validates them, with a contains() that takes no
// lock; the tree of Drachsler, Vechev and Yahav (PPoPP 2014), whose nodes are also a sorted list,
// locked node by node. In the variants the lock of add(), remove() or both is taken after what it
// has to protect was read. Each client asserts that its results and the final set are those of some
// order of the operations.
#include <algorithm>
#include <array>
#include <atomic>
#undef NDEBUG  // the assertions are what is explored
#include <cassert>
#include <climits>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#ifdef SETS_AS_OBJECTS
#include <tsomon_client.h>
#else
#include <tsomon.h>
#endif

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

bool late_add = false;     // its lock comes late
bool late_remove = false;  // likewise

class Set {
 public:
  virtual ~Set() = default;
  virtual bool add(int key) = 0;
  virtual bool remove(int key) = 0;
  virtual bool contains(int key) = 0;
};

class CoarseList : public Set {
  struct Node {
    int key;
    std::atomic<Node*> next;
  };

 public:
  bool add(int key) override {
    TSOMON_UNIT("add");
    std::unique_lock<std::shared_mutex> lock(lock_, std::defer_lock);
    if (!late_add) {
      lock.lock();
    }
    Node* before = &head_;
    Node* node = before->next.load(kRelaxed);
    while (node->key < key) {
      before = node;
      node = node->next.load(kRelaxed);
    }
    if (late_add) {
      lock.lock();
    }
    if (node->key == key) {
      return false;
    }
    Node* const made = new Node{key, {node}};
    before->next.store(made, kRelaxed);
    return true;
  }
  bool remove(int key) override {
    TSOMON_UNIT("remove");
    std::unique_lock<std::shared_mutex> lock(lock_, std::defer_lock);
    if (!late_remove) {
      lock.lock();
    }
    Node* before = &head_;
    Node* node = before->next.load(kRelaxed);
    while (node->key < key) {
      before = node;
      node = node->next.load(kRelaxed);
    }
    if (late_remove) {
      lock.lock();
    }
    if (node->key != key) {
      return false;
    }
    before->next.store(node->next.load(kRelaxed), kRelaxed);
    return true;
  }
  bool contains(int key) override {
    TSOMON_UNIT("contains");
    const std::shared_lock<std::shared_mutex> lock(lock_);
    Node* node = head_.next.load(kRelaxed);
    while (node->key < key) {
      node = node->next.load(kRelaxed);
    }
    return node->key == key;
  }

 private:
  Node tail_{INT_MAX, {nullptr}};
  Node head_{INT_MIN, {&tail_}};
  std::shared_mutex lock_;
};

class OptimisticList : public Set {
  struct Node {
    int key;
    std::atomic<Node*> next{nullptr};
    std::atomic<bool> marked{false};
    std::mutex lock{};
  };

 public:
  OptimisticList() { head_.next = &tail_; }
  bool add(int key) override {
    TSOMON_UNIT("add");
    for (;;) {
      Node* before = &head_;
      Node* node = before->next.load(kRelaxed);
      while (node->key < key) {
        before = node;
        node = node->next.load(kRelaxed);
      }
      std::unique_lock<std::mutex> one(before->lock, std::defer_lock);
      std::unique_lock<std::mutex> two(node->lock, std::defer_lock);
      if (!late_add) {
        one.lock();
        two.lock();
      }
      const bool is_valid = !before->marked.load(kRelaxed) && !node->marked.load(kRelaxed) &&
                            before->next.load(kRelaxed) == node;
      if (late_add) {
        one.lock();
        two.lock();
      }
      if (is_valid) {
        if (node->key == key) {
          return false;
        }
        Node* const made = new Node{key};
        made->next.store(node, kRelaxed);
        before->next.store(made, kRelaxed);
        return true;
      }
    }
  }
  bool remove(int key) override {
    TSOMON_UNIT("remove");
    for (;;) {
      Node* before = &head_;
      Node* node = before->next.load(kRelaxed);
      while (node->key < key) {
        before = node;
        node = node->next.load(kRelaxed);
      }
      std::unique_lock<std::mutex> one(before->lock, std::defer_lock);
      std::unique_lock<std::mutex> two(node->lock, std::defer_lock);
      if (!late_remove) {
        one.lock();
        two.lock();
      }
      const bool is_valid = !before->marked.load(kRelaxed) && !node->marked.load(kRelaxed) &&
                            before->next.load(kRelaxed) == node;
      if (late_remove) {
        one.lock();
        two.lock();
      }
      if (is_valid) {
        if (node->key != key) {
          return false;
        }
        node->marked.store(true, kRelaxed);
        before->next.store(node->next.load(kRelaxed), kRelaxed);
        return true;
      }
    }
  }
  bool contains(int key) override {
    TSOMON_UNIT("contains");
    Node* node = head_.next.load(kRelaxed);
    while (node->key < key) {
      node = node->next.load(kRelaxed);
    }
    return node->key == key && !node->marked.load(kRelaxed);
  }

 private:
  Node tail_{INT_MAX};
  Node head_{INT_MIN};
};

// The tree leads a search near the key; the sorted list of all nodes says whether it is there. The
// shape of the tree, balanced by height, has a lock of its own, the innermost one.
class AvlTree : public Set {
  struct Node {
    int key;
    std::atomic<bool> removed{false};
    std::atomic<Node*> next{nullptr};  // the sorted list
    std::atomic<Node*> before{nullptr};
    std::mutex lock{};  // of the step from here to `next`
    std::atomic<Node*> left{nullptr};
    std::atomic<Node*> right{nullptr};
    int height = 1;
  };

 public:
  AvlTree() {
    least_.next = &greatest_;
    greatest_.before = &least_;
  }
  bool add(int key) override {
    TSOMON_UNIT("add");
    for (;;) {
      Node* const before = predecessor(key);
      std::unique_lock<std::mutex> lock(before->lock, std::defer_lock);
      if (!late_add) {
        lock.lock();
      }
      Node* const after = before->next.load(kRelaxed);
      const bool is_valid =
          !before->removed.load(kRelaxed) && before->key < key && key <= after->key;
      if (late_add) {
        lock.lock();
      }
      if (!is_valid) {
        continue;
      }
      if (after->key == key) {
        return false;
      }
      Node* const made = new Node{key};
      made->next.store(after, kRelaxed);
      made->before.store(before, kRelaxed);
      after->before.store(made, kRelaxed);
      before->next.store(made, kRelaxed);
      const std::lock_guard<std::mutex> shape(shape_);
      root_.store(with(root_.load(kRelaxed), made), kRelaxed);
      return true;
    }
  }
  bool remove(int key) override {
    TSOMON_UNIT("remove");
    for (;;) {
      Node* const before = predecessor(key);
      std::unique_lock<std::mutex> lock(before->lock, std::defer_lock);
      if (!late_remove) {
        lock.lock();
      }
      Node* const node = before->next.load(kRelaxed);
      const bool is_valid =
          !before->removed.load(kRelaxed) && before->key < key && key <= node->key;
      if (late_remove) {
        lock.lock();
      }
      if (!is_valid) {
        continue;
      }
      if (node->key != key) {
        return false;
      }
      const std::lock_guard<std::mutex> other(node->lock);
      node->removed.store(true, kRelaxed);
      Node* const after = node->next.load(kRelaxed);
      after->before.store(before, kRelaxed);
      before->next.store(after, kRelaxed);
      const std::lock_guard<std::mutex> shape(shape_);
      root_.store(without(root_.load(kRelaxed), key), kRelaxed);
      return true;
    }
  }
  bool contains(int key) override {
    TSOMON_UNIT("contains");
    Node* node = search(key);
    while (node->key > key) {
      node = node->before.load(kRelaxed);
    }
    while (node->key < key) {
      node = node->next.load(kRelaxed);
    }
    return node->key == key && !node->removed.load(kRelaxed);
  }

 private:
  // Some node near the key: shapes that are being changed lead astray.
  Node* search(int key) {
    Node* found = &least_;
    for (Node* node = root_.load(kRelaxed); node != nullptr;) {
      found = node;
      if (node->key == key) {
        break;
      }
      node = (key < node->key ? node->left : node->right).load(kRelaxed);
    }
    return found;
  }
  // The last node before the key, as far as it can be seen: what the tree does not show yet, the
  // list does.
  Node* predecessor(int key) {
    Node* node = search(key);
    while (node->key >= key || node->removed.load(kRelaxed)) {
      node = node->before.load(kRelaxed);
    }
    for (Node* after = node->next.load(kRelaxed); after->key < key;
         after = node->next.load(kRelaxed)) {
      node = after;
    }
    return node;
  }

  static int height(Node* node) { return node == nullptr ? 0 : node->height; }
  static void measure(Node* node) {
    node->height =
        1 + std::max(height(node->left.load(kRelaxed)), height(node->right.load(kRelaxed)));
  }
  static Node* rotated_right(Node* node) {
    Node* const top = node->left.load(kRelaxed);
    node->left.store(top->right.load(kRelaxed), kRelaxed);
    top->right.store(node, kRelaxed);
    measure(node);
    measure(top);
    return top;
  }
  static Node* rotated_left(Node* node) {
    Node* const top = node->right.load(kRelaxed);
    node->right.store(top->left.load(kRelaxed), kRelaxed);
    top->left.store(node, kRelaxed);
    measure(node);
    measure(top);
    return top;
  }
  static Node* balanced(Node* node) {
    measure(node);
    Node* const left = node->left.load(kRelaxed);
    Node* const right = node->right.load(kRelaxed);
    if (height(left) > height(right) + 1) {
      if (height(left->left.load(kRelaxed)) < height(left->right.load(kRelaxed))) {
        node->left.store(rotated_left(left), kRelaxed);
      }
      return rotated_right(node);
    }
    if (height(right) > height(left) + 1) {
      if (height(right->right.load(kRelaxed)) < height(right->left.load(kRelaxed))) {
        node->right.store(rotated_right(right), kRelaxed);
      }
      return rotated_left(node);
    }
    return node;
  }
  static Node* with(Node* tree, Node* made) {
    if (tree == nullptr) {
      return made;
    }
    std::atomic<Node*>& side = made->key < tree->key ? tree->left : tree->right;
    side.store(with(side.load(kRelaxed), made), kRelaxed);
    return balanced(tree);
  }
  static Node* without(Node* tree, int key) {
    if (tree == nullptr) {
      return nullptr;
    }
    if (tree->key != key) {
      std::atomic<Node*>& side = key < tree->key ? tree->left : tree->right;
      side.store(without(side.load(kRelaxed), key), kRelaxed);
      return balanced(tree);
    }
    Node* const right = tree->right.load(kRelaxed);
    if (right == nullptr) {
      return tree->left.load(kRelaxed);
    }
    Node* least = right;
    while (least->left.load(kRelaxed) != nullptr) {
      least = least->left.load(kRelaxed);
    }
    Node* const rest = without_least(right);
    least->right.store(rest, kRelaxed);
    least->left.store(tree->left.load(kRelaxed), kRelaxed);
    return balanced(least);
  }
  static Node* without_least(Node* tree) {
    Node* const left = tree->left.load(kRelaxed);
    if (left == nullptr) {
      return tree->right.load(kRelaxed);
    }
    tree->left.store(without_least(left), kRelaxed);
    return balanced(tree);
  }

  Node least_{INT_MIN};
  Node greatest_{INT_MAX};
  std::atomic<Node*> root_{nullptr};
  std::mutex shape_;
};

void choose(const std::string& variant) {
  late_add = variant == "add" || variant == "both";
  late_remove = variant == "remove" || variant == "both";
}

#ifdef SETS_AS_OBJECTS

template <typename Object>
int run_clients(int argc, char** argv) {
  return tsomon::Clients<Object>("set")
      .call("add", {1, 2}, [](Object& set, int key) { return set.add(key); })
      .call("remove", {1, 2}, [](Object& set, int key) { return set.remove(key); })
      .call("contains", {1, 2}, [](Object& set, int key) { return set.contains(key); })
      .main(argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  const std::string object = argv[1];
  choose(argv[2]);
  return object == "coarse"       ? run_clients<CoarseList>(argc, argv)
         : object == "optimistic" ? run_clients<OptimisticList>(argc, argv)
         : object == "avl"        ? run_clients<AvlTree>(argc, argv)
                                  : 2;
}

#else

// Operations as letters and keys: a3 adds 3, r3 removes it, c3 asks for it. Results are letters,
// too: 1 or 0.
bool perform(Set& set, char operation, int key) {
  return operation == 'a' ? set.add(key) : operation == 'r' ? set.remove(key) : set.contains(key);
}

class SimpleSet : public Set {
 public:
  bool add(int key) override { return !std::exchange(has_[static_cast<size_t>(key)], true); }
  bool remove(int key) override { return std::exchange(has_[static_cast<size_t>(key)], false); }
  bool contains(int key) override { return has_[static_cast<size_t>(key)]; }

 private:
  std::array<bool, 10> has_{};
};

struct Client {
  std::string initial;
  std::vector<std::string> threads;
};

// What each thread's operations gave, and what is in the set then.
struct Outcome {
  std::array<std::array<char, 8>, 4> results{};
  std::array<bool, 10> content{};
  bool operator==(const Outcome&) const = default;
};

void fill(Set& set, const Client& client) {
  for (const char key : client.initial) {
    set.add(key - '0');
  }
}

// The operations of the client in the order of `turns`, one thread number each.
Outcome in_order(const Client& client, const std::vector<size_t>& turns) {
  SimpleSet set;
  fill(set, client);
  Outcome outcome;
  std::array<size_t, 4> done{};
  for (const size_t thread : turns) {
    const char* const at = client.threads[thread].c_str() + 2 * done[thread];
    outcome.results[thread][done[thread]++] = perform(set, at[0], at[1] - '0') ? '1' : '0';
  }
  for (int key = 0; key < 10; ++key) {
    outcome.content[static_cast<size_t>(key)] = set.contains(key);
  }
  return outcome;
}

std::vector<Outcome> allowed(const Client& client) {
  std::vector<size_t> turns;
  for (size_t thread = 0; thread < client.threads.size(); ++thread) {
    turns.insert(turns.end(), client.threads[thread].size() / 2, thread);
  }
  std::vector<Outcome> outcomes;
  do {
    outcomes.push_back(in_order(client, turns));
  } while (std::next_permutation(turns.begin(), turns.end()));
  return outcomes;
}

std::atomic<char> results[4][8];
const Client* the_client = nullptr;
Set* the_set = nullptr;

void work(size_t number) {
  const std::string& operations = the_client->threads[number];
  for (size_t i = 0; i + 1 < operations.size(); i += 2) {
    const bool result = perform(*the_set, operations[i], operations[i + 1] - '0');
    results[number][i / 2].store(result ? '1' : '0', kRelaxed);
  }
}

// Nothing is captured: what a thread begins with would be several words, written at once while
// others run.
template <size_t kNumber>
std::thread start() {
  return std::thread([] { work(kNumber); });
}
constexpr std::thread (*kStart[4])() = {start<0>, start<1>, start<2>, start<3>};

template <typename Object>
void run(const Client& client) {
  const std::vector<Outcome> right = allowed(client);
  const bool late[2] = {std::exchange(late_add, false), std::exchange(late_remove, false)};
  static Object set;
  fill(set, client);
  late_add = late[0];
  late_remove = late[1];
  the_client = &client;
  the_set = &set;
  std::vector<std::thread> threads;
  for (size_t number = 0; number < client.threads.size(); ++number) {
    threads.push_back(kStart[number]());
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  Outcome outcome;
  for (size_t number = 0; number < client.threads.size(); ++number) {
    for (size_t i = 0; i < client.threads[number].size() / 2; ++i) {
      outcome.results[number][i] = results[number][i].load(kRelaxed);
    }
  }
  for (int key = 0; key < 10; ++key) {
    outcome.content[static_cast<size_t>(key)] = set.contains(key);
  }
  assert(std::find(right.begin(), right.end(), outcome) != right.end());
}

bool is_client(const Client& client) {
  return !client.threads.empty() && client.threads.size() <= 4 &&
         std::all_of(client.threads.begin(), client.threads.end(), [](const std::string& one) {
           return one.size() % 2 == 0 && one.size() <= 16;
         });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    return 2;
  }
  const std::string object = argv[1];
  choose(argv[2]);
  const Client client{argv[3], {argv + 4, argv + argc}};
  if (!is_client(client)) {
    return 2;
  }
  if (object == "coarse") {
    run<CoarseList>(client);
  } else if (object == "optimistic") {
    run<OptimisticList>(client);
  } else if (object == "avl") {
    run<AvlTree>(client);
  } else {
    return 2;
  }
  return 0;
}

#endif
