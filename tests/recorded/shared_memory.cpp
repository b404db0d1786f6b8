// Two threads add to two sums under a lock; the sums are in memory that other processes may write: shared_memory WAY
//   private: they are not; file, read: mapped from a file, also not to be written; anonymous: and shared with no child;
//   child: with one; shmat
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tsomon.h"

int main(int, char** arguments) {
  const std::string way = arguments[1];
  static long own[2];
  long* sums = own;
  if (way == "file" || way == "read") {
    std::FILE* const file = std::tmpfile();
    if (file == nullptr || ftruncate(fileno(file), 4096) != 0) {
      return 1;
    }
    const bool writes = way == "file";
    void* const memory = mmap(nullptr, 4096, writes ? PROT_READ | PROT_WRITE : PROT_READ,
                              MAP_SHARED, fileno(file), 0);
    sums = writes ? static_cast<long*>(memory) : own;
  } else if (way == "anonymous" || way == "child") {
    sums = static_cast<long*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  } else if (way == "shmat") {
    const int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    sums = static_cast<long*>(shmat(id, nullptr, 0));
    shmctl(id, IPC_RMID, nullptr);
  }
  std::mutex mutex;
  const auto add = [&] {
    for (int i = 0; i < 1000; ++i) {
      TSOMON_UNIT("add");
      const std::lock_guard<std::mutex> guard(mutex);
      ++sums[0];
      ++sums[1];
    }
  };
  std::thread other(add);
  add();
  other.join();
  if (way == "child") {
    const pid_t child = fork();
    if (child == 0) {
      sums[0] = 0;
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
  return 0;
}
