// A pool of tasks with two ends: plain_pool plain|fenced TASKS [late]
//
// After examples/task_pool, but not instrumented, and with takes that are functions. Each take
// moves its own index, then looks at the other's. The two threads take in turn, by the clock alone:
// no access orders them. Without a fence after the move it may still lie in the store buffer when
// the other thread looks, so the last task may be taken twice; with it takes that do not overlap
// are serializable. Takes that did overlap, because a thread was kept from running, are counted and
// told on standard error (they may give a task up that nobody takes).

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/resource.h>
#include <unistd.h>

#define POOL_TAKE __attribute__((noinline))
#include "pool.h"
#include "turns.h"

template <bool kFenced>
void run(uint64_t tasks) {
  tail.store(tasks);
  setpriority(PRIO_PROCESS, 0, -15);  // so that takes are seldom interrupted; not a must
  alternate(tasks, take_head<kFenced>, take_tail<kFenced>);
}

int main(int argc, char** argv) {
  const bool fenced = argc > 1 && std::strcmp(argv[1], "fenced") == 0;
  uint64_t tasks = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 100;
  tasks = tasks < 2 ? 2 : tasks > kMaxTasks ? kMaxTasks : tasks;
  if (argc > 3) {
    usleep(1'000'000);  // time to attach
  }
  if (fenced) {
    run<true>(tasks);
  } else {
    run<false>(tasks);
  }
  std::fflush(stdout);
  stay();
  return 0;
}
