// A shop, two customers, a supplier. Both questions to the shop are under its lock: is the item
// there, give it to me. But they are two: customers get items that are gone.

#include <mutex>

#include "examples/kernels/kernel.h"

namespace {

class Shop {
 public:
  bool has_items() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return items_ > 0;
  }
  // False: there was none.
  bool take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (items_ == 0) {
      return false;
    }
    --items_;
    return true;
  }

  // 1 when an item that was there is gone.
  uint64_t buy_carelessly() {
    TSOMON_UNIT("buy;shelf");
    return has_items() && !take() ? 1 : 0;
  }
  void buy() {
    TSOMON_UNIT("buy;shelf");
    take();
  }
  void supply() {
    TSOMON_UNIT("supply;shelf");
    const std::lock_guard<std::mutex> lock(mutex_);
    ++items_;
  }

 private:
  std::mutex mutex_;
  uint64_t items_ = 1;
};

uint64_t run(const kernels::Arguments& arguments) {
  const auto shop_on_heap = std::make_unique<Shop>();
  Shop& shop = *shop_on_heap;
  TSOMON_ATOMIC_SET("shelf", &shop, sizeof shop);
  uint64_t disappointed[3] = {0, 0, 0};
  kernels::run_threads(arguments, 3, [&](uint32_t thread) {
    uint64_t count = 0;
    for (uint64_t round = 0; round < arguments.rounds; ++round) {
      arguments.pause();
      if (thread == 2) {
        shop.supply();
      } else if (arguments.buggy) {
        count += shop.buy_carelessly();
      } else {
        shop.buy();
      }
    }
    disappointed[thread] = count;
  });
  return disappointed[0] + disappointed[1];
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::run_kernel(argc, argv, 500, "items that were gone", run);
}
