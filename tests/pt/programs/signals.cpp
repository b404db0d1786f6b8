// Handlers that interrupt the program: raised by itself, and sent by whoever steps through it.
#include <csetjmp>
#include <csignal>

#include "traced.h"

static volatile uint64_t handled;
static volatile uint64_t work[32];
static sigjmp_buf back;

static void count(int) { handled = handled + 1; }
static void leave(int) {
  handled = handled + 100;
  siglongjmp(back, 1);
}

int main() {
  std::signal(SIGUSR1, count);
  std::signal(SIGUSR2, leave);
  begin_trace();
  for (unsigned i = 0; i < 2000; ++i) {
    work[i % 32] = work[i * 7 % 32] + i;
    TRACE_VALUE(i);
    if (i % 400 == 0) {
      std::raise(SIGUSR1);
    }
    if (i % 900 == 899 && sigsetjmp(back, 1) == 0) {
      std::raise(SIGUSR2);
    }
  }
  end_trace();
  return 0;
}
