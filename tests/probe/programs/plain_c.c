/* A C90 program: linked by tsomon-cc, without the C++ compiler. */
#include <pthread.h>

#include "tsomon.h"

static int sum;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* add(void* nothing) {
  tsomon_unit_begin("add");
  pthread_mutex_lock(&mutex);
  ++sum;
  pthread_mutex_unlock(&mutex);
  tsomon_unit_end();
  return nothing;
}

int main(void) {
  pthread_t other;
  TSOMON_ATOMIC_SET("sum", &sum, sizeof sum);
  pthread_create(&other, 0, add, 0);
  add(0);
  pthread_join(other, 0);
  return sum != 2;
}
