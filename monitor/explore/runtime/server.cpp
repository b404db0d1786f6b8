// The server of executions, which all begin where the program starts its first thread: in a process
// that runs one after the other (in_place.h), or in one that is forked for it.
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "decoders/capture/kernel_calls.h"
#include "monitor/explore/runtime/cells.h"
#include "monitor/explore/runtime/in_place.h"
#include "monitor/explore/runtime/kernel.h"
#include "monitor/explore/runtime/memory_image.h"
#include "monitor/explore/runtime/policy.h"
#include "monitor/explore/runtime/scheduler.h"
#include "monitor/probe/environment.h"
#include "monitor/probe/real.h"
#include "monitor/probe/twins.h"

extern "C" pid_t _Fork() noexcept;
TSOMON_REAL(_Fork)

namespace tsomon::explore {
namespace {

void silence(bool show) {
  if (show) {
    return;
  }
  const int nothing = kernel::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing >= 0) {
    kernel::dup2(nothing, STDIN_FILENO);
    kernel::dup2(nothing, STDOUT_FILENO);
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
  channel->runs_on = chosen;
  sched_setaffinity(0, sizeof one, &one);
}

// This process ends when its parent does. True: that has happened already.
bool end_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return syscall(SYS_getppid) != parent;
}

void sleep_on_request(uint32_t served) {
  channel->sleepers.fetch_add(1);
  futex(&channel->request, FUTEX_WAIT, served);
  channel->sleepers.fetch_sub(1);
}

void wait_for_request(uint32_t served) {
  while (channel->request.load(std::memory_order_acquire) == served) {
    sleep_on_request(served);
  }
}

// Of a replay the terminal's SIGINT is for the execution, where a debugger may want it, and for the explorer: with this
// process the execution would end.
void change_interrupts(int how) {
  constexpr uint64_t kInterrupt = uint64_t{1} << (SIGINT - 1);
  if (channel->show_output) {
    kernel_call(SYS_rt_sigprocmask, how, &kInterrupt, 0, sizeof kInterrupt);
  }
}

// 0 in the child; elsewhere it has ended.
pid_t fork_execution() {
  const pid_t own = getpid();
  change_interrupts(SIG_BLOCK);
  const pid_t child = probe::real__Fork();
  if (child == 0) {
    change_interrupts(SIG_UNBLOCK);
    if (end_with(own)) {
      syscall(SYS_exit_group, 0);
    }
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
  channel->ended_here = 0;
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
  void* const memory =
      kernel::mmap(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (memory == MAP_FAILED) {
    end_run(End::kFailed, "no memory for the runtime's tables");
  }
  image::leave_out(memory, bytes);
  return memory;
}

void serve_if_asked() {
  const char* const text = probe::variable(kChannelVariable);
  if (text == nullptr) {
    return;
  }
  const int descriptor = std::atoi(text);
  unsetenv(kChannelVariable);
  void* const memory =
      kernel::mmap(sizeof(Channel), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor);
  if (memory == MAP_FAILED) {
    return;
  }
  kernel::close(descriptor);
  probe::watch_twins(true);
  channel = static_cast<Channel*>(memory);
  begin_cells();
  take_owners();
  // The explorer itself may have started something that started this.
  if (end_with(channel->explorer) && syscall(SYS_kill, channel->explorer, 0) != 0) {
    syscall(SYS_exit_group, 0);
  }
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

namespace {

// What the program has said so far, which every execution begins with.
Mark* first_marks = nullptr;
char* first_outcomes = nullptr;
uint32_t first_mark_count = 0;
uint32_t first_outcome_bytes = 0;

void keep_beginning() {
  first_mark_count = at_most(channel->mark_count, kMaxMarks);
  first_outcome_bytes = at_most(channel->outcome_bytes, kOutcomeBytes);
  first_marks = static_cast<Mark*>(take_zeroed(first_mark_count * sizeof(Mark) + 1));
  first_outcomes = static_cast<char*>(take_zeroed(first_outcome_bytes + 1));
  probe::copy(first_marks, channel->marks, first_mark_count * sizeof(Mark));
  probe::copy(first_outcomes, channel->outcomes, first_outcome_bytes);
}

void begin_execution() {
  probe::copy(channel->marks, first_marks, first_mark_count * sizeof(Mark));
  probe::copy(channel->outcomes, first_outcomes, first_outcome_bytes);
  channel->mark_count = first_mark_count;
  channel->outcome_bytes = first_outcome_bytes;
  channel->end = End::kHung;
  channel->status = 0;
  channel->detail[0] = 0;
  channel->step_count.store(0, std::memory_order_relaxed);
  channel->waiting_count = 0;
  channel->found_count = 0;
  channel->unsaid = 0;
  channel->cut_waits = 0;
  channel->freed_compared = 0;
  channel->fault_pc = 0;
  channel->wait_status = 0;
  begin_policy();
}

bool is_answered() { return channel->done.load() != channel->request.load(); }

void wait_for_any_request() {
  for (uint32_t now = channel->request.load(); is_answered(); now = channel->request.load()) {
    sleep_on_request(now);
  }
}

// True: the caller is an execution.
bool fork_and_answer() {
  const uint32_t served = channel->request.load(std::memory_order_acquire);
  if (fork_execution() == 0) {
    begin_execution();
    return true;
  }
  answer(served);
  return false;
}

constexpr long kLookMilliseconds = 20;

// The process that runs executions in place, as its maker sees it.
class Executor {
 public:
  bool is_there() const { return process_ > 0; }
  // True: the caller is that process.
  bool start() {
    forks_ = channel->forks_asked.load();
    const pid_t own = getpid();
    process_ = probe::real__Fork();
    if (process_ == 0) {
      if (end_with(own)) {
        syscall(SYS_exit_group, 0);
      }
      return true;
    }
    go_on();
    return false;
  }
  void go_on() { channel->child.store(process_, std::memory_order_release); }
  // Returns when a fork is to answer a request, or when it has ended.
  void wait() {
    while (channel->forks_asked.load() == forks_) {
      const timespec tick{0, kLookMilliseconds * 1'000'000};
      syscall(SYS_futex, &channel->forks_asked, FUTEX_WAIT, forks_, &tick, nullptr, 0);
      if (look(WNOHANG)) {
        return;
      }
    }
    forks_ = channel->forks_asked.load();
    if (channel->no_executor.load() != 0) {
      while (!look(0)) {
      }
    }
  }

 private:
  // True: it has ended.
  bool look(int options) {
    int status = 0;
    if (syscall(SYS_wait4, process_, &status, options, nullptr) != process_) {
      return false;
    }
    process_ = 0;
    if (channel->ended_here.exchange(0) != 0) {
      channel->wait_status = status;
      if (!is_answered()) {
        answer(channel->request.load());
      }
    } else if (++deaths_ == kMostDeaths) {
      channel->no_executor = 1;
    }
    return true;
  }

  static constexpr uint32_t kMostDeaths = 3;
  pid_t process_ = 0;
  uint32_t forks_ = 0;
  uint32_t deaths_ = 0;
};

}  // namespace

void serve_from_first_thread() {
  keep_beginning();
  Executor executor;
  for (;;) {
    if (!executor.is_there() && channel->run_in_place && channel->no_executor.load() == 0 &&
        executor.start()) {
      return in_place::begin(begin_execution);
    }
    if (executor.is_there()) {
      executor.wait();
    }
    if (!is_answered() && fork_and_answer()) {
      return;
    }
    if (executor.is_there()) {
      executor.go_on();
    } else {
      wait_for_any_request();
    }
  }
}

}  // namespace tsomon::explore
