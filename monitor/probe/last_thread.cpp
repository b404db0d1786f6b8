#include "monitor/probe/last_thread.h"

#include <atomic>
#include <cerrno>

#include "decoders/capture/kernel_calls.h"

namespace tsomon::probe {
namespace {

constexpr const char* kSelf = "/proc/self/stat";
constexpr int kNotNoted = -1;
std::atomic<int> noted{kNotNoted};

// What the kernel tells of a process's first thread, behind its name; 0: nothing.
struct First {
  char state = 0;
  int code = 0;  // as wait() has it
};
First look_at(const char* path) {
  First first;
  const int file = kernel::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return first;
  }
  char text[1024];
  ssize_t size = kernel::read(file, text, sizeof text);
  kernel::close(file);
  while (size > 0 && (text[size - 1] < '0' || text[size - 1] > '9')) {
    --size;
  }
  // The code comes last.
  int digit = 1;
  for (ssize_t at = size - 1; at > 0 && text[at] >= '0' && text[at] <= '9'; --at) {
    first.code += (text[at] - '0') * digit;
    digit *= 10;
  }
  // The name may have brackets of its own.
  for (ssize_t at = size - 1; at > 0; --at) {
    if (text[at] == ')') {
      first.state = at + 2 < size ? text[at + 2] : '\0';
      break;
    }
  }
  return first;
}

}  // namespace

bool has_threads(uint32_t count) {
  const int error = errno;
  struct stat status {};
  const bool has = kernel::stat("/proc/self/task", &status) == 0 && status.st_nlink == count + 2;
  errno = error;
  return has;
}

bool only_own_threads(uint32_t own) {
  const int error = errno;
  const bool none = has_threads(own + 1) && look_at(kSelf).state == 'Z';
  errno = error;
  return none;
}

char process_state(const char* path) {
  const int error = errno;
  const char state = look_at(path).state;
  errno = error;
  return state;
}

void note_exit(int status) { noted.store(status & 0xFF, std::memory_order_relaxed); }

int exit_status() {
  const int status = noted.load(std::memory_order_relaxed);
  return status != kNotNoted ? status : (look_at(kSelf).code >> 8) & 0xFF;
}

}  // namespace tsomon::probe
