#include "monitor/probe/before_start.h"

#include "monitor/probe/records.h"

namespace tsomon::probe {
namespace {

constexpr size_t kRanges = 256;
constexpr size_t kSemaphores = 1024;

struct Range {
  uint64_t address;
  size_t size;
};
Range ranges[kRanges];
size_t range_count = 0;
sem_t* semaphores[kSemaphores];
size_t semaphore_count = 0;

}  // namespace

void keep_benign(uint64_t address, size_t size) {
  if (range_count < kRanges) {
    ranges[range_count++] = {address, size};
  }
}

void keep_semaphore(sem_t* semaphore) {
  forget_semaphore(semaphore);
  if (semaphore_count < kSemaphores) {
    semaphores[semaphore_count++] = semaphore;
  }
}

void forget_semaphore(sem_t* semaphore) {
  for (size_t i = 0; i < semaphore_count; ++i) {
    if (semaphores[i] == semaphore) {
      semaphores[i] = semaphores[--semaphore_count];
      return;
    }
  }
}

void put_kept_ranges() {
  for (size_t i = 0; i < range_count; ++i) {
    put_benign(ranges[i].address, ranges[i].size, 0);
  }
}

void put_kept() {
  put_kept_ranges();
  range_count = 0;
  for (size_t i = 0; i < semaphore_count; ++i) {
    put_count(semaphores[i], 0);
  }
  semaphore_count = 0;
}

}  // namespace tsomon::probe
