// Concurrent objects, each with a broken twin, for explore_objects and explore_clients.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <optional>

namespace objects {

// Values are claimed by their places. The early one takes a place without a value for the end.
template <bool kEarly>
class ArrayQueue {
 public:
  void enq(int value) { slots_[static_cast<size_t>(tail_.fetch_add(1))].store(value); }
  std::optional<int> deq() {
    for (;;) {
      int head = head_.load();
      if (head == tail_.load()) {
        return std::nullopt;
      }
      const int value = slots_[static_cast<size_t>(head)].load();
      if (value == 0) {
        if (kEarly) {
          return std::nullopt;
        }
        continue;  // its enq has not come to the value
      }
      if (head_.compare_exchange_strong(head, head + 1)) {
        return value;
      }
    }
  }

 private:
  std::atomic<int> head_{0};
  std::atomic<int> tail_{0};
  std::array<std::atomic<int>, 8> slots_{};
};

// Treiber's; the racy one takes the head without comparing.
template <bool kRacy>
class Stack {
 public:
  void push(int value) {
    Node* const node = new Node{value, head_.load()};
    while (!head_.compare_exchange_weak(node->next, node)) {
    }
  }
  std::optional<int> pop() {
    Node* head = head_.load();
    if (kRacy) {
      if (head != nullptr) {
        head_.store(head->next);
      }
    } else {
      while (head != nullptr && !head_.compare_exchange_weak(head, head->next)) {
      }
    }
    return head == nullptr ? std::nullopt : std::optional(head->value);
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
  bool insert(int key) {
    std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
    if (!kUnlocked) {
      lock.lock();
    }
    std::atomic<Node*>* const place = find(key);
    Node* const next = place->load();
    if (next != nullptr && next->key == key) {
      return false;
    }
    place->store(new Node{key, {next}});
    return true;
  }
  bool remove(int key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::atomic<Node*>* const place = find(key);
    Node* const node = place->load();
    if (node == nullptr || node->key != key) {
      return false;
    }
    place->store(node->next.load());
    return true;
  }
  bool contains(int key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Node* const node = find(key)->load();
    return node != nullptr && node->key == key;
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

// The buffered one returns from a write that may not have committed.
template <bool kBuffered>
class Register {
 public:
  void write(int value) {
    value_.store(value, kBuffered ? std::memory_order_release : std::memory_order_seq_cst);
  }
  int read() { return value_.load(); }

 private:
  std::atomic<int> value_{0};
};

template <bool kRacy>
class Counter {
 public:
  int fetch_add(int more) {
    if (kRacy) {
      const int before = value_.load();
      value_.store(before + more);
      return before;
    }
    return value_.fetch_add(more);
  }

 private:
  std::atomic<int> value_{0};
};

}  // namespace objects
