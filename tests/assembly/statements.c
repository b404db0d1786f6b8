/* A correct lock of asm statements, and a counter without it: statements lock|unlocked [TIMES]. `negates`: a statement that is
   not understood. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <tsomon.h>

static int times = 1;
static int locked;
static int count, copy;

static inline int exchange(int* target, int value) {
  __asm__ __volatile__("xchgl %0, %1" : "+r"(value), "+m"(*target) : : "memory");
  return value;
}
static inline void store(int* target, int value) {
  __asm__ __volatile__("movl %1, %0" : "=m"(*target) : "r"(value) : "memory");
}
static inline int load(const int* target) {
  int value;
  __asm__ __volatile__("movl %1, %0" : "=r"(value) : "m"(*target) : "memory");
  return value;
}

static void* with_lock(void* unused) {
  for (int i = 0; i < times; ++i) {
    tsomon_unit_begin("increment");
    while (exchange(&locked, 1) != 0) {
      while (load(&locked) != 0) {
      }
    }
    ++count;
    copy = count;
    store(&locked, 0);
    tsomon_unit_end();
  }
  return unused;
}
static void* without(void* unused) {
  for (int i = 0; i < times; ++i) {
    tsomon_unit_begin("increment");
    store(&count, load(&count) + 1);
    copy = count;
    tsomon_unit_end();
  }
  return unused;
}
/* Locked, but not understood: whether there is an order nobody knows. */
static void* negates(void* unused) {
  for (int i = 0; i < times; ++i) {
    tsomon_unit_begin("negate");
    __asm__ __volatile__("lock; negl %0" : "+m"(count) : : "memory");
    store(&copy, load(&copy) + 1);
    tsomon_unit_end();
  }
  return unused;
}

int main(int argc, char** argv) {
  void* (*body)(void*) = argc > 1 && strcmp(argv[1], "lock") == 0      ? with_lock
                         : argc > 1 && strcmp(argv[1], "negates") == 0 ? negates
                                                                        : without;
  times = argc > 2 ? atoi(argv[2]) : 1;
  pthread_t a, b;
  pthread_create(&a, NULL, body, NULL);
  pthread_create(&b, NULL, body, NULL);
  pthread_join(a, NULL);
  pthread_join(b, NULL);
  assert(body == negates || (count == 2 * times && copy == count));
  return 0;
}
