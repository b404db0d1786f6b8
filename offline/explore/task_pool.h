// Parts of one search, handed from workers that have much left to workers that have nothing.
//
// Purpose     A search whose subtrees know nothing of each other is done by several threads: each
//             takes a part, and gives away some of what it has left while another waits.
// End         When all workers wait for a part there is none, and never will be.
// Thread-safety: all functions but the constructor may be called by any worker at any time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace tsomon::explore {

template <typename Task>
class TaskPool {
 public:
  explicit TaskPool(uint32_t workers) : workers_(workers) {}

  void give(Task task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }

  // Waits for a part. Nothing: the search has ended.
  std::optional<Task> take() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    if (waiting_ == workers_ && tasks_.empty()) {
      ended_ = true;
      changed_.notify_all();
    }
    changed_.wait(lock, [this] { return ended_ || !tasks_.empty(); });
    --waiting_;
    if (ended_) {
      return std::nullopt;
    }
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    return task;
  }

  // A worker waits, and no part is there for it.
  bool wants_more() const {
    const std::lock_guard lock(mutex_);
    return tasks_.size() < waiting_;
  }

  // Nobody takes a part any more.
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
  }
  bool ended() const {
    const std::lock_guard lock(mutex_);
    return ended_;
  }

 private:
  const uint32_t workers_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  uint32_t waiting_ = 0;
  bool ended_ = false;
};

}  // namespace tsomon::explore
