// Four threads, a mutex, and counters with and without it.
#include <pthread.h>

#include "traced.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long balance[2] = {1000, 1000};
static long racy;

static void* transfer(void* argument) {
  const long amount = *static_cast<long*>(argument);
  long local[8] = {};
  for (int i = 0; i < 60; ++i) {
    pthread_mutex_lock(&mutex);
    balance[0] -= amount;
    balance[1] += amount;
    pthread_mutex_unlock(&mutex);
    local[i % 8] += amount;
    racy = racy + local[i % 8];
    TRACE_VALUE(racy);
  }
  return nullptr;
}

int main() {
  begin_trace();
  pthread_t threads[4];
  long amounts[4] = {1, 2, 3, 4};
  for (int i = 0; i < 4; ++i) {
    pthread_create(&threads[i], nullptr, transfer, &amounts[i]);
  }
  for (pthread_t thread : threads) {
    pthread_join(thread, nullptr);
  }
  end_trace();
  return 0;
}
