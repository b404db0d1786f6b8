// A stock that a producer adds to and a consumer takes from. The consumer holds the lock while it
// looks, not while it takes: goods appear or disappear.

#include <mutex>

#include "examples/kernels/kernel.h"

namespace {

constexpr int64_t kMost = 100;

class Stock {
 public:
  explicit Stock(bool buggy) : buggy_(buggy) {}

  bool produce() {
    TSOMON_UNIT("produce;stock");
    const std::lock_guard<std::mutex> lock(mutex_);
    if (goods_ == kMost) {
      return false;
    }
    ++goods_;
    return true;
  }

  bool consume() {
    TSOMON_UNIT("consume;stock");
    std::unique_lock<std::mutex> lock(mutex_);
    if (goods_ == 0) {
      return false;
    }
    if (buggy_) {
      lock.unlock();
    }
    --goods_;
    return true;
  }

  int64_t goods() const { return goods_; }

 private:
  const bool buggy_;
  std::mutex mutex_;
  int64_t goods_ = 10;
};

uint64_t run(const kernels::Arguments& arguments) {
  const auto stock_on_heap = std::make_unique<Stock>(arguments.buggy);
  Stock& stock = *stock_on_heap;
  TSOMON_ATOMIC_SET("stock", &stock, sizeof stock);
  int64_t moved[2] = {0, 0};
  const int64_t before = stock.goods();
  kernels::run_threads(arguments, 2, [&](uint32_t thread) {
    int64_t count = 0;
    for (uint64_t round = 0; round < arguments.rounds; ++round) {
      arguments.pause();
      count += (thread == 0 ? stock.produce() : stock.consume()) ? 1 : 0;
    }
    moved[thread] = count;
  });
  const int64_t expected = before + moved[0] - moved[1];
  return static_cast<uint64_t>(std::abs(stock.goods() - expected));
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::run_kernel(argc, argv, 1000, "goods lost or made", run);
}
