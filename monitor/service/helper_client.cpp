#include "monitor/service/helper_client.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/events/read_input.h"
#include "monitor/process/descriptor_message.h"
#include "monitor/process/target.h"
#include "monitor/service/helper_protocol.h"
#include "monitor/service/idle_launcher.h"
#include "tso/support/printable.h"

namespace tsomon::service {
namespace {

struct Answered {
  HelperAnswer answer;
  Descriptor descriptor;
};

// A part of the service, for as long as it is asked. None of its calls is safe for several threads.
class Part {
 public:
  explicit Part(ServicePart part) : socket_(std::move(part.socket)), pid_(part.pid) {}
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() {
    socket_ = Descriptor();
    if (!waited_ && pid_ > 0) {
      ::waitpid(pid_, nullptr, 0);
    }
  }
  const Descriptor& socket() const { return socket_; }
  // How; empty: it has not.
  std::string ended() {
    int status = 0;
    if (waited_ || pid_ <= 0 || ::waitpid(pid_, &status, WNOHANG) != pid_) {
      return {};
    }
    waited_ = true;
    return WIFSIGNALED(status) ? fmt::format("has ended by signal {} ({})", WTERMSIG(status),
                                             ::strsignal(WTERMSIG(status)))
                               : fmt::format("has ended with status {}", WEXITSTATUS(status));
  }

 private:
  Descriptor socket_;
  const pid_t pid_;
  bool waited_ = false;
};

class Channel {
 public:
  explicit Channel(ServicePart helper) : helper_(std::move(helper)) {}

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
  Part helper_;
  std::string why_;  // it has ended; empty: it has not
};

Result<Answered> Channel::ask(const HelperRequest& request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!why_.empty()) {
    return fails({});
  }
  if (!send_message(helper_.socket().get(), &request, sizeof request)) {
    return fails("has ended");
  }
  auto answered = receive();
  if (answered) {
    if (auto error = answered->answer.error.error()) {
      return tl::unexpected<Error>(std::move(*error));
    }
  }
  return answered;
}

Result<Answered> Channel::receive() {
  constexpr int kPatience = 10'000;  // milliseconds
  pollfd state{helper_.socket().get(), POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&state, 1, kPatience);
  } while (ready < 0 && errno == EINTR);
  if (ready != 1) {
    return fails("does not answer");
  }
  Answered answered;
  HelperAnswer& answer = answered.answer;
  ReceivedMessage received = receive_message(helper_.socket().get(), &answer, sizeof answer);
  const size_t expected =
      offsetof(HelperAnswer, processes) +
      std::min<size_t>(answer.count, HelperAnswer::kMostProcesses) * sizeof(int32_t);
  answered.descriptor = std::move(received.descriptor);
  if (received.size <= 0) {
    return fails("has ended");
  }
  if (static_cast<size_t>(received.size) != expected) {
    return fails("answers what nobody understands");
  }
  return answered;
}

std::string Channel::ended() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (std::string how = helper_.ended(); !how.empty()) {
    why_ = std::move(how);
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
  std::optional<int> wait_status(const StartedProgram& /*ended*/) override {
    const auto answered = ask({HelperQuestion::kHowItEnded, 0, target_, 0, 0});
    return answered && answered->answer.count == 1 ? std::optional(answered->answer.processes[0])
                                                   : std::nullopt;
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
  HelpedService(ServicePart helper, ServicePart launcher, std::string config_file)
      : channel_(std::make_shared<Channel>(std::move(helper))),
        launcher_(std::move(launcher)),
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
  Result<IdleEnd> run_idle(const IdleBounds& bounds, const std::vector<std::string>& command,
                           const std::function<bool()>& stopped) override {
    return run_by_launcher(launcher_.socket(), bounds, command, stopped);
  }
  // It makes none that could reach others (system_calls.h).
  Result<ListeningSocket> listen(const ListenAddress& address) override {
    if (address.is_unix()) {
      return ListeningSocket::open(address);
    }
    return channel_->ask({HelperQuestion::kListen, 0, 0, 0, 0}).and_then([&](Answered&& answered) {
      return ListeningSocket::adopt(std::move(answered.descriptor), address);
    });
  }
  std::string ended() override {
    const std::string how = launcher_.ended();
    return how.empty() ? channel_->ended() : "the launcher of analyses " + how;
  }

 private:
  const std::shared_ptr<Channel> channel_;
  Part launcher_;
  const std::string config_file_;
};

}  // namespace

std::unique_ptr<ServiceAccess> helped_service_access(ServicePart helper, ServicePart launcher,
                                                     std::string config_file) {
  return std::make_unique<HelpedService>(std::move(helper), std::move(launcher),
                                         std::move(config_file));
}

}  // namespace tsomon::service
