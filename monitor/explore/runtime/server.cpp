// The server of executions: a fork for each, from before the program's constructors.
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/explore/runtime/cells.h"
#include "monitor/explore/runtime/policy.h"
#include "monitor/explore/runtime/scheduler.h"
#include "monitor/probe/real.h"

extern "C" pid_t _Fork() noexcept;
TSOMON_REAL(_Fork)

namespace tsomon::explore {
namespace {

void silence(bool show) {
  if (show) {
    return;
  }
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing >= 0) {
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
  }
}

}  // namespace

Channel* the_channel() { return channel; }

void* take_zeroed(size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    end_run(End::kFailed, "no memory for the runtime's tables");
  }
  return memory;
}

void serve_if_asked() {
  const char* const text = std::getenv(kChannelVariable);
  if (text == nullptr) {
    return;
  }
  const int descriptor = std::atoi(text);
  unsetenv(kChannelVariable);
  void* const memory =
      mmap(nullptr, sizeof(Channel), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) {
    return;
  }
  close(descriptor);
  channel = static_cast<Channel*>(memory);
  begin_cells();
  take_owners();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The threads of an execution run one at a time: on one processor they hand over fastest.
  cpu_set_t processors;
  CPU_ZERO(&processors);
  CPU_SET(sched_getcpu(), &processors);
  sched_setaffinity(0, sizeof processors, &processors);
  Dl_info module{};
  dladdr(reinterpret_cast<void*>(&serve_if_asked), &module);
  channel->load_base = reinterpret_cast<uint64_t>(module.dli_fbase);
  channel->server = getpid();
  channel->magic = kChannelMagic;
  channel->done.store(1, std::memory_order_release);
  futex(&channel->done, FUTEX_WAKE, INT_MAX);
  for (uint32_t served = 0;;) {
    while (channel->request.load(std::memory_order_acquire) == served) {
      futex(&channel->request, FUTEX_WAIT, served);
    }
    ++served;
    const pid_t child = probe::real__Fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      silence(channel->show_output);
      begin_policy();
      begin_threads();
      return;
    }
    channel->child.store(child, std::memory_order_release);
    int status = 0;
    if (child < 0) {
      channel->end = End::kFailed;
      probe::copy(channel->detail, "fork failed", sizeof "fork failed");
    } else {
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
    }
    channel->child.store(0, std::memory_order_release);
    channel->wait_status = status;
    channel->done.fetch_add(1, std::memory_order_release);
    futex(&channel->done, FUTEX_WAKE, INT_MAX);
  }
}

}  // namespace tsomon::explore
