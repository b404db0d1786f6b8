// A list that two threads append to. Finding the last node and linking the new one to it are each
// under the lock, but not both together: nodes are lost.

#include <mutex>

#include "examples/kernels/kernel.h"

namespace {

constexpr int64_t kMaxLength = 4;

struct Node {
  Node* next = nullptr;
};

class List {
 public:
  explicit List(bool buggy) : buggy_(buggy) {}

  void append(Node& node) {
    TSOMON_UNIT("append;list");
    std::unique_lock<std::mutex> lock(mutex_);
    Node* last = &head_;
    while (last->next != nullptr) {
      last = last->next;
    }
    kernels::let_go(buggy_, lock);
    last->next = &node;
    ++appended_;
  }

  // Forgets all nodes once there are some, counting those that the list still leads to.
  void clear_when_long() {
    TSOMON_UNIT("clear;list");
    const std::lock_guard<std::mutex> lock(mutex_);
    if (appended_ < kMaxLength) {
      return;
    }
    for (const Node* node = head_.next; node != nullptr; node = node->next) {
      --appended_;
    }
    lost_ += appended_ > 0 ? static_cast<uint64_t>(appended_) : 0;
    appended_ = 0;
    head_.next = nullptr;
  }

  uint64_t lost() const { return lost_; }

 private:
  const bool buggy_;
  std::mutex mutex_;
  Node head_;
  int64_t appended_ = 0;
  uint64_t lost_ = 0;
};

uint64_t run(const kernels::Arguments& arguments) {
  const auto list_on_heap = std::make_unique<List>(arguments.buggy);
  List& list = *list_on_heap;
  TSOMON_ATOMIC_SET("list", &list, sizeof list);
  std::vector<Node> nodes[2] = {std::vector<Node>(arguments.rounds),
                                std::vector<Node>(arguments.rounds)};
  for (const std::vector<Node>& own : nodes) {
    TSOMON_ATOMIC_SET("list", own.data(), own.size() * sizeof(Node));
  }
  kernels::run_threads(arguments, 2, [&](uint32_t thread) {
    for (Node& node : nodes[thread]) {
      arguments.pause();
      list.append(node);
      list.clear_when_long();
    }
  });
  return list.lost();
}

}  // namespace

int main(int argc, char** argv) { return kernels::run_kernel(argc, argv, 500, "nodes lost", run); }
