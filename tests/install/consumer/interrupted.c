/* The same in C: a lost update in every run. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <tsomon.h>

static atomic_int counter;
static atomic_int turn;

static void wait_for(int number) {
  const struct timespec millisecond = {0, 1000000};
  while (atomic_load_explicit(&turn, memory_order_acquire) != number) {
    nanosleep(&millisecond, 0);
  }
}

static void interrupted_increment(void) {
  tsomon_unit_begin("interrupted");
  const int value = atomic_load_explicit(&counter, memory_order_relaxed);
  atomic_store_explicit(&turn, 1, memory_order_release);
  wait_for(2);
  atomic_store_explicit(&counter, value + 1, memory_order_relaxed);
  tsomon_unit_end();
}

static void* interrupting_increment(void* nothing) {
  wait_for(1);
  tsomon_unit_begin("interrupting");
  const int value = atomic_load_explicit(&counter, memory_order_relaxed);
  atomic_store_explicit(&counter, value + 1, memory_order_relaxed);
  tsomon_unit_end();
  atomic_store_explicit(&turn, 2, memory_order_release);
  return nothing;
}

int main(void) {
  pthread_t other;
  if (pthread_create(&other, 0, interrupting_increment, 0) != 0) {
    return 2;
  }
  interrupted_increment();
  pthread_join(other, 0);
  return atomic_load(&counter) == 1 ? 0 : 1;
}
