#include "monitor/explore/runtime/state.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace tsomon::explore {

bool active = false;
Channel* channel = nullptr;
// They are there before the constructors of this file would run: there is none.
constinit Thread threads[kMaxThreads + 1];
uint32_t thread_count = 1;
__thread uint32_t self = 0;
bool concurrent = false;
uint32_t steps = 0;
uint64_t enabled_now = 0;
uint64_t commits_now = 0;

long futex(void* word, int operation, uint32_t value) {
  return syscall(SYS_futex, word, operation, value, nullptr, nullptr, 0);
}

}  // namespace tsomon::explore
