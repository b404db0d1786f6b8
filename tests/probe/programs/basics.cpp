// Atomics of all sizes, locks, semaphores, static initialisation: the test looks for these events.
#include <atomic>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>

#include <pthread.h>
#include <semaphore.h>

#include "tsomon.h"

std::atomic<uint8_t> a8;
std::atomic<uint16_t> a16;
std::atomic<uint32_t> a32;
std::atomic<uint64_t> a64;
int plain;
char from[6000];
char to[6000];
std::mutex mutex;
std::shared_mutex shared;
sem_t semaphore;
pthread_spinlock_t spin;

template <typename T>
void atomics(std::atomic<T>& a) {
  a.store(5, std::memory_order_relaxed);
  a.store(7);
  a.fetch_add(1);
  a.fetch_sub(2);
  a.fetch_and(5);
  a.fetch_or(3);
  a.fetch_xor(1);
  T expected = 1;
  a.compare_exchange_strong(expected, 9);
  a.compare_exchange_strong(expected, 9);
  (void)a.load(std::memory_order_acquire);
}

__attribute__((noinline)) void thrower() {
  TSOMON_UNIT("thrower");
  throw std::runtime_error("left by an exception");
}

int initial() { return plain; }
int use_static() {
  static int value = initial();
  return value;
}

int main(int argc, char**) {
  sem_init(&semaphore, 0, 0);
  pthread_spin_init(&spin, 0);
  std::thread other([] {
    sem_wait(&semaphore);
    const std::shared_lock<std::shared_mutex> guard(shared);
    plain += 1;
  });
  {
    TSOMON_UNIT("atomics");
    atomics(a8);
    atomics(a16);
    atomics(a32);
    atomics(a64);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  {
    const std::lock_guard<std::mutex> guard(mutex);
    plain = 3;
  }
  pthread_spin_lock(&spin);
  pthread_spin_unlock(&spin);
  std::memcpy(to, from, static_cast<size_t>(argc) * 5000);
  try {
    thrower();
  } catch (const std::exception&) {
  }
  plain += use_static();
  sem_post(&semaphore);
  other.join();
}
