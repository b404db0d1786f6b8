#include "monitor/service/separation.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/process/descriptor_message.h"
#include "monitor/service/account.h"
#include "monitor/service/helper.h"
#include "monitor/service/helper_client.h"
#include "monitor/service/idle_launcher.h"
#include "monitor/service/system_calls.h"
#include "monitor/service/trusted_file.h"
#include "tso/support/printable.h"

namespace tsomon::service {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> separation_error(const std::string& input, const char* what, int error) {
  return tl::unexpected<Error>(Error{ErrorKind::kEnvironment,
                                     printable(input),
                                     {},
                                     fmt::format("cannot {}: {}", what, std::strerror(error))});
}

// The first of what others may change.
Result<void> check_places(const ServiceConfig& config, uid_t user) {
  const std::vector<Error> errors = untrusted_places(config, user);
  return errors.empty() ? Result<void>() : tl::unexpected<Error>(errors.front());
}

// A folder of the account's alone, where there is none.
Result<void> make_store(const std::string& folder, const Account& account) {
  std::error_code error;
  const fs::path path = fs::absolute(folder, error).lexically_normal();
  const fs::path clean = path.has_filename() ? path : path.parent_path();
  fs::create_directories(clean.parent_path(), error);
  if (::mkdir(clean.c_str(), 0700) != 0) {
    return errno == EEXIST ? Result<void>() : separation_error(folder, "be made", errno);
  }
  const Descriptor made(::open(clean.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!made.is_open() || ::fchown(made.get(), account.user, account.group) != 0) {
    return separation_error(folder, "be given to its user", errno);
  }
  return {};
}

// Starts a process that gives up what it does not need, and serves. It never comes back from here, and ends when nobody asks any more.
Result<ServicePart> start_part(const char* what, const char* name,
                               const std::function<int()>& give_up,
                               const std::function<void(Descriptor)>& serve) {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return separation_error(what, "be asked", errno);
  }
  Descriptor mine(ends[0]);
  Descriptor theirs(ends[1]);
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    mine = Descriptor();
    // These are for the analyser.
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGPIPE}) {
      ::signal(number, SIG_IGN);
    }
    ::prctl(PR_SET_NAME, name);
    const int error = give_up();
    if (send_message(theirs.get(), &error, sizeof error) && error == 0) {
      serve(std::move(theirs));
    }
    ::_exit(error == 0 ? 0 : 1);
  }
  if (pid < 0) {
    return separation_error(what, "be started", errno);
  }
  theirs = Descriptor();
  int error = ECHILD;
  if (receive_message(mine.get(), &error, sizeof error).size != sizeof error || error != 0) {
    ::waitpid(pid, nullptr, 0);
    return separation_error(what, "give up privileges", error);
  }
  return ServicePart{std::move(mine), pid};
}

int become_helper(const HelperTask& task) {
  if (const int input = ::open("/dev/null", O_RDWR | O_CLOEXEC);
      input >= 0 && task.config_file != "-") {
    ::dup2(input, STDIN_FILENO);
    ::dup2(input, STDOUT_FILENO);
  }
  // Root's groups open no files of others. Without CAP_SETGID they stay, and nobody else is acted as (helper.cpp).
  (void)!::setgroups(0, nullptr);
  const int error = keep_capabilities({CAP_SYS_PTRACE, CAP_SETUID, CAP_SETGID});
  // Others of the same user have no look into it.
  ::prctl(PR_SET_DUMPABLE, 0);
  return error;
}

int become_launcher(const Account& account) {
  const int error = account.become();
  ::prctl(PR_SET_DUMPABLE, 1);  // what it starts sets its own priority in /proc
  return error != 0 ? error : confine_system_calls(Confined::kLauncher);
}

Result<void> be_analyser(const Account& account) {
  if (const int error = account.become(); error != 0) {
    return separation_error("privileges", "be given up", error);
  }
  ::prctl(PR_SET_DUMPABLE, 0);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);  // it would have what programs recorded
  if (const int error = confine_system_calls(Confined::kAnalyser); error != 0) {
    return separation_error("system calls", "be confined", error);
  }
  return {};
}

// As a login of the user would have it; no server is asked for debugging information.
void set_environment(const Account& account) {
  if (!account.name.empty()) {
    ::setenv("HOME", account.home.c_str(), 1);
    ::setenv("USER", account.name.c_str(), 1);
    ::setenv("LOGNAME", account.name.c_str(), 1);
  }
  ::unsetenv("DEBUGINFOD_URLS");
}

Result<Separation> separate_as_root(const std::string& config_file, const ServiceConfig& config) {
  Separation separation;
  const auto account =
      config.user.empty() ? Result<Account>(Account::current()) : Account::find(config.user);
  if (!account) {
    return tl::unexpected<Error>(account.error());
  }
  if (account->user == 0) {
    separation.notes.push_back(
        "what programs record is judged by root, without capabilities: name another user "
        "([service] user)");
  }
  if (!has_capability(CAP_SYS_PTRACE)) {
    separation.notes.push_back("CAP_SYS_PTRACE is not there: programs of others cannot be watched");
  }
  // Before it makes a folder, and that folder.
  if (const auto ready = check_places(config, account->user)
                             .and_then([&] { return make_store(config.store, *account); })
                             .and_then([&] { return check_places(config, account->user); });
      !ready) {
    return tl::unexpected<Error>(ready.error());
  }
  set_environment(*account);
  auto launcher = start_part(
      "analyses of kept slices", "tsomon-launcher", [&] { return become_launcher(*account); },
      [](const Descriptor& socket) { serve_as_launcher(socket); });
  if (!launcher) {
    return tl::unexpected<Error>(launcher.error());
  }
  HelperTask task{config_file, config, *account};
  auto helper = start_part(
      "the privileged helper", "tsomon-helper",
      [&] {
        launcher->socket = Descriptor();  // its end is seen there
        return become_helper(task);
      },
      [&](Descriptor socket) { serve_as_helper(std::move(socket), std::move(task)); });
  if (!helper) {
    return tl::unexpected<Error>(helper.error());
  }
  separation.access = helped_service_access(std::move(*helper), std::move(*launcher), config_file);
  return be_analyser(*account).map([&] { return std::move(separation); });
}

}  // namespace

Result<Separation> separate(const std::string& config_file, const ServiceConfig& config) {
  if (::geteuid() == 0) {
    return separate_as_root(config_file, config);
  }
  if (!config.user.empty()) {
    const auto account = Account::find(config.user);
    if (!account || account->user != ::geteuid()) {
      return account ? fail(ErrorKind::kEnvironment,
                            fmt::format("service.user: only root can become user {}",
                                        printable(config.user)))
                     : tl::unexpected<Error>(account.error());
    }
  }
  return check_places(config, ::geteuid()).map([&] {
    return Separation{direct_service_access(config_file), {}};
  });
}

}  // namespace tsomon::service
