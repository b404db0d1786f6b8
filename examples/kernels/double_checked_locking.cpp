// Objects made at their first use. Whether one is there is looked up without the lock first, and
// the pointer is there before the object is complete: another thread uses half an object.
// Fixed as the literature has it: every use takes the lock.

#include <atomic>
#include <memory>
#include <mutex>

#include "examples/kernels/kernel.h"

namespace {

struct Object {
  uint64_t first = 0;
  uint64_t second = 0;
};

class Objects {
 public:
  Objects(bool buggy, uint64_t count) : buggy_(buggy), objects_(count), slots_(count) {
    TSOMON_ATOMIC_SET("objects", objects_.data(), count * sizeof(Object));
    TSOMON_ATOMIC_SET("objects", slots_.data(), count * sizeof slots_[0]);
  }

  // The sum of the object's fields, 2 if it is complete.
  uint64_t use(uint64_t index) {
    TSOMON_UNIT("use;objects");
    if (buggy_) {
      if (slots_[index].load(std::memory_order_acquire) == nullptr) {
        const std::lock_guard<std::mutex> lock(mutex_);
        make(index);
      }
      return sum(index);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    make(index);
    return sum(index);
  }

 private:
  void make(uint64_t index) {
    if (slots_[index].load(std::memory_order_relaxed) != nullptr) {
      return;
    }
    Object& object = objects_[index];
    slots_[index].store(&object, std::memory_order_release);
    object.first = 1;
    object.second = 1;
  }
  uint64_t sum(uint64_t index) const {
    const Object* const object = slots_[index].load(std::memory_order_relaxed);
    return object->first + object->second;
  }

  const bool buggy_;
  std::mutex mutex_;
  std::vector<Object> objects_;
  std::vector<std::atomic<Object*>> slots_;
};

uint64_t run(const kernels::Arguments& arguments) {
  Objects objects(arguments.buggy, arguments.rounds);
  uint64_t incomplete[2] = {0, 0};
  kernels::run_threads(arguments, 2, [&](uint32_t thread) {
    uint64_t seen = 0;
    for (uint64_t round = 0; round < arguments.rounds; ++round) {
      arguments.pause();
      seen += objects.use(round) != 2 ? 1 : 0;
    }
    incomplete[thread] = seen;
  });
  return incomplete[0] + incomplete[1];
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::run_kernel(argc, argv, 500, "incomplete objects used", run);
}
