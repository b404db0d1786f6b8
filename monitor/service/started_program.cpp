#include "monitor/service/started_program.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tso/support/printable.h"

namespace tsomon::service {
namespace {

constexpr std::string_view kOptions = "TSOMON_OPTIONS=";

std::vector<std::string> environment_with(const std::string& control) {
  std::vector<std::string> list;
  std::string options(kOptions);
  for (char** each = environ; *each != nullptr; ++each) {
    if (std::string_view(*each).starts_with(kOptions)) {
      options = *each;
    } else {
      list.emplace_back(*each);
    }
  }
  options += options.size() > kOptions.size() ? ":" : "";
  options += "control=" + (control.empty() ? "on" : control);
  list.push_back(std::move(options));
  return list;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) {
    list.push_back(text.data());
  }
  list.push_back(nullptr);
  return list;
}

// In the new process: what went wrong goes to `problem`, which is closed where nothing did.
[[noreturn]] void execute(char* const* words, char* const* environment, const Account* account,
                          pid_t parent, int problem) {
  int error = 0;
  for (int number = 1; number < NSIG; ++number) {
    ::signal(number, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (account != nullptr) {
    error = account->become();
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    error = error == 0 && ::getppid() != parent ? ESRCH : error;
  }
  const int input = ::open("/dev/null", O_RDONLY);
  if (error == 0 && input >= 0 && ::dup2(input, STDIN_FILENO) >= 0 &&
      ::dup2(STDERR_FILENO, STDOUT_FILENO) >= 0) {
    ::execvpe(words[0], words, environment);
  }
  error = error == 0 ? errno : error;
  [[maybe_unused]] const ssize_t told = ::write(problem, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

Result<StartedProgram> StartedProgram::start(const std::vector<std::string>& command,
                                             const std::string& control, const Account* account) {
  std::vector<std::string> words = command;
  std::vector<std::string> environment = environment_with(control);
  const std::vector<char*> word_pointers = pointers(words);
  const std::vector<char*> environment_pointers = pointers(environment);
  const auto problem = [&](int error) {
    return tl::unexpected<Error>(
        Error{error == ENOENT ? ErrorKind::kUsage : ErrorKind::kEnvironment,
              printable(command.front()),
              {},
              fmt::format("cannot be started: {}", std::strerror(error))});
  };
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return problem(errno);
  }
  const Descriptor reading(ends[0]);
  Descriptor writing(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    execute(word_pointers.data(), environment_pointers.data(), account, parent, writing.get());
  }
  if (pid < 0) {
    return problem(errno);
  }
  writing = Descriptor();
  StartedProgram program(pid, Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))));
  int error = 0;
  if (::read(reading.get(), &error, sizeof error) == sizeof error) {
    ::waitpid(pid, nullptr, 0);
    program.ended_ = true;
    return problem(error);
  }
  return program;
}

StartedProgram::StartedProgram(StartedProgram&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      handle_(std::move(other.handle_)),
      ended_(std::exchange(other.ended_, true)),
      status_(other.status_) {}

StartedProgram::~StartedProgram() {
  if (has_ended()) {
    return;
  }
  ::syscall(SYS_pidfd_send_signal, handle_.get(), SIGTERM, nullptr, 0);
  constexpr std::chrono::milliseconds kLook{10};
  for (int looks = 0; looks < 20 && !has_ended(); ++looks) {
    std::this_thread::sleep_for(kLook);
  }
}

bool StartedProgram::has_ended() {
  pollfd state{handle_.get(), POLLIN, 0};
  if (!ended_ && ::poll(&state, 1, 0) == 1) {
    ended_ = true;
    // Where it is this process's child.
    status_ = ::waitpid(pid_, &status_, WNOHANG) == pid_ ? status_ : -1;
  }
  return ended_;
}

}  // namespace tsomon::service
