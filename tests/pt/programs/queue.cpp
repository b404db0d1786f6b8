// A lock-free queue of one producer and one consumer, and a counter that both add to.
#include <atomic>

#include <pthread.h>

#include "traced.h"

static std::atomic<uint64_t> head;
static std::atomic<uint64_t> tail;
static std::atomic<uint64_t> together;
static uint64_t ring[64];
static uint64_t sum;

static void* consume(void*) {
  for (uint64_t taken = 0; taken < 300;) {
    const uint64_t at = head.load(std::memory_order_relaxed);
    if (at == tail.load(std::memory_order_acquire)) {
      continue;
    }
    TRACE_VALUE(at);
    sum += ring[at % 64];
    head.store(at + 1, std::memory_order_release);
    together.fetch_add(1);
    ++taken;
  }
  return nullptr;
}

int main() {
  begin_trace();
  pthread_t consumer;
  pthread_create(&consumer, nullptr, consume, nullptr);
  for (uint64_t i = 0; i < 300;) {
    const uint64_t at = tail.load(std::memory_order_relaxed);
    if (at - head.load(std::memory_order_acquire) == 64) {
      continue;
    }
    TRACE_VALUE(at);
    ring[at % 64] = i;
    tail.store(at + 1, std::memory_order_release);
    together.fetch_add(1);
    ++i;
  }
  pthread_join(consumer, nullptr);
  end_trace();
  return 0;
}
