#include "monitor/service/started_program.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
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

}  // namespace

Result<StartedProgram> StartedProgram::start(const std::vector<std::string>& command,
                                             const std::string& control) {
  std::vector<std::string> words = command;
  std::vector<std::string> environment = environment_with(control);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, words.front().c_str(), &files, &attributes,
                                   pointers(words).data(), pointers(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    return tl::unexpected<Error>(
        Error{error == ENOENT ? ErrorKind::kUsage : ErrorKind::kEnvironment,
              printable(command.front()),
              {},
              fmt::format("cannot be started: {}", std::strerror(error))});
  }
  return StartedProgram(pid);
}

StartedProgram::StartedProgram(StartedProgram&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      ended_(std::exchange(other.ended_, true)),
      status_(other.status_) {}

StartedProgram::~StartedProgram() {
  if (has_ended()) {
    return;
  }
  ::kill(pid_, SIGTERM);
  constexpr std::chrono::milliseconds kLook{10};
  for (int looks = 0; looks < 20 && !has_ended(); ++looks) {
    std::this_thread::sleep_for(kLook);
  }
}

bool StartedProgram::has_ended() {
  ended_ = ended_ || ::waitpid(pid_, &status_, WNOHANG) == pid_;
  return ended_;
}

}  // namespace tsomon::service
