#include "monitor/service/helper.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <map>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/process/descriptor_message.h"
#include "monitor/process/process_access.h"
#include "monitor/process/running_programs.h"
#include "monitor/process/target.h"
#include "monitor/service/helper_protocol.h"
#include "monitor/service/listen_address.h"
#include "monitor/service/local_socket.h"
#include "monitor/service/started_program.h"
#include "monitor/service/target_access.h"
#include "monitor/service/trusted_file.h"

namespace tsomon::service {
namespace {

tl::unexpected<Error> helper_refuses(std::string why) {
  return tl::unexpected<Error>(Error{ErrorKind::kEnvironment, "refused", {}, std::move(why)});
}

// Files are opened and sockets connected to as the process's user, for as long as this is there.
class AsUserOf {
 public:
  explicit AsUserOf(pid_t pid) {
    user_ = last_of(attach::status_field(pid, "Uid"));
    group_ = last_of(attach::status_field(pid, "Gid"));
    if (user_ && group_) {
      ::setfsgid(*group_);
      ::setfsuid(*user_);
    }
  }
  AsUserOf(const AsUserOf&) = delete;
  AsUserOf& operator=(const AsUserOf&) = delete;
  ~AsUserOf() {
    ::setfsuid(::geteuid());
    ::setfsgid(::getegid());
  }
  // Those that files are opened with are the process's.
  bool is_so() const {
    return user_ && group_ && static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1))) == *user_ &&
           static_cast<gid_t>(::setfsgid(static_cast<gid_t>(-1))) == *group_;
  }

 private:
  // Real, effective, saved, of files.
  static std::optional<uint32_t> last_of(const std::string& line) {
    std::istringstream fields(line);
    std::optional<uint32_t> last;
    for (uint32_t each = 0; fields >> each;) {
      last = each;
    }
    return last;
  }
  std::optional<uint32_t> user_;
  std::optional<uint32_t> group_;
};

// A file in memory with the text, which nobody can change.
Result<Descriptor> sealed(const std::string& text) {
  Descriptor file(::memfd_create("tsomon-configuration", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.is_open()) {
    return fail(ErrorKind::kEnvironment, std::strerror(errno));
  }
  if (const auto written = write_at(file, text.data(), text.size(), 0); !written) {
    return tl::unexpected<Error>(written.error());
  }
  ::fchmod(file.get(), 0444);
  ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
  return file;
}

class Helper {
 public:
  Helper(Descriptor socket, HelperTask task) : socket_(std::move(socket)), task_(std::move(task)) {
    use(task_.config);
  }
  void serve();

 private:
  struct Target {
    TargetConfig config;
    uint64_t began = 0;  // of the process that it names by its number
    std::optional<StartedProgram> started;
    int wait_status = 0;  // of the one that has ended last
  };
  struct Reply {
    HelperAnswer answer;
    Descriptor descriptor;
  };

  void use(const ServiceConfig& config);
  void look_after();
  std::optional<HelperRequest> receive(bool* open);
  Result<Reply> answer(const HelperRequest& request);
  Result<Descriptor> open(const HelperRequest& request, Target& target);
  Result<Descriptor> read_again();
  Result<Descriptor> listen() const;
  bool send(const Result<Reply>& reply);
  static bool is_of(Target& target, pid_t pid);

  Descriptor socket_;
  HelperTask task_;
  std::map<uint64_t, Target> targets_;
  std::string metrics_listen_;
  std::vector<Descriptor> left_;  // children of targets that are gone
};

void Helper::use(const ServiceConfig& config) {
  std::map<uint64_t, Target> fresh;
  for (const TargetConfig& each : config.targets) {
    const uint64_t number = target_number(each.name);
    const auto before = targets_.find(number);
    if (before != targets_.end() && before->second.config == each) {
      fresh.emplace(number, std::move(before->second));
    } else {
      fresh.emplace(number,
                    Target{each, each.pid != 0 ? attach::start_of(each.pid) : 0, std::nullopt, 0});
    }
  }
  // What was started for those that are gone is asked to end by who has asked for it.
  for (const auto& [number, target] : targets_) {
    if (target.started) {
      left_.emplace_back(::fcntl(target.started->handle().get(), F_DUPFD_CLOEXEC, 0));
    }
  }
  targets_ = std::move(fresh);
  metrics_listen_ = config.metrics_listen;
}

void Helper::look_after() {
  for (auto& [number, target] : targets_) {
    if (target.started && target.started->has_ended()) {
      target.wait_status = target.started->wait_status();
      target.started.reset();
    }
  }
  std::erase_if(left_, [](const Descriptor& each) {
    siginfo_t ended{};
    return ::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(each.get()), &ended,
                    WEXITED | WNOHANG) != 0 ||
           ended.si_pid != 0;
  });
}

bool Helper::is_of(Target& target, pid_t pid) {
  if (target.config.pid != 0) {
    return pid == target.config.pid && target.began != 0 && attach::start_of(pid) == target.began;
  }
  if (!target.config.command.empty()) {
    return target.started && !target.started->has_ended() && pid == target.started->pid();
  }
  return pid > 0 && pid != ::getpid() && service::is_of(target.config, pid);
}

