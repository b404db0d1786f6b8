// A writer with a buffer that several threads use. Reserving the place of a record and counting
// it are two steps under the lock instead of one: records overwrite each other.

#include <mutex>

#include "examples/kernels/kernel.h"

namespace {

constexpr uint32_t kRoom = 8;

class BufferedWriter {
 public:
  explicit BufferedWriter(bool buggy) : buggy_(buggy) {}

  void write(uint64_t record) {
    TSOMON_UNIT("write;writer");
    std::unique_lock<std::mutex> lock(mutex_);
    if (used_ == kRoom) {
      flush();
    }
    const uint32_t place = used_;
    buffer_[place] = record;
    kernels::let_go(buggy_, lock);
    used_ = place + 1;
  }

  // With what the buffer still holds.
  uint64_t written() const { return flushed_ + used_; }

 private:
  void flush() {
    flushed_ += used_;
    used_ = 0;
  }

  const bool buggy_;
  std::mutex mutex_;
  uint64_t buffer_[kRoom] = {};
  uint32_t used_ = 0;
  uint64_t flushed_ = 0;
};

uint64_t run(const kernels::Arguments& arguments) {
  const auto writer_on_heap = std::make_unique<BufferedWriter>(arguments.buggy);
  BufferedWriter& writer = *writer_on_heap;
  TSOMON_ATOMIC_SET("writer", &writer, sizeof writer);
  kernels::run_threads(arguments, 2, [&](uint32_t) {
    for (uint64_t round = 0; round < arguments.rounds; ++round) {
      arguments.pause();
      writer.write(round);
    }
  });
  const int64_t lost = static_cast<int64_t>(2 * arguments.rounds - writer.written());
  return static_cast<uint64_t>(std::abs(lost));
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::run_kernel(argc, argv, 1000, "records lost or doubled", run);
}
