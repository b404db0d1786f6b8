// Takes descriptors that it did not open, as daemons do, and opens a database instead:
// descriptors WAY DATABASE. Then it goes on for long enough to be recorded in several chunks.
// WAY: none, closefrom, close_range, close (in a loop), dup2 (the database onto all that are open).
// "apart_refused " in front of it: the kernel refuses to give threads tables of their own; "moved":
// the capture is renamed first.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tsomon.h"

namespace {

constexpr int kRounds = 200'000;
long counters[4096];

void work() {
  for (int i = 0; i < kRounds; ++i) {
    TSOMON_UNIT("work");
    counters[static_cast<unsigned>(i) * 2654435761U % 4096] += i;
  }
}

// close_range(..., CLOSE_RANGE_UNSHARE) fails from here on, in what is executed as well.
void refuse_own_tables() {
  sock_filter filter[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 3, SYS_close_range},
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, args[2])},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, CLOSE_RANGE_UNSHARE},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | 38},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    std::_Exit(9);
  }
}

// Whether a descriptor below this one is the capture's: then the program gets others than by
// itself.
bool capture_is_below(int descriptor) {
  for (int fd = 0; fd < descriptor; ++fd) {
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    char name[4096];
    const ssize_t size = readlink(link.c_str(), name, sizeof name);
    if (size > 0 && std::string(name, static_cast<size_t>(size)).ends_with(".capture")) {
      return true;
    }
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "apart_refused") == 0) {
    refuse_own_tables();
    unsetenv("TSOMON_OUTPUT_TAKEN");  // as if it were the first
    execv("/proc/self/exe", argv + 1);
    return 9;
  }
  if (argc < 3) {
    return 9;
  }
  const std::string way = argv[1];
  std::thread(work).join();
  if (argc > 3) {
    std::rename(argv[3], (std::string(argv[3]) + ".moved").c_str());
  }
  if (way == "closefrom") {
    closefrom(0);
  } else if (way == "close_range") {
    close_range(0, ~0U, 0);
  } else if (way == "close") {
    for (int fd = 0; fd < 70'000; ++fd) {
      close(fd);
    }
  }
  const int database = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0644);
  const bool lowest = way == "none" || way == "dup2" ? !capture_is_below(database) : database == 0;
  if (database < 0 || write(database, "precious\n", 9) != 9) {
    return 9;
  }
  if (way == "dup2") {
    for (int fd = 0; fd < 20'000; ++fd) {
      if (fcntl(fd, F_GETFD) >= 0) {
        dup2(database, fd);
      }
    }
  }
  // What the program has open is the database and nothing else.
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back(work);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return lowest ? 0 : 8;
}