Result<Descriptor> Helper::open(const HelperRequest& request, Target& target) {
  const pid_t pid = request.pid;
  const uint64_t began = attach::start_of(pid);
  if (began == 0 || !is_of(target, pid)) {
    return helper_refuses(fmt::format("process {} is none of target {}", pid, target.config.name));
  }
  attach::ProcessAccess& access = attach::direct_access();
  Result<Descriptor> opened;
  {
    const AsUserOf user(pid);
    if (!user.is_so()) {
      return helper_refuses(fmt::format("process {} is a user's whom nobody can act as", pid));
    }
    if (request.question == HelperQuestion::kExecutable) {
      opened = access.executable(pid);
    } else if (request.question == HelperQuestion::kMappings) {
      opened = access.mappings(pid);
    } else if (request.question == HelperQuestion::kConnect) {
      opened = access.connect(pid, target.config.control);
    } else {
      const auto mappings = attach::read_mappings(pid, access);
      const auto found =
          !mappings ? std::vector<attach::Mapping>::const_iterator()
                    : std::find_if(mappings->begin(), mappings->end(), [&](const auto& each) {
                        return each.begin == request.begin && each.end == request.end &&
                               each.executable && each.inode != 0;
                      });
      if (!mappings || found == mappings->end()) {
        return helper_refuses(fmt::format("process {} has no such code", pid));
      }
      opened = access.code(pid, *found);
    }
  }
  if (opened && (attach::start_of(pid) != began || !is_of(target, pid))) {
    return helper_refuses(fmt::format("process {} has become another one", pid));
  }
  return opened;
}

// The targets are those of the new text, if there is no mistake in it.
Result<Descriptor> Helper::read_again() {
  const ConfigReading reading = read_trusted_config(task_.config_file, ::geteuid());
  if (!reading.errors.empty() && reading.text.empty()) {
    return tl::unexpected<Error>(reading.errors.front());
  }
  auto file = sealed(reading.text);
  if (file && reading.errors.empty()) {
    use(reading.config);
  }
  return file;
}

// At a port of this machine alone.
Result<Descriptor> Helper::listen() const {
  const auto address = parse_listen_address(metrics_listen_);
  if (metrics_listen_.empty() || !address || address->is_unix()) {
    return helper_refuses("metrics are asked for at no port");
  }
  return ListeningSocket::open(*address).map([](const ListeningSocket& socket) {
    return Descriptor(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
  });
}

Result<Helper::Reply> Helper::answer(const HelperRequest& request) {
  Reply reply;
  const auto keep = [&](Descriptor&& descriptor) {
    reply.descriptor = std::move(descriptor);
    return std::move(reply);
  };
  if (request.question == HelperQuestion::kConfiguration) {
    return read_again().map(keep);
  }
  if (request.question == HelperQuestion::kListen) {
    return listen().map(keep);
  }
  const auto found = targets_.find(request.target);
  if (found == targets_.end()) {
    return helper_refuses("there is no such target");
  }
  Target& target = found->second;
  switch (request.question) {
    case HelperQuestion::kProcesses:
      for (const pid_t pid : processes_of(target.config)) {
        if (reply.answer.count < HelperAnswer::kMostProcesses) {
          reply.answer.processes[reply.answer.count++] = pid;
        }
      }
      return reply;
    case HelperQuestion::kExecutable:
    case HelperQuestion::kMappings:
    case HelperQuestion::kCode:
    case HelperQuestion::kConnect:
      return open(request, target).map(keep);
    case HelperQuestion::kStart: {
      look_after();
      if (target.config.command.empty() || target.started) {
        return helper_refuses(
            fmt::format("target {} has nothing to be started", target.config.name));
      }
      auto started =
          StartedProgram::start(target.config.command, target.config.control, &task_.account);
      if (!started) {
        return tl::unexpected<Error>(started.error());
      }
      reply.answer.count = 1;
      reply.answer.processes[0] = started->pid();
      reply.descriptor = Descriptor(::fcntl(started->handle().get(), F_DUPFD_CLOEXEC, 0));
      target.started.emplace(std::move(*started));
      return reply;
    }
    case HelperQuestion::kHowItEnded:
      look_after();
      if (target.config.command.empty()) {
        return helper_refuses(fmt::format("target {} is not started", target.config.name));
      }
      reply.answer.count = target.started ? 0 : 1;
      reply.answer.processes[0] = target.wait_status;
      return reply;
    case HelperQuestion::kConfiguration:
    case HelperQuestion::kListen:
      break;
  }
  return helper_refuses("there is no such request");
}

// Nothing: it is none, and is answered as such. `open` false: nobody asks any more.
std::optional<HelperRequest> Helper::receive(bool* open) {
  HelperRequest request;
  const ReceivedMessage received = receive_message(socket_.get(), &request, sizeof request);
  *open = received.size > 0;
  // A descriptor that came with it is not wanted.
  const bool is_one =
      received.size == sizeof request && received.whole && !received.descriptor.is_open();
  return is_one ? std::optional(request) : std::nullopt;
}

bool Helper::send(const Result<Reply>& reply) {
  HelperAnswer answer;
  if (reply) {
    answer = reply->answer;
  } else {
    answer.error = SentError(reply.error());
  }
  return send_message(socket_.get(), &answer,
                      offsetof(HelperAnswer, processes) + answer.count * sizeof(int32_t),
                      reply ? reply->descriptor.get() : -1);
}

void Helper::serve() {
  constexpr int kLook = 1000;  // milliseconds between looks at what was started
  for (bool goes_on = true; goes_on;) {
    pollfd state{socket_.get(), POLLIN, 0};
    if (::poll(&state, 1, kLook) == 1) {
      const auto request = receive(&goes_on);
      goes_on = goes_on && send(request ? answer(*request) : helper_refuses("that is no request"));
    }
    look_after();
  }
}

}  // namespace

void serve_as_helper(Descriptor socket, HelperTask task) {
  const uid_t user = task.account.user;
  {
    Helper helper(std::move(socket), std::move(task));
    helper.serve();
    // What was started is its user's: root without CAP_KILL may not ask it to end, neither here nor by its own end.
    (void)!::setresuid(user, user, user);
  }
  ::_exit(0);
}

}  // namespace tsomon::service
