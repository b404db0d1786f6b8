#include "monitor/service/idle_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/process/descriptor.h"
#include "monitor/service/process_memory.h"
#include "tso/support/printable.h"

namespace tsomon::service {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;

constexpr microseconds kLook{10'000};          // while it runs
constexpr microseconds kLongestPause{50'000};  // ... while it is stopped
constexpr microseconds kToEnd{2'000'000};      // of processor time, once it was asked to

// ioprio_set(2), which has no header.
constexpr int kOfProcess = 1;
constexpr int kIdleClass = 3 << 13;

void limit(__rlimit_resource resource, uint64_t most) {
  const rlimit both{most, most};
  ::setrlimit(resource, &both);
}

// In the child, where nothing may be allocated. Never returns but with an errno value for the parent.
int become(char* const* command, const IdleBounds& bounds, int output, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) {
    return ESRCH;
  }
  if (bounds.idle) {
    const sched_param none{};
    ::sched_setscheduler(0, SCHED_IDLE, &none);
    ::syscall(SYS_ioprio_set, kOfProcess, 0, kIdleClass);
  }
  if (const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); file >= 0) {
    (void)!::write(file, "1000", 4);
    ::close(file);
  }
  constexpr uint64_t kRoom = uint64_t{1}
                             << 30;  // code, files that are mapped, what is only reserved
  limit(RLIMIT_AS, 2 * bounds.memory_bytes + kRoom);
  limit(RLIMIT_FSIZE, bounds.output_bytes);
  limit(RLIMIT_CORE, 0);
  for (int number = 1; number < NSIG; ++number) {
    ::signal(number, SIG_DFL);
  }
  sigset_t empty;
  ::sigemptyset(&empty);
  ::sigprocmask(SIG_SETMASK, &empty, nullptr);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(nothing, STDERR_FILENO);
  ::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  ::execv(command[0], command);
  return errno;
}

// errno's value if it could not become the program; the pipe is closed by exec, which may take its time.
int problem_of(int pipe, const std::function<bool()>& stopped) {
  constexpr int kLookForIt = 50;  // milliseconds
  pollfd one{pipe, POLLIN, 0};
  while (!stopped() && ::poll(&one, 1, kLookForIt) == 0) {
  }
  int problem = 0;
  return one.revents != 0 && ::read(pipe, &problem, sizeof problem) == sizeof problem ? problem : 0;
}

microseconds time_of(clockid_t clock) {
  timespec time{};
  return ::clock_gettime(clock, &time) != 0
             ? microseconds(0)
             : microseconds(time.tv_sec * 1'000'000 + time.tv_nsec / 1000);
}

std::string text_of(int file) {
  std::string text;
  std::array<char, 65536> part{};
  for (off_t at = 0;;) {
    const ssize_t size = ::pread(file, part.data(), part.size(), at);
    if (size <= 0) {
      return text;
    }
    text.append(part.data(), static_cast<size_t>(size));
    at += size;
  }
}

tl::unexpected<Error> problem(const std::string& program, int error) {
  return tl::unexpected<Error>(Error{error == ENOENT ? ErrorKind::kUsage : ErrorKind::kEnvironment,
                                     printable(program),
                                     {},
                                     fmt::format("cannot be started: {}", std::strerror(error))});
}

}  // namespace

Result<IdleEnd> IdleProcess::run(const std::vector<std::string>& command,
                                 const std::function<bool()>& stopped) {
  std::vector<std::string> words = command;
  std::vector<char*> pointers;
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  const Descriptor output(::memfd_create("tsomon-analysis", MFD_CLOEXEC));
  std::array<int, 2> ends{-1, -1};
  if (!output.is_open() || ::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return problem(command.front(), errno);
  }
  Descriptor from(ends[0]);
  Descriptor to(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int error = become(pointers.data(), bounds_, output.get(), parent);
    (void)!::write(to.get(), &error, sizeof error);
    ::_exit(127);
  }
  const int refused = errno;
  to = Descriptor(-1);
  if (pid < 0) {
    return problem(command.front(), refused);
  }
  if (const int error = problem_of(from.get(), stopped); error != 0) {
    ::waitpid(pid, nullptr, 0);
    return problem(command.front(), error);
  }
  from = Descriptor(-1);
  IdleEnd end = follow(pid, stopped);
  end.output = text_of(output.get());
  return end;
}

IdleEnd IdleProcess::follow(pid_t pid, const std::function<bool()>& stopped) {
  IdleEnd end;
  clockid_t clock{};
  const bool has_clock = ::clock_getcpuclockid(pid, &clock) == 0;
  const Clock::time_point begin = Clock::now();
  // Without one its end is seen at the next look.
  const Descriptor death(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  bool runs = true;
  const auto kill_for = [&](IdleEnd::Why why) {
    end.why = end.why == IdleEnd::Why::kEnded ? why : end.why;
    ::kill(pid, SIGKILL);
  };
  while (::waitpid(pid, &end.wait_status, WNOHANG) == 0) {
    const microseconds used = std::max(end.used, has_clock ? time_of(clock) : end.used);
    const Clock::time_point now = Clock::now();
    credit_ +=
        bounds_.share * static_cast<double>(duration_cast<microseconds>(now - credited_).count());
    credit_ = std::min(credit_, static_cast<double>(kBurst.count())) -
              static_cast<double>((used - end.used).count());
    credited_ = now;
    end.used = used;
    const uint64_t bytes = memory_of_process(pid);
    end.most_bytes = std::max(end.most_bytes, bytes);
    if (stopped()) {
      kill_for(IdleEnd::Why::kStopped);
    } else if (bytes > bounds_.memory_bytes) {
      kill_for(IdleEnd::Why::kMemory);
    } else if (used > bounds_.processor_time + kToEnd || now - begin > kMostSeconds) {
      kill_for(IdleEnd::Why::kTime);
    } else if (used > bounds_.processor_time && end.why == IdleEnd::Why::kEnded) {
      end.why = IdleEnd::Why::kTime;  // what it has found by now is its answer
      ::kill(pid, SIGTERM);
    }
    if (runs != (credit_ > 0)) {
      runs = !runs;
      ::kill(pid, runs ? SIGCONT : SIGSTOP);
    }
    const double missing = runs ? 0 : (static_cast<double>(kBurst.count()) / 2 - credit_);
    const auto pause =
        runs ? kLook : microseconds(static_cast<int64_t>(missing / std::max(bounds_.share, 1e-6)));
    pollfd one{death.get(), POLLIN, 0};
    ::poll(&one, 1,
           static_cast<int>(std::clamp(pause, microseconds(1000), kLongestPause).count() / 1000));
  }
  return end;
}

}  // namespace tsomon::service
