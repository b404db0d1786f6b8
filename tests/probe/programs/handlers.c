/* Strict C, where signal() is another function: a handler that interrupts hooks wherever it comes.
 * Prints how often it ran. */
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

#include "tsomon.h"

static unsigned long long handled;
static volatile unsigned cells[4096];
static volatile sig_atomic_t enough;

static void next_alarm(void) {
  const struct itimerval once = {{0, 0}, {0, 50}};
  setitimer(ITIMER_REAL, &once, 0);
}

static void on_alarm(int number) {
  signal(number, on_alarm); /* the System V kind forgets it */
  enough = __atomic_add_fetch(&handled, 1, __ATOMIC_SEQ_CST) >= 300;
  if (!enough) {
    next_alarm();
  }
}

int main(void) {
  unsigned long stores = 0;
  tsomon_unit_begin("stores");
  signal(SIGALRM, on_alarm);
  next_alarm();
  while (!enough) {
    for (int i = 0; i < 4096; ++i) {
      cells[i] = i;
    }
    stores += 4096;
  }
  tsomon_unit_end();
  printf("cells %p\nhandled %llu\nstores %lu\n", (void*)cells, handled, stores);
  return 0;
}
