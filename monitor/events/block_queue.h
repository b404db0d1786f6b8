// Blocks that one thread fills and another empties, a bounded number of them.
//
// Purpose     Reading ahead without growing ahead: who fills waits for a block that was given back.
// Waking      Who fills and has found none is woken when half of the blocks are free: waking a
//             thread takes a good part of the time in which a block is emptied.
// Memory      `blocks` blocks, which keep what they have allocated.
// Thread-safety: one thread fills (free_block(), push(), end()), one empties (pop(), give_back()).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace tsomon {

template <typename Block>
class BlockQueue {
 public:
  explicit BlockQueue(size_t blocks) : blocks_(blocks) {
    for (size_t i = 0; i < blocks; ++i) {
      free_.push_back(std::make_unique<Block>());
    }
  }

  // As it was given back. Waits for one; nullptr after stop().
  std::unique_ptr<Block> free_block() {
    std::unique_lock lock(mutex_);
    has_free_.wait(lock, [this] { return stopped_ || !free_.empty(); });
    if (stopped_) {
      return nullptr;
    }
    auto block = std::move(free_.back());
    free_.pop_back();
    return block;
  }
  void push(std::unique_ptr<Block> block) {
    {
      const std::lock_guard lock(mutex_);
      ready_.push_back(std::move(block));
    }
    has_ready_.notify_one();
  }
  // Nothing more is pushed.
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    has_ready_.notify_one();
  }

  // The next one pushed. Waits for it; nullptr when there is none any more.
  std::unique_ptr<Block> pop() {
    std::unique_lock lock(mutex_);
    has_ready_.wait(lock, [this] { return ended_ || !ready_.empty(); });
    return take();
  }
  // The same; when none is there for so long, idle() is called, once.
  template <typename Idle>
  std::unique_ptr<Block> pop(std::chrono::milliseconds time, const Idle& idle) {
    std::unique_lock lock(mutex_);
    const auto there = [this] { return ended_ || !ready_.empty(); };
    if (!has_ready_.wait_for(lock, time, there)) {
      lock.unlock();
      idle();
      lock.lock();
      has_ready_.wait(lock, there);
    }
    return take();
  }
  void give_back(std::unique_ptr<Block> block) {
    bool enough = false;
    {
      const std::lock_guard lock(mutex_);
      free_.push_back(std::move(block));
      // Whoever waits found none free: before this thread waits for a block it gives back all.
      enough = 2 * free_.size() >= blocks_;
    }
    if (enough) {
      has_free_.notify_one();
    }
  }
  // Who fills has to wait for who empties. From any thread.
  bool is_full() {
    const std::lock_guard lock(mutex_);
    return free_.empty() && !ended_;
  }
  // Nothing more is popped.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    has_free_.notify_one();
  }

 private:
  // Of a locked queue: the next one, if there is one.
  std::unique_ptr<Block> take() {
    if (ready_.empty()) {
      return nullptr;
    }
    auto block = std::move(ready_.front());
    ready_.pop_front();
    return block;
  }

  size_t blocks_;
  std::mutex mutex_;
  std::condition_variable has_ready_;
  std::condition_variable has_free_;
  std::deque<std::unique_ptr<Block>> ready_;
  std::vector<std::unique_ptr<Block>> free_;
  bool ended_ = false;
  bool stopped_ = false;
};

}  // namespace tsomon
