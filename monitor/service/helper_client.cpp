#include "monitor/service/helper_client.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/events/read_input.h"
#include "monitor/process/target.h"
#include "monitor/service/helper_protocol.h"
#include "tso/support/printable.h"

namespace tsomon::service {
namespace {

struct Answered {
  HelperAnswer answer;
  Descriptor descriptor;
};

std::string text_of(const auto& bytes) {
  return printable(std::string(bytes.data(), ::strnlen(bytes.data(), bytes.size())));
}

class Channel {
 public:
  Channel(Descriptor socket, pid_t helper) : socket_(std::move(socket)), helper_(helper) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel() {
    socket_ = Descriptor();
    ::waitpid(helper_, nullptr, 0);
  }

  Result<Answered> ask(const HelperRequest& request);
  std::string ended();

 private:
  Result<Answered> receive();
  // Under the lock.
  tl::unexpected<Error> fails(std::string why) {
    if (why_.empty()) {
      why_ = std::move(why);
    }
    return tl::unexpected<Error>(Error{ErrorKind::kEnvironment, "the privileged helper", {}, why_});
  }

  std::mutex mutex_;  // of all
  Descriptor socket_;
  const pid_t helper_;
  bool waited_ = false;
  std::string why_;  // it has ended; empty: it has not
};

Result<Answered> Channel::ask(const HelperRequest& request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!why_.empty()) {
    return fails({});
  }
  if (::send(socket_.get(), &request, sizeof request, MSG_NOSIGNAL) != sizeof request) {
    return fails("has ended");
  }
  auto answered = receive();
  if (answered && answered->answer.failed != 0) {
    const auto kind =
        std::min(answered->answer.failed - 1, static_cast<uint32_t>(ErrorKind::kEnvironment));
    return tl::unexpected<Error>(Error{static_cast<ErrorKind>(kind),
                                       text_of(answered->answer.input),
                                       {},
                                       text_of(answered->answer.message)});
  }
  return answered;
}

Result<Answered> Channel::receive() {
  constexpr int kPatience = 10'000;  // milliseconds
  pollfd state{socket_.get(), POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&state, 1, kPatience);
  } while (ready < 0 && errno == EINTR);
  if (ready != 1) {
    return fails("does not answer");
  }
  Answered answered;
  HelperAnswer& answer = answered.answer;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  iovec part{&answer, sizeof answer};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
  const size_t expected =
      offsetof(HelperAnswer, processes) +
      std::min<size_t>(answer.count, HelperAnswer::kMostProcesses) * sizeof(int32_t);
  if (const cmsghdr* const header = size > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
      header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    int sent = -1;
    std::memcpy(&sent, CMSG_DATA(header), sizeof sent);
    answered.descriptor = Descriptor(sent);
  }
  if (size <= 0) {
    return fails("has ended");
  }
  if (static_cast<size_t>(size) != expected) {
    return fails("answers what nobody understands");
  }
  return answered;
}

std::string Channel::ended() {
  const std::lock_guard<std::mutex> lock(mutex_);
  int status = 0;
  if (!waited_ && ::waitpid(helper_, &status, WNOHANG) == helper_) {
    waited_ = true;
    why_ = WIFSIGNALED(status) ? fmt::format("has ended by signal {} ({})", WTERMSIG(status),
                                             ::strsignal(WTERMSIG(status)))
                               : fmt::format("has ended with status {}", WEXITSTATUS(status));
  }
  return why_.empty() ? std::string() : "the privileged helper " + why_;
}

class HelpedTarget : public TargetAccess {
 public:
  HelpedTarget(std::shared_ptr<Channel> channel, const std::string& name)
      : channel_(std::move(channel)), target_(target_number(name)) {}

  std::vector<pid_t> processes() override {
    const auto answered = ask({HelperQuestion::kProcesses, 0, target_, 0, 0});
    if (!answered) {
      return {};
    }
    const auto& list = answered->answer.processes;
    return {list.begin(), list.begin() + answered->answer.count};
  }
  Result<StartedProgram> start() override {
    return ask({HelperQuestion::kStart, 0, target_, 0, 0}).map([](Answered&& answered) {
      return StartedProgram(answered.answer.processes[0], std::move(answered.descriptor));
    });
  }
  Result<Descriptor> executable(pid_t pid) override {
    return file({HelperQuestion::kExecutable, pid, target_, 0, 0});
  }
  Result<Descriptor> mappings(pid_t pid) override {
    return file({HelperQuestion::kMappings, pid, target_, 0, 0});
  }
  Result<Descriptor> code(pid_t pid, const attach::Mapping& mapping) override {
    return file({HelperQuestion::kCode, pid, target_, mapping.begin, mapping.end});
  }
  Result<Descriptor> connect(pid_t pid, const std::string& /*folder*/) override {
    return file({HelperQuestion::kConnect, pid, target_, 0, 0});
  }

 private:
  Result<Answered> ask(const HelperRequest& request) { return channel_->ask(request); }
  Result<Descriptor> file(const HelperRequest& request) {
    return ask(request).map([](Answered&& answered) { return std::move(answered.descriptor); });
  }

  const std::shared_ptr<Channel> channel_;
  const uint64_t target_;
};

class HelpedService : public ServiceAccess {
 public:
  HelpedService(Descriptor socket, pid_t helper, std::string config_file)
      : channel_(std::make_shared<Channel>(std::move(socket), helper)),
        config_file_(std::move(config_file)) {}

  std::unique_ptr<TargetAccess> of(const TargetConfig& target) override {
    return std::make_unique<HelpedTarget>(channel_, target.name);
  }
  ConfigReading read_again() override {
    const auto answered = channel_->ask({HelperQuestion::kConfiguration, 0, 0, 0, 0});
    if (!answered) {
      return {{}, {answered.error()}};
    }
    auto text = read_input(fmt::format("/proc/self/fd/{}", answered->descriptor.get()));
    if (!text) {
      return {{}, {std::move(text.error())}};
    }
    return parse_config(*text, input_name(config_file_));
  }
  std::string ended() override { return channel_->ended(); }

 private:
  const std::shared_ptr<Channel> channel_;
  const std::string config_file_;
};

}  // namespace

std::unique_ptr<ServiceAccess> helped_service_access(Descriptor socket, pid_t helper,
                                                     std::string config_file) {
  return std::make_unique<HelpedService>(std::move(socket), helper, std::move(config_file));
}

}  // namespace tsomon::service
