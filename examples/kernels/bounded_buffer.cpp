// A buffer of limited size between two producers and a consumer, who wait on conditions. A
// producer that has found room lets go of the lock before it puts its item in: items overwrite
// others that nobody has taken.

#include <condition_variable>
#include <mutex>

#include "examples/kernels/kernel.h"

namespace {

constexpr uint32_t kSize = 2;

class BoundedBuffer {
 public:
  explicit BoundedBuffer(bool buggy) : buggy_(buggy) {}

  void put(uint64_t item) {
    TSOMON_UNIT("put;buffer");
    std::unique_lock<std::mutex> lock(mutex_);
    while (count_ >= kSize) {
      not_full_.wait(lock);
    }
    kernels::let_go(buggy_, lock);
    if (count_ >= kSize) {
      ++overwritten_;
    } else {
      ++count_;
    }
    items_[next_in_++ % kSize] = item;
    not_empty_.notify_one();
  }

  // False: the buffer has been closed and is empty.
  bool take(uint64_t& item) {
    TSOMON_UNIT("take;buffer");
    std::unique_lock<std::mutex> lock(mutex_);
    while (count_ == 0 && !closed_) {
      not_empty_.wait(lock);
    }
    if (count_ == 0) {
      return false;
    }
    item = items_[next_out_++ % kSize];
    --count_;
    not_full_.notify_one();
    return true;
  }

  void close() {
    TSOMON_UNIT("close;buffer");
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    not_empty_.notify_one();
  }

  uint64_t overwritten() const { return overwritten_; }

 private:
  const bool buggy_;
  std::mutex mutex_;
  std::condition_variable not_full_;
  std::condition_variable not_empty_;
  uint64_t items_[kSize] = {};
  uint32_t count_ = 0;
  uint32_t next_in_ = 0;
  uint32_t next_out_ = 0;
  bool closed_ = false;
  uint64_t overwritten_ = 0;
};

uint64_t run(const kernels::Arguments& arguments) {
  const auto buffer_on_heap = std::make_unique<BoundedBuffer>(arguments.buggy);
  BoundedBuffer& buffer = *buffer_on_heap;
  TSOMON_ATOMIC_SET("buffer", &buffer, sizeof buffer);
  std::atomic<uint32_t> producing{2};
  kernels::run_threads(arguments, 3, [&](uint32_t thread) {
    if (thread < 2) {
      for (uint64_t round = 0; round < arguments.rounds; ++round) {
        arguments.pause();
        buffer.put(round);
      }
      if (producing.fetch_sub(1) == 1) {
        buffer.close();
      }
      return;
    }
    uint64_t item = 0;
    while (buffer.take(item)) {
    }
  });
  return buffer.overwritten();
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::run_kernel(argc, argv, 500, "items overwritten", run);
}
