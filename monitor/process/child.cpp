#include "monitor/process/child.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tsomon {
namespace {

constexpr std::array kForwarded = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

void close_fd(int fd) {
  if (fd >= 0) {
    ::close(fd);
  }
}

}  // namespace

// Takes the signals instead of the process, on a thread of its own: nothing depends on when a
// handler would be let in.
class Child::Forwarding {
 public:
  // Blocks the signals; they wait for start().
  Forwarding(StopFlag* stop, std::function<bool()> behind)
      : stop_flag_(stop), behind_(std::move(behind)) {
    sigemptyset(&taken_);
    for (const int number : kForwarded) {
      struct sigaction action {};
      sigaction(number, nullptr, &action);
      // Ignored signals stay ignored, here and in the child: nohup.
      if (action.sa_handler != SIG_IGN) {
        sigaddset(&taken_, number);
      }
    }
    pthread_sigmask(SIG_BLOCK, &taken_, &before_);
  }
  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;
  ~Forwarding() {
    if (thread_.joinable()) {
      if (child_ == kNotYet) {
        start(0);
      }
      const uint64_t one = 1;
      // It cannot fail: the counter of an event descriptor is far from full.
      static_cast<void>(!::write(stop_, &one, sizeof one));
      thread_.join();
    }
    // What came after the child's end is not meant for us.
    const timespec at_once{};
    while (sigtimedwait(&taken_, nullptr, &at_once) > 0) {
    }
    close_fd(signals_);
    close_fd(stop_);
    close_fd(leaving_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  // errno of what failed, or 0. The thread starts here: when it cannot, nothing has begun.
  int prepare() {
    signals_ = ::signalfd(-1, &taken_, SFD_CLOEXEC | SFD_NONBLOCK);
    stop_ = signals_ < 0 ? -1 : ::eventfd(0, EFD_CLOEXEC);
    leaving_ = stop_ < 0 ? -1 : ::eventfd(0, EFD_CLOEXEC);
    if (leaving_ < 0) {
      return errno;
    }
    try {
      thread_ = std::thread([this] {
        child_.wait(kNotYet);
        forward();
      });
    } catch (const std::system_error& error) {
      return error.code().value();
    }
    return 0;
  }
  void start(pid_t child) {
    child_ = child;
    child_.notify_one();
  }
  // The child has been waited for: its number may belong to another process.
  void child_ended() {
    child_ = 0;
    int64_t never = kNever;
    ended_at_.compare_exchange_strong(never, now());
  }
  const sigset_t& mask_before() const { return before_; }
  // The signal after which the program is left; 0: it is not.
  int left() const { return left_; }
  // Until then, or until `ended` is readable; -1: a moment.
  void wait_for(int ended) const {
    std::array<pollfd, 2> ready{{{leaving_, POLLIN, 0}, {ended, POLLIN, 0}}};
    ::poll(ready.data(), ready.size(), ended < 0 ? kTick : -1);
  }

 private:
  void forward() {
    for (;;) {
      std::array<pollfd, 2> ready{{{signals_, POLLIN, 0}, {stop_, POLLIN, 0}}};
      if (::poll(ready.data(), ready.size(), asked_at_ == kNever ? -1 : kTick) < 0 &&
          errno != EINTR) {
        return;
      }
      signalfd_siginfo info{};
      while (::read(signals_, &info, sizeof info) == sizeof info) {
        // The terminal sends its signals to the whole foreground group: the child has its own.
        const pid_t child = child_;
        if (child > 0 && info.ssi_code != SI_KERNEL) {
          kill(child, static_cast<int>(info.ssi_signo));
        }
        // The signal that ended it may have come here, too.
        if (const int64_t ended = ended_at_; ended != kNever && now() - ended > kAfterEnd) {
          ask();
        }
        if (info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM) {
          note_request(now(), info.ssi_code != SI_KERNEL, static_cast<int>(info.ssi_signo));
        }
      }
      end_in_time(now());
      if (ready[1].revents != 0) {
        return;
      }
    }
  }

  void ask() {
    if (stop_flag_ != nullptr) {
      stop_flag_->ask();
    }
  }

  void note_request(int64_t at, bool sent, int number) {
    // timeout(1) sends each signal to the process and to its group.
    if (asked_at_ != kNever && at - asked_at_ <= kAfterEnd) {
      return;
    }
    if (asked_at_ != kNever && at - asked_at_ <= kTwice) {
      ask();
      leave_at_ = sent ? at + kAfterRequest : kNever;
      leave_with_ = number;
    }
    asked_at_ = at;
  }

  // Some time after the program was asked to end.
  void end_in_time(int64_t at) {
    if (leave_at_ != kNever && at >= leave_at_ && ended_at_ == kNever && left_ == 0) {
      left_ = leave_with_;
      const uint64_t one = 1;
      static_cast<void>(!::write(leaving_, &one, sizeof one));
    }
    if (asked_at_ == kNever) {
      return;
    }
    const int64_t ended = ended_at_;
    if (ended != kNever
            ? at - std::max(ended, asked_at_) > kAfterRequest
            : at - asked_at_ > kAfterRequest && at - asked_at_ < kTwice && behind_ && behind_()) {
      ask();
    }
  }

  static constexpr pid_t kNotYet = -1;
  static constexpr int64_t kNever = -1;
  static constexpr int64_t kAfterEnd = 200'000'000;
  static constexpr int64_t kAfterRequest = 500'000'000;
  static constexpr int64_t kTwice = 2'000'000'000;
  static constexpr int kTick = 50;  // milliseconds
  static int64_t now() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  }

  sigset_t taken_{};
  sigset_t before_{};
  int signals_ = -1;
  int stop_ = -1;
  int leaving_ = -1;  // readable when the program is left
  std::atomic<pid_t> child_{kNotYet};
  std::atomic<int64_t> ended_at_{kNever};
  StopFlag* stop_flag_;
  std::function<bool()> behind_;
  int64_t asked_at_ = kNever;  // when the program was last asked to end
  int64_t leave_at_ = kNever;
  int leave_with_ = 0;
  std::atomic<int> left_{0};
  std::thread thread_;
};

Child::Child(const std::vector<std::string>& command,
             const std::function<bool(pid_t)>& before_start, StopFlag* stop,
             std::function<bool()> behind) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  // Closed by a successful exec; else it carries the reason.
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) {
    exec_error_ = errno;
    return;
  }
  // The child waits for a byte in here.
  std::array<int, 2> start_ends{};
  if (pipe2(start_ends.data(), O_CLOEXEC) != 0) {
    exec_error_ = errno;
    ::close(pipe_ends[0]);
    ::close(pipe_ends[1]);
    return;
  }
  // Before fork: no signal gets lost.
  forwarding_ = std::make_unique<Forwarding>(stop, std::move(behind));
  if (exec_error_ = forwarding_->prepare(); exec_error_ != 0) {
    for (const int end : {pipe_ends[0], pipe_ends[1], start_ends[0], start_ends[1]}) {
      ::close(end);
    }
    return;
  }
  pid_ = fork();
  if (pid_ == 0) {
    pthread_sigmask(SIG_SETMASK, &forwarding_->mask_before(), nullptr);
    ::close(start_ends[1]);
    char go = 0;
    ssize_t told = 0;
    do {
      told = ::read(start_ends[0], &go, 1);
    } while (told < 0 && errno == EINTR);
    if (told != 1) {
      const int cancelled = ECANCELED;
      [[maybe_unused]] const ssize_t sent = ::write(pipe_ends[1], &cancelled, sizeof cancelled);
      _exit(125);
    }
    execvp(arguments[0], arguments.data());
    const int error = errno;
    const ssize_t sent = ::write(pipe_ends[1], &error, sizeof error);
    _exit(sent == sizeof error ? 127 : 125);
  }
  const int fork_error = errno;
  ::close(pipe_ends[1]);
  if (pid_ > 0 && (!before_start || before_start(pid_))) {
    const char go = 1;
    [[maybe_unused]] const ssize_t sent = ::write(start_ends[1], &go, 1);
  }
  ::close(start_ends[0]);
  ::close(start_ends[1]);
  if (pid_ < 0) {
    exec_error_ = fork_error;
  } else {
    process_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
    forwarding_->start(pid_);
    ssize_t got = 0;
    do {
      got = ::read(pipe_ends[0], &exec_error_, sizeof exec_error_);
    } while (got < 0 && errno == EINTR);
    if (exec_error_ != 0) {
      wait();
    }
  }
  ::close(pipe_ends[0]);
}

Child::~Child() {
  if (pid_ > 0 && !ended_) {
    wait();
  }
  close_fd(process_);
}

bool Child::ended() {
  if (!ended_) {
    const pid_t got = waitpid(pid_, &wait_status_, WNOHANG);
    if (got == pid_ || (got < 0 && errno != EINTR)) {
      ended_ = true;
      forwarding_->child_ended();
    }
  }
  return ended_;
}

bool Child::left() const { return forwarding_ != nullptr && forwarding_->left() != 0; }

int Child::wait() {
  while (!ended()) {
    if (left()) {
      return forwarding_->left();
    }
    forwarding_->wait_for(process_);
  }
  return wait_status_;
}

bool Child::short_of_resources() const {
  return exec_error_ == EAGAIN || exec_error_ == ENOMEM || exec_error_ == EMFILE ||
         exec_error_ == ENFILE;
}

int exit_status(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace tsomon
