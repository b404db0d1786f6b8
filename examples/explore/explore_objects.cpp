// Concurrent objects whose operations say where they begin and end, for
// `tsomon explore --property linearizability`.
//
//   explore_objects queue | queue_early_empty | stack | stack_racy | set | set_unlocked |
//                   register | register_buffered | counter | counter_racy | unrelated | nested
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include <tsomon.h>

namespace {

// Values are claimed by their places. The early one takes a place without a value for the end.
template <bool kEarly>
class ArrayQueue {
 public:
  void enq(int value) {
    tsomon_call("enq,%d", value);
    slots_[static_cast<size_t>(tail_.fetch_add(1))].store(value);
    tsomon_return("%s", "");
  }
  int deq() {
    tsomon_call("deq%s", "");
    for (;;) {
      int head = head_.load();
      if (head == tail_.load()) {
        tsomon_return("nil%s", "");
        return 0;
      }
      const int value = slots_[static_cast<size_t>(head)].load();
      if (value == 0) {
        if (kEarly) {
          tsomon_return("nil%s", "");
          return 0;
        }
        continue;  // its enq has not come to the value
      }
      if (head_.compare_exchange_strong(head, head + 1)) {
        tsomon_return("%d", value);
        return value;
      }
    }
  }

 private:
  std::atomic<int> head_{0};
  std::atomic<int> tail_{0};
  std::array<std::atomic<int>, 8> slots_{};
};

template <bool kRacy>
class Stack {
 public:
  void push(int value) {
    tsomon_call("push,%d", value);
    Node* const node = new Node{value, head_.load()};
    while (!head_.compare_exchange_weak(node->next, node)) {
    }
    tsomon_return("%s", "");
  }
  void pop() {
    tsomon_call("pop%s", "");
    Node* head = head_.load();
    if (kRacy) {
      if (head != nullptr) {
        head_.store(head->next);
      }
    } else {
      while (head != nullptr && !head_.compare_exchange_weak(head, head->next)) {
      }
    }
    head == nullptr ? tsomon_return("nil%s", "") : tsomon_return("%d", head->value);
  }

 private:
  struct Node {
    int value;
    Node* next;
  };
  std::atomic<Node*> head_{nullptr};
};

// A sorted list under one lock; the other one looks for the place to insert at without it.
template <bool kUnlocked>
class Set {
 public:
  void insert(int key) {
    tsomon_call("insert,%d", key);
    std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
    if (!kUnlocked) {
      lock.lock();
    }
    std::atomic<Node*>* const place = find(key);
    Node* const next = place->load();
    const bool is_new = next == nullptr || next->key != key;
    if (is_new) {
      Node* const node = new Node{key, {next}};
      place->store(node);
    }
    tsomon_return(is_new ? "true%s" : "false%s", "");
  }
  void remove(int key) {
    tsomon_call("remove,%d", key);
    const std::lock_guard<std::mutex> lock(mutex_);
    std::atomic<Node*>* const place = find(key);
    Node* const node = place->load();
    const bool found = node != nullptr && node->key == key;
    if (found) {
      place->store(node->next.load());
    }
    tsomon_return(found ? "true%s" : "false%s", "");
  }
  void contains(int key) {
    tsomon_call("contains,%d", key);
    const std::lock_guard<std::mutex> lock(mutex_);
    Node* const node = find(key)->load();
    tsomon_return(node != nullptr && node->key == key ? "true%s" : "false%s", "");
  }

 private:
  struct Node {
    int key;
    std::atomic<Node*> next;
  };
  std::atomic<Node*>* find(int key) {
    std::atomic<Node*>* place = &head_;
    for (Node* node = place->load(); node != nullptr && node->key < key; node = place->load()) {
      place = &node->next;
    }
    return place;
  }

  std::mutex mutex_;
  std::atomic<Node*> head_{nullptr};
};

template <bool kBuffered>
class Register {
 public:
  void write(int value) {
    tsomon_call("write,%d", value);
    value_.store(value, kBuffered ? std::memory_order_release : std::memory_order_seq_cst);
    tsomon_return("%s", "");
  }
  void read() {
    tsomon_call("read%s", "");
    const int value = value_.load();
    tsomon_return("%d", value);
  }

 private:
  std::atomic<int> value_{0};
};

template <bool kRacy>
class Counter {
 public:
  void add() {
    tsomon_call("fetch_add,1%s", "");
    const int before = kRacy ? value_.load() : value_.fetch_add(1);
    if (kRacy) {
      value_.store(before + 1);
    }
    tsomon_return("%d", before);
  }

 private:
  std::atomic<int> value_{0};
};

template <typename Queue>
int queue() {
  static Queue queue;
  std::thread other([] {
    queue.enq(2);
    queue.deq();
  });
  queue.enq(1);
  other.join();
  queue.deq();
  return 0;
}

template <typename Stack>
int stack() {
  static Stack stack;
  stack.push(1);
  std::thread other([] { stack.pop(); });
  stack.push(2);
  stack.pop();
  other.join();
  return 0;
}

template <typename Set>
int set() {
  static Set set;
  std::thread other([] {
    set.insert(1);
    set.remove(2);
  });
  set.insert(2);
  set.contains(1);
  other.join();
  return 0;
}

template <typename Register>
int reg() {
  static Register cell;
  std::thread other([] { cell.read(); });
  cell.write(1);
  other.join();
  return 0;
}

template <typename Counter>
int counter() {
  static Counter counter;
  std::thread other([] { counter.add(); });
  std::thread another([] { counter.add(); });
  counter.add();
  other.join();
  another.join();
  return 0;
}

// The only thing that goes wrong needs a second call after the first has returned: the operations
// touch no memory that both threads access.
int unrelated() {
  static std::atomic<int> mine{0};
  static std::atomic<int> theirs{0};
  std::thread other([] {
    tsomon_call("write,2%s", "");
    theirs.store(2);
    tsomon_return("%s", "");
  });
  tsomon_call("read%s", "");
  tsomon_return("%d", mine.load());
  other.join();
  return 0;
}

// An object that is made of another.
int nested() {
  static Register<false> cell;
  std::thread other([] {
    tsomon_call("outer.write,1%s", "");
    cell.write(1);
    tsomon_return("%s", "");
  });
  cell.read();
  other.join();
  cell.read();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  const auto is = [what](const char* name) { return std::strcmp(what, name) == 0; };
  return is("queue")               ? queue<ArrayQueue<false>>()
         : is("queue_early_empty") ? queue<ArrayQueue<true>>()
         : is("stack")             ? stack<Stack<false>>()
         : is("stack_racy")        ? stack<Stack<true>>()
         : is("set")               ? set<Set<false>>()
         : is("set_unlocked")      ? set<Set<true>>()
         : is("register")          ? reg<Register<false>>()
         : is("register_buffered") ? reg<Register<true>>()
         : is("counter")           ? counter<Counter<false>>()
         : is("counter_racy")      ? counter<Counter<true>>()
         : is("unrelated")         ? unrelated()
         : is("nested")            ? nested()
                                   : 2;
}
