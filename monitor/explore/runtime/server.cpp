// The server of executions: a fork for each, from where the program starts its first thread.
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
#include <sys/syscall.h>
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

// The threads of an execution run one at a time: on one processor they hand over fastest.
void stay_on_one_processor() {
  cpu_set_t usable;
  cpu_set_t one;
  CPU_ZERO(&one);
  int chosen = sched_getcpu();
  if (channel->processor != 0 && sched_getaffinity(0, sizeof usable, &usable) == 0) {
    int left =
        static_cast<int>((channel->processor - 1) % static_cast<uint32_t>(CPU_COUNT(&usable)));
    for (chosen = 0; left > 0 || !CPU_ISSET(chosen, &usable); ++chosen) {
      left -= CPU_ISSET(chosen, &usable) ? 1 : 0;
    }
  }
  CPU_SET(chosen, &one);
  sched_setaffinity(0, sizeof one, &one);
}

void wait_for_request(uint32_t served) {
  while (channel->request.load(std::memory_order_acquire) == served) {
    futex(&channel->request, FUTEX_WAIT, served);
  }
}

// 0 in the child; elsewhere it has ended.
pid_t fork_execution() {
  const pid_t child = probe::real__Fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return 0;
  }
  channel->child.store(child, std::memory_order_release);
  int status = 0;
  if (child < 0) {
    channel->end = End::kFailed;
    probe::copy(channel->detail, "fork failed", sizeof "fork failed");
  } else {
    // waitpid is refused in programs under control.
    while (syscall(SYS_wait4, child, &status, 0, nullptr) < 0 && errno == EINTR) {
    }
  }
  channel->child.store(0, std::memory_order_release);
  channel->wait_status = status;
  return child;
}

// The first answer is to the start.
void answer(uint32_t request) {
  channel->done.store(request + 1, std::memory_order_release);
  futex(&channel->done, FUTEX_WAKE, INT_MAX);
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
  stay_on_one_processor();
  Dl_info module{};
  dladdr(reinterpret_cast<void*>(&serve_if_asked), &module);
  channel->load_base = reinterpret_cast<uint64_t>(module.dli_fbase);
  channel->server = getpid();
  channel->magic = kChannelMagic;
  answer(0);
  for (uint32_t served = 0;;) {
    wait_for_request(served);
    if (fork_execution() == 0) {
      silence(channel->show_output);
      begin_policy();
      begin_threads();
      return;
    }
    // A child that came to its first thread has served other requests since.
    served = channel->request.load(std::memory_order_acquire);
    answer(served);
  }
}

void serve_from_first_thread() {
  const uint32_t mark_count = channel->mark_count;
  const uint32_t outcome_bytes = channel->outcome_bytes;
  auto* const marks = static_cast<Mark*>(take_zeroed(mark_count * sizeof(Mark) + 1));
  auto* const outcomes = static_cast<char*>(take_zeroed(outcome_bytes + 1));
  probe::copy(marks, channel->marks, mark_count * sizeof(Mark));
  probe::copy(outcomes, channel->outcomes, outcome_bytes);
  for (;;) {
    const uint32_t served = channel->request.load(std::memory_order_acquire);
    if (fork_execution() == 0) {
      begin_policy();
      return;
    }
    answer(served);
    wait_for_request(served);
    probe::copy(channel->marks, marks, mark_count * sizeof(Mark));
    probe::copy(channel->outcomes, outcomes, outcome_bytes);
    channel->mark_count = mark_count;
    channel->outcome_bytes = outcome_bytes;
  }
}

}  // namespace tsomon::explore
