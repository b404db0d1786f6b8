// Independent pieces of work, done by several threads and taken up in their order.
//
// Purpose     Results that do not depend on how many threads there are: compute(i) may run on any
//             thread, ahead of its turn; commit(i, result) runs on the calling thread, for 0, 1, 2
//             ...
// Threads     None are started for the first few milliseconds, so that many small calls cost
//             nothing. compute() must be safe to call from several threads at once.
// Memory      At most kAhead results a thread wait for their turn.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tsomon {

template <typename Result, typename Compute, typename Commit>
class OrderedWork {
 public:
  OrderedWork(size_t count, unsigned threads, const Compute& compute, const Commit& commit)
      : count_(count), threads_(threads), compute_(compute), commit_(commit) {}

  void run() {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> helpers;
    for (size_t turn = 0; turn < count_; ++turn) {
      if (helpers.empty() && threads_ > 1 && turn + 1 < count_ &&
          std::chrono::steady_clock::now() - start >= kAlone) {
        const size_t wanted = std::min<size_t>(threads_, count_ - turn) - 1;
        for (size_t i = 0; i < wanted; ++i) {
          helpers.emplace_back([this] { help(); });
        }
      }
      commit_(turn, result_of(turn));
    }
    for (std::thread& helper : helpers) {
      helper.join();
    }
  }

 private:
  static constexpr std::chrono::milliseconds kAlone{5};
  static constexpr size_t kAhead = 16;

  // Waits for the result, or computes it if nobody has begun, and goes on to what comes after it
  // while somebody else is at it.
  Result result_of(size_t turn) {
    std::unique_lock lock(mutex_);
    turn_ = turn;
    has_room_.notify_all();
    while (!done_.contains(turn)) {
      if (next_ < count_ && (next_ <= turn || next_ < turn + kAhead * threads_)) {
        compute_next(lock);
      } else {
        has_result_.wait(lock);
      }
    }
    auto node = done_.extract(turn);
    return std::move(node.mapped());
  }

  void help() {
    std::unique_lock lock(mutex_);
    while (next_ < count_) {
      if (next_ < turn_ + kAhead * threads_) {
        compute_next(lock);
      } else {
        has_room_.wait(lock);
      }
    }
  }

  void compute_next(std::unique_lock<std::mutex>& lock) {
    const size_t mine = next_++;
    lock.unlock();
    Result result = compute_(mine);
    lock.lock();
    done_.emplace(mine, std::move(result));
    has_result_.notify_all();
    if (next_ == count_) {
      has_room_.notify_all();  // nothing is left to wait for
    }
  }

  const size_t count_;
  const size_t threads_;
  const Compute& compute_;
  const Commit& commit_;
  std::mutex mutex_;
  std::condition_variable has_result_;
  std::condition_variable has_room_;
  size_t next_ = 0;  // nobody has begun with it
  size_t turn_ = 0;
  std::map<size_t, Result> done_;
};

// commit(i, compute(i)) for i below `count`.
template <typename Compute, typename Commit>
void work_in_order(size_t count, unsigned threads, const Compute& compute, const Commit& commit) {
  using Result = decltype(compute(size_t{0}));
  OrderedWork<Result, Compute, Commit>(count, threads, compute, commit).run();
}

}  // namespace tsomon
