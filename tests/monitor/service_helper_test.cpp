// The privileged helper: what it gives, and that it refuses all that the configuration does not name.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/process/process_access.h"
#include "monitor/process/running_programs.h"
#include "monitor/process/target.h"
#include "monitor/service/account.h"
#include "monitor/service/helper.h"
#include "monitor/service/helper_client.h"
#include "monitor/service/helper_protocol.h"
#include "monitor/service/target_access.h"
#include "tests/monitor/folder.h"
#include "tests/monitor/waiting_process.h"

using namespace tsomon;
using namespace tsomon::service;

namespace {

// A helper in a process of its own, with the privileges of the test.
class RunningHelper {
 public:
  explicit RunningHelper(const std::string& file) {
    const ConfigReading reading = read_config(file);
    REQUIRE(reading.errors.empty());
    std::array<int, 2> ends{-1, -1};
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      serve_as_helper(Descriptor(ends[1]), {file, reading.config, Account::current()});
      ::_exit(1);
    }
    ::close(ends[1]);
    socket_ = Descriptor(ends[0]);
  }
  ~RunningHelper() {
    if (socket_.is_open()) {
      socket_ = Descriptor();
      CHECK(::waitpid(pid_, nullptr, 0) == pid_);
    }
  }
  RunningHelper(const RunningHelper&) = delete;
  RunningHelper& operator=(const RunningHelper&) = delete;

  std::unique_ptr<ServiceAccess> access(const std::string& file) {
    return helped_service_access({std::move(socket_), pid_}, ServicePart(), file);
  }
  // Any bytes, with a descriptor if it is not negative: whether it was refused.
  bool is_refused(const void* bytes, size_t size, int descriptor = -1) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec part{const_cast<void*>(bytes), size};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (descriptor >= 0) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    }
    REQUIRE(::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(size));
    HelperAnswer answer;
    iovec room{&answer, sizeof answer};
    message = {};
    message.msg_iov = &room;
    message.msg_iovlen = 1;
    REQUIRE(::recvmsg(socket_.get(), &message, 0) > 0);
    // A descriptor comes with what is given, and with nothing else.
    CHECK(((message.msg_flags & MSG_CTRUNC) == 0) == answer.error.is_one());
    return answer.error.is_one() && answer.error.error()->input == "refused";
  }
  bool is_refused(const HelperRequest& request) { return is_refused(&request, sizeof request); }

 private:
  pid_t pid_ = -1;
  Descriptor socket_;
};

size_t open_files(pid_t pid) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& each :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", pid))) {
    ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("what the helper gives of a target's process") {
  const testing::Folder folder;
  const testing::WaitingProcess process;
  const std::string name = "[service]\nstore = 's'\n[[target]]\nname = 'one'\n";
  const std::string file = folder.write("t.toml", name + fmt::format("pid = {}\n", process.pid()));
  RunningHelper helper(file);
  const auto access = helper.access(file);
  TargetConfig config;
  config.name = "one";
  const auto target = access->of(config);
  const auto executable = target->executable(process.pid());
  REQUIRE(executable);
  std::array<char, 4> magic{};
  CHECK(::pread(executable->get(), magic.data(), magic.size(), 0) == 4);
  CHECK(std::string(magic.data(), 4) ==
        "\x7f"
        "ELF");
  CHECK((::fcntl(executable->get(), F_GETFL) & O_ACCMODE) == O_RDONLY);
  const auto whole = attach::Target::open(process.pid(), *target);
  REQUIRE(whole);
  CHECK_FALSE(whole->modules().empty());
  CHECK(whole->executable() == std::filesystem::read_symlink("/proc/self/exe").string());
  // The process is no program of tsomon's.
  const auto none = target->connect(process.pid(), {});
  REQUIRE_FALSE(none);
  CHECK(none.error().message.find("cannot be asked") != std::string::npos);
  CHECK(access->ended().empty());

  // Read again: another target takes its place, and nothing of the first one is given any more.
  folder.write("t.toml", "[service]\nstore = 's'\n[[target]]\nname = 'two'\nprogram = 'none'\n");
  CHECK(access->read_again().errors.empty());
  CHECK_FALSE(target->executable(process.pid()));
  folder.write("t.toml", name + "pid = 0\n");
  const ConfigReading wrong = access->read_again();
  REQUIRE(wrong.errors.size() == 1);
  CHECK(wrong.errors.front().to_string().find("t.toml:5:7: target.pid") != std::string::npos);
  std::filesystem::permissions(file, std::filesystem::perms(0666));
  const ConfigReading open = access->read_again();
  REQUIRE(open.errors.size() == 1);
  CHECK(open.errors.front().message.find("has mode 0666") != std::string::npos);
}

