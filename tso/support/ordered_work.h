// Independent pieces of work, done by several threads and taken up in their order.
//
// Purpose     Results that do not depend on how many threads there are: compute(i) may run on any
//             thread, ahead of its turn; commit(i, result) runs on the calling thread, for 0, 1, 2
//             ...
// Threads     None are started for the first few milliseconds, so that many small calls cost
//             nothing. compute() must be safe to call from several threads at once.
// Memory      At most kAhead results a thread wait for their turn.
// Failure     What compute() throws comes out of run() when it is that result's turn, what commit()
//             throws at once; both when no thread is at work any more. Helpers work for the meter
//             of the calling thread (tso/support/work.h); no thread's computing is counted.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "tso/support/work.h"

namespace tsomon {

template <typename Result, typename Compute, typename Commit>
class OrderedWork {
 public:
  OrderedWork(size_t count, unsigned threads, const Compute& compute, const Commit& commit)
      : count_(count),
        threads_(threads),
        compute_(compute),
        commit_(commit),
        places_(std::min(count, kAhead * threads + 1)) {}

  void run() {
    const auto start = std::chrono::steady_clock::now();
    Helpers helpers(*this);
    for (size_t turn = 0; turn < count_; ++turn) {
      if (helpers.none() && threads_ > 1 && turn + 1 < count_ &&
          std::chrono::steady_clock::now() - start >= kAlone) {
        helpers.start(std::min<size_t>(threads_, count_ - turn) - 1);
      }
      commit_(turn, result_of(turn));
    }
  }

 private:
  using Outcome = std::variant<Result, std::exception_ptr>;

  // Threads that have ended when it ends.
  class Helpers {
   public:
    explicit Helpers(OrderedWork& work) : work_(work) {}
    Helpers(const Helpers&) = delete;
    Helpers& operator=(const Helpers&) = delete;
    ~Helpers() {
      work_.begin_no_more();
      for (std::thread& thread : threads_) {
        thread.join();
      }
    }
    bool none() const { return threads_.empty(); }
    void start(size_t count) {
      threads_.reserve(count);
      for (size_t i = 0; i < count; ++i) {
        try {
          threads_.emplace_back([this] { work_.help(); });
        } catch (const std::system_error&) {
          return;  // those that are there do it
        }
      }
    }

   private:
    OrderedWork& work_;
    std::vector<std::thread> threads_;
  };

  static constexpr std::chrono::milliseconds kAlone{5};
  static constexpr size_t kAhead = 16;
  static constexpr std::chrono::microseconds kSmall{20};
  static constexpr size_t kFewSmall = 64;  // pieces that were small one after the other
  static constexpr size_t kAtOnce = 8;

  // Waits for the result, or computes it if nobody has begun, and goes on to what comes after it
  // while somebody else is at it.
  Result result_of(size_t turn) {
    std::unique_lock lock(mutex_);
    turn_ = turn;
    has_room_.notify_all();
    std::optional<Outcome>& place = place_of(turn);
    while (!place) {
      if (next_ < count_ && (next_ <= turn || next_ < turn + kAhead * threads_)) {
        compute_next(lock);
      } else {
        has_result_.wait(lock);
      }
    }
    Outcome outcome = std::move(*place);
    place.reset();
    if (const auto* const failure = std::get_if<std::exception_ptr>(&outcome)) {
      std::rethrow_exception(*failure);
    }
    return std::get<Result>(std::move(outcome));
  }

  void begin_no_more() {
    const std::lock_guard lock(mutex_);
    next_ = count_;
    has_room_.notify_all();
  }

  void help() {
    const WorkScope scope(meter_, WorkScope::Counted::kNo);
    std::unique_lock lock(mutex_);
    while (next_ < count_) {
      if (next_ < turn_ + kAhead * threads_) {
        compute_next(lock);
      } else {
        has_room_.wait(lock);
      }
    }
  }

  // Of small pieces several at once: what is told to others about each would cost more than it.
  void compute_next(std::unique_lock<std::mutex>& lock) {
    const size_t first = next_;
    const size_t room = std::min(count_, std::max(turn_ + kAhead * threads_, first + 1)) - first;
    const size_t mine = std::min(room, small_ >= kFewSmall ? kAtOnce : size_t{1});
    next_ += mine;
    lock.unlock();
    std::vector<Outcome> outcomes;
    outcomes.reserve(mine);
    const auto begin = std::chrono::steady_clock::now();
    for (size_t i = 0; i < mine; ++i) {
      outcomes.push_back(computed(first + i));
    }
    const bool small = std::chrono::steady_clock::now() - begin < mine * kSmall;
    lock.lock();
    small_ = small ? small_ + 1 : 0;
    for (size_t i = 0; i < mine; ++i) {
      place_of(first + i).emplace(std::move(outcomes[i]));
    }
    has_result_.notify_all();
    if (next_ == count_) {
      has_room_.notify_all();  // nothing is left to wait for
    }
  }

  Outcome computed(size_t i) const {
    try {
      const WorkScope scope(meter_, WorkScope::Counted::kNo);
      return compute_(i);
    } catch (...) {
      return std::current_exception();
    }
  }

  const size_t count_;
  const size_t threads_;
  WorkMeter* const meter_ = current_meter();
  const Compute& compute_;
  const Commit& commit_;
  std::mutex mutex_;
  std::condition_variable has_result_;
  std::condition_variable has_room_;
  size_t next_ = 0;  // nobody has begun with it
  size_t turn_ = 0;
  size_t small_ = 0;  // pieces, or groups of them, since the last one that was not small
  // Of the results that may be there, by their numbers: nothing is allocated by who helps.
  std::optional<Outcome>& place_of(size_t i) { return places_[i % places_.size()]; }
  std::vector<std::optional<Outcome>> places_;
};

// commit(i, compute(i)) for i below `count`.
template <typename Compute, typename Commit>
void work_in_order(size_t count, unsigned threads, const Compute& compute, const Commit& commit) {
  using Result = decltype(compute(size_t{0}));
  OrderedWork<Result, Compute, Commit>(count, threads, compute, commit).run();
}

}  // namespace tsomon
