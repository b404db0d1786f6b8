// Restricts its system calls in the middle, so that others end it: filtered [prctl|syscall|strict] [other]
//
// `other`: the calls that are not allowed fail, where they would end the process else.
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tsomon.h"

namespace {

std::mutex mutex;
long sums[2];

void add(int times) {
  for (int i = 0; i < times; ++i) {
    TSOMON_UNIT("add");
    const std::lock_guard<std::mutex> guard(mutex);
    ++sums[0];
    ++sums[1];
  }
}

// All that this program itself needs.
void restrict_calls(const std::string& how, bool fails) {
  static const unsigned allowed[] = {SYS_write, SYS_exit, SYS_exit_group, SYS_futex};
  constexpr size_t kAllowed = sizeof allowed / sizeof *allowed;
  sock_filter filter[kAllowed + 3];
  size_t at = 0;
  filter[at++] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (size_t i = 0; i < kAllowed; ++i) {
    filter[at++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i],
                            static_cast<unsigned char>(kAllowed - i), 0);
  }
  filter[at++] =
      BPF_STMT(BPF_RET | BPF_K, fails ? SECCOMP_RET_ERRNO | 1U : SECCOMP_RET_KILL_PROCESS);
  filter[at++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const sock_fprog program{static_cast<unsigned short>(at), filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (how == "strict") {
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
  } else if (how == "syscall") {
    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
  } else {
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::string how = count > 1 ? arguments[1] : "prctl";
  std::thread other(add, 20000);
  add(20000);
  other.join();
  restrict_calls(how, count > 2);
  add(200000);
  char text[64];
  const int size =
      std::snprintf(text, sizeof text, "%ld %d\n", sums[0], sums[0] == sums[1] ? 1 : 0);
  if (write(STDOUT_FILENO, text, static_cast<size_t>(size)) != size) {
    return 1;
  }
  if (how == "strict") {
    syscall(SYS_exit, 0);
  }
  _exit(0);
}