TEST_CASE("the helper refuses what the targets do not name, and what is no request") {
  const testing::Folder folder;
  const testing::WaitingProcess process;
  const testing::WaitingProcess other;
  const std::string file = folder.write(
      "t.toml", fmt::format("[service]\nstore = 's'\n[[target]]\nname = 'one'\npid = {}\n"
                            "[[target]]\nname = 'two'\nprogram = '/no/such'\n",
                            process.pid()));
  RunningHelper helper(file);
  const uint64_t one = target_number("one");
  const uint64_t two = target_number("two");
  constexpr auto kLast = static_cast<uint32_t>(HelperQuestion::kConnect);
  for (uint32_t question = 2; question <= kLast; ++question) {
    const auto what = static_cast<HelperQuestion>(question);
    for (const pid_t pid : {other.pid(), ::getpid(), 1, 0, -1, process.pid() + 4'000'000}) {
      CHECK(helper.is_refused({what, pid, one, 0, ~uint64_t{0}}));
    }
    CHECK(helper.is_refused({what, process.pid(), two, 0, 0}));
    CHECK(helper.is_refused({what, process.pid(), one + 1, 0, 0}));
  }
  CHECK(helper.is_refused({HelperQuestion::kStart, process.pid(), one, 0, 0}));
  CHECK(helper.is_refused({HelperQuestion::kCode, process.pid(), one, 0x1000, 0x2000}));
  const auto mappings = attach::read_mappings(process.pid());
  REQUIRE(mappings);
  for (const attach::Mapping& mapping : *mappings) {
    if (!mapping.executable || mapping.inode == 0) {
      CHECK(helper.is_refused(
          {HelperQuestion::kCode, process.pid(), one, mapping.begin, mapping.end}));
    }
  }
  for (const uint32_t question : {0U, 8U, 9U, 10U, 0xffffffffU}) {
    CHECK(helper.is_refused({static_cast<HelperQuestion>(question), process.pid(), one, 0, 0}));
  }
  const HelperRequest request{HelperQuestion::kExecutable, process.pid(), one, 0, 0};
  std::vector<char> bytes(100'000);
  std::memcpy(bytes.data(), &request, sizeof request);
  CHECK(helper.is_refused(bytes.data(), 1));
  CHECK(helper.is_refused(bytes.data(), sizeof request - 1));
  CHECK(helper.is_refused(bytes.data(), sizeof request + 1));
  CHECK(helper.is_refused(bytes.data(), bytes.size()));
  for (int i = 0; i < 10; ++i) {
    CHECK(helper.is_refused(&request, sizeof request, STDIN_FILENO));
  }
  CHECK_FALSE(helper.is_refused(request));  // it goes on
}

TEST_CASE("a command is started by the helper, once at a time, and ends with it") {
  const testing::Folder folder;
  const std::string file = folder.write(
      "t.toml",
      "[service]\nstore = 's'\n[[target]]\nname = 'one'\ncommand = ['/bin/sleep', '60']\n"
      "[[target]]\nname = 'none'\ncommand = ['/no/such/program']\n");
  RunningHelper helper(file);
  pid_t pid = -1;
  Descriptor handle;
  std::optional<StartedProgram> kept;
  {
    const auto access = helper.access(file);
    TargetConfig config;
    config.name = "one";
    const auto target = access->of(config);
    auto started = target->start();
    REQUIRE(started);
    pid = started->pid();
    CHECK_FALSE(target->start());  // it runs
    CHECK(target->executable(pid));
    CHECK_FALSE(target->executable(::getpid()));
    handle = Descriptor(::fcntl(started->handle().get(), F_DUPFD_CLOEXEC, 0));
    config.name = "none";
    const auto none = access->of(config)->start();
    REQUIRE_FALSE(none);
    CHECK(none.error().to_string() ==
          "/no/such/program: cannot be started: No such file or directory");
    { const StartedProgram first = std::move(*started); }  // is asked to end
    CHECK(attach::start_of(pid) == 0);
    CHECK(target->wait_status(StartedProgram(pid, Descriptor())) == SIGTERM);
    auto second = target->start();
    REQUIRE(second);
    pid = second->pid();
    handle = Descriptor(::fcntl(second->handle().get(), F_DUPFD_CLOEXEC, 0));
    CHECK(open_files(::getpid()) < 64);
    // As if this process had been killed: nobody asks the program to end but the helper's end.
    kept.emplace(std::move(*second));
  }
  pollfd state{handle.get(), POLLIN, 0};
  CHECK(::poll(&state, 1, 20'000) == 1);
}

TEST_CASE(
    "the code of a program that was replaced is found, and what is in its place keeps nobody "
    "waiting") {
  const testing::Folder folder;
  const std::string file = folder.write("program", "");
  std::filesystem::copy_file("/bin/sleep", file, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::permissions(file, std::filesystem::perms(0755));
  auto started = StartedProgram::start({file, "60"}, {});
  REQUIRE(started);
  const pid_t pid = started->pid();
  const auto mappings = attach::read_mappings(pid);
  REQUIRE(mappings);
  const auto code = std::find_if(mappings->begin(), mappings->end(), [](const auto& each) {
    return each.executable && each.inode != 0;
  });
  REQUIRE(code != mappings->end());
  std::filesystem::remove(file);
  REQUIRE(::mkfifo(file.c_str(), 0644) == 0);
  const pid_t looks = ::fork();
  REQUIRE(looks >= 0);
  if (looks == 0) {
    ::alarm(30);
    (void)keep_capabilities({CAP_SYS_PTRACE});
    auto other = *code;
    ++other.inode;
    const bool found = attach::direct_access().code(pid, *code).has_value();
    ::_exit(found && !attach::direct_access().code(pid, other) ? 0 : 1);
  }
  int status = -1;
  CHECK(::waitpid(looks, &status, 0) == looks);
  CHECK(status == 0);
}

TEST_CASE("when the helper ends the service is told why") {
  const testing::Folder folder;
  const std::string file = folder.write(
      "t.toml", "[service]\nstore = 's'\n[[target]]\nname = 'one'\nprogram = '/no/such'\n");
  std::array<int, 2> ends{-1, -1};
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    ::pause();
    ::_exit(0);
  }
  ::close(ends[1]);
  const auto access = helped_service_access({Descriptor(ends[0]), pid}, ServicePart(), file);
  CHECK(access->ended().empty());
  ::kill(pid, SIGKILL);
  siginfo_t status{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(pid), &status, WEXITED | WNOWAIT) == 0);
  TargetConfig config;
  config.name = "one";
  CHECK(access->of(config)->processes().empty());
  CHECK(access->ended() == "the privileged helper has ended by signal 9 (Killed)");
}
