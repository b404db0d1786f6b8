#include "monitor/specification/sequential_program.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr int kLookMilliseconds = 100;
constexpr int kMostLooks = 100;

}  // namespace

Result<std::unique_ptr<SequentialProgram>> SequentialProgram::start(const std::string& command) {
  auto started = start(std::vector<std::string>{"/bin/sh", "-c", "exec " + command});
  if (started) {
    (*started)->name_ = command;
  }
  return started;
}

Result<std::unique_ptr<SequentialProgram>> SequentialProgram::start(
    const std::vector<std::string>& command) {
  std::unique_ptr<SequentialProgram> program(new SequentialProgram);
  program->name_ = command[0];
  // One socket for both directions: a write to it raises no signal when the other end is gone.
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return tl::unexpected(Error{ErrorKind::kEnvironment, program->name_, {}, std::strerror(errno)});
  }
  program->to_ = Descriptor(ends[0]);
  const Descriptor other(ends[1]);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  program->process_ = fork();
  if (program->process_ == 0) {
    setpgid(0, 0);  // a signal to the group ends the search, which ends this one
    dup2(ends[1], STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  if (program->process_ < 0) {
    return tl::unexpected(Error{ErrorKind::kEnvironment, program->name_, {}, std::strerror(errno)});
  }
  return program;
}

SequentialProgram::~SequentialProgram() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
}

Error SequentialProgram::failed(const std::string& why) const {
  return {ErrorKind::kUnreadable, name_, {}, "as a specification: " + why};
}

bool SequentialProgram::send(const std::string& line) {
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t got = ::send(to_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (got < 0 && errno != EINTR) {
      return false;
    }
    sent += got > 0 ? static_cast<size_t>(got) : 0;
  }
  return true;
}

// A line without its end.
Result<std::string> SequentialProgram::receive() {
  for (int looks = 0; looks < kMostLooks;) {
    if (const size_t end = read_.find('\n'); end != std::string::npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return line;
    }
    if (stop_asked()) {
      return tl::unexpected(failed("interrupted"));
    }
    pollfd waited{to_.get(), POLLIN, 0};
    if (poll(&waited, 1, kLookMilliseconds) <= 0) {
      ++looks;
      continue;
    }
    std::array<char, 4096> part{};
    const ssize_t got = ::recv(to_.get(), part.data(), part.size(), 0);
    if (got == 0 || (got < 0 && errno != EINTR)) {
      return tl::unexpected(failed("it has ended"));
    }
    read_.append(part.data(), got > 0 ? static_cast<size_t>(got) : 0);
  }
  return tl::unexpected(failed("no answer came in ten seconds"));
}

Result<std::string> SequentialProgram::result_of(const std::vector<std::string>& calls) {
  std::string line;
  for (const std::string& call : calls) {
    line += (line.empty() ? "" : " ") + call;
  }
  const std::lock_guard lock(mutex_);
  if (const auto known = known_.find(line); known != known_.end()) {
    return known->second;
  }
  if (!send(line + "\n")) {
    return tl::unexpected(failed(fmt::format("it has ended, asked for: {}", line)));
  }
  auto answer = receive();
  if (!answer) {
    Error error = std::move(answer.error());
    error.message += ", asked for: " + line;
    return tl::unexpected(std::move(error));
  }
  const auto bars = static_cast<size_t>(std::count(answer->begin(), answer->end(), '|'));
  if (bars + 1 != calls.size()) {
    return tl::unexpected(
        failed(fmt::format("{} results for {} calls: {}", bars + 1, calls.size(), line)));
  }
  if (known_.size() >= kMostKnown) {
    known_.clear();
  }
  const size_t last = answer->rfind('|');
  return known_[line] = last == std::string::npos ? *answer : answer->substr(last + 1);
}

}  // namespace tsomon
