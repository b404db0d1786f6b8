#include "monitor/record.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "decoders/capture/chunks.h"

namespace tsomon {
namespace {

namespace fs = std::filesystem;

constexpr std::array kForwarded = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

// The running child; signals that arrive go there.
volatile sig_atomic_t child = 0;

void forward(int number, siginfo_t* info, void*) {
  // The terminal sends its signals to the whole foreground group: the child has its own.
  const bool from_terminal = info->si_code == SI_KERNEL;
  if (child > 0 && !from_terminal) {
    const int saved_errno = errno;
    kill(static_cast<pid_t>(child), number);
    errno = saved_errno;
  }
}

// Handlers for kForwarded while it lives.
class Forwarding {
 public:
  Forwarding() {
    struct sigaction action {};
    action.sa_sigaction = forward;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < kForwarded.size(); ++i) {
      sigaction(kForwarded[i], nullptr, &old_[i]);
      // Ignored signals stay ignored, here and in the child: nohup.
      if (old_[i].sa_handler != SIG_IGN) {
        sigaction(kForwarded[i], &action, nullptr);
      }
    }
  }
  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;
  ~Forwarding() {
    for (size_t i = 0; i < kForwarded.size(); ++i) {
      sigaction(kForwarded[i], &old_[i], nullptr);
    }
  }

 private:
  std::array<struct sigaction, kForwarded.size()> old_{};
};

bool is_capture(const fs::path& path) {
  std::array<char, 128> head{};
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), head.size());
  return capture::looks_like_capture({head.data(), static_cast<size_t>(file.gcount())});
}

bool names_output(const std::string& options) {
  return options.rfind("output=", 0) == 0 || options.find(":output=") != std::string::npos;
}

// Makes place for the capture; the problem if there is one.
std::optional<std::string> prepare(const fs::path& output) {
  std::error_code error;
  if (fs::is_regular_file(output, error)) {
    if (fs::file_size(output, error) != 0 && !is_capture(output)) {
      return fmt::format(
          "{}: exists and is not a capture; it is not overwritten. Remove it or "
          "choose another file with -o",
          output.string());
    }
    if (!fs::remove(output, error)) {
      return fmt::format("{}: cannot be replaced: {}", output.string(), error.message());
    }
  }
  // Tried here, where it can be told apart from a program that does not record.
  const bool existed = fs::exists(output, error);
  const int fd = ::open(output.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
  if (fd < 0) {
    return fmt::format("{}: cannot be written: {}", output.string(), std::strerror(errno));
  }
  ::close(fd);
  if (!existed) {
    fs::remove(output, error);
  }
  return std::nullopt;
}

// The captures FILE and FILE.PID that lie there.
std::vector<std::string> written(const fs::path& output) {
  std::vector<std::string> files;
  std::error_code error;
  const std::string prefix = output.filename().string() + ".";
  for (const auto& entry : fs::directory_iterator(output.parent_path(), error)) {
    const std::string name = entry.path().filename().string();
    const bool further = name.size() > prefix.size() && name.rfind(prefix, 0) == 0 &&
                         std::all_of(name.begin() + static_cast<ptrdiff_t>(prefix.size()),
                                     name.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (further && is_capture(entry.path())) {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  if (is_capture(output)) {
    files.insert(files.begin(), output.string());
  }
  return files;
}

// Runs until the child has ended; its wait status, or the errno of exec.
struct Ended {
  int exec_error = 0;
  int wait_status = 0;
};

Ended run(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  // Closed by a successful exec; else it carries the reason.
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) {
    return {errno, 0};
  }
  // No signal between fork and the handlers' knowing the child gets lost.
  sigset_t forwarded;
  sigset_t before;
  sigemptyset(&forwarded);
  for (const int number : kForwarded) {
    sigaddset(&forwarded, number);
  }
  sigprocmask(SIG_BLOCK, &forwarded, &before);
  const Forwarding forwarding;
  const pid_t pid = fork();
  if (pid == 0) {
    for (const int number : kForwarded) {
      struct sigaction action {};
      sigaction(number, nullptr, &action);
      if (action.sa_handler != SIG_IGN) {
        std::signal(number, SIG_DFL);
      }
    }
    sigprocmask(SIG_SETMASK, &before, nullptr);
    execvp(arguments[0], arguments.data());
    const int error = errno;
    const ssize_t sent = ::write(pipe_ends[1], &error, sizeof error);
    _exit(sent == sizeof error ? kNotFound : kRecordFailed);
  }
  const int fork_error = errno;
  child = pid;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  ::close(pipe_ends[1]);
  Ended ended;
  if (pid < 0) {
    ended.exec_error = fork_error;
  } else {
    ssize_t got = 0;
    do {
      got = ::read(pipe_ends[0], &ended.exec_error, sizeof ended.exec_error);
    } while (got < 0 && errno == EINTR);
    while (waitpid(pid, &ended.wait_status, 0) < 0 && errno == EINTR) {
    }
  }
  child = 0;
  ::close(pipe_ends[0]);
  return ended;
}

}  // namespace

std::string probe_options(const std::string& options, const std::string& path) {
  std::string text = options;
  if (!text.empty() && text.back() != ':') {
    text += ':';
  }
  text += "existing=keep:output=";
  for (const char c : path) {
    text += c == ':' ? std::string("\\:") : std::string(1, c);
  }
  return text;
}

RecordResult record(const std::vector<std::string>& command, const std::string& output) {
  RecordResult result;
  const char* const present = std::getenv("TSOMON_OPTIONS");
  const std::string options = present == nullptr ? "" : present;
  if (names_output(options)) {
    result.problem = "TSOMON_OPTIONS names an output already; remove it there and use -o";
    return result;
  }
  // Absolute: the program may change its folder before it records.
  const fs::path path = fs::absolute(output).lexically_normal();
  if (auto problem = prepare(path)) {
    result.problem = std::move(*problem);
    return result;
  }
  const std::vector<std::string> old_files = written(path);
  setenv("TSOMON_OPTIONS", probe_options(options, path.string()).c_str(), 1);
  const Ended ended = run(command);
  if (present == nullptr) {
    unsetenv("TSOMON_OPTIONS");
  } else {
    setenv("TSOMON_OPTIONS", options.c_str(), 1);
  }

  if (ended.exec_error != 0) {
    result.status = ended.exec_error == ENOENT ? kNotFound : kNotExecutable;
    result.problem = fmt::format("{}: {}", command[0], std::strerror(ended.exec_error));
    return result;
  }
  for (std::string& file : written(path)) {
    if (file == path.string() ||
        std::find(old_files.begin(), old_files.end(), file) == old_files.end()) {
      result.files.push_back(std::move(file));
    }
  }
  const int status = WIFSIGNALED(ended.wait_status) ? 128 + WTERMSIG(ended.wait_status)
                                                    : WEXITSTATUS(ended.wait_status);
  std::error_code error;
  const bool is_device = fs::exists(path, error) && !fs::is_regular_file(path, error);
  if (result.files.empty() && !is_device) {
    result.problem = fmt::format(
        "no capture was written: '{0}' ended with status {1}, and it is not linked with the tsomon "
        "probe or did not live to record. Build it with tsomon-c++ or tsomon-cc in the place of "
        "its compiler, then run: tsomon record -- {2}",
        command[0], status, fmt::join(command, " "));
    return result;
  }
  result.status = status;
  return result;
}

}  // namespace tsomon
