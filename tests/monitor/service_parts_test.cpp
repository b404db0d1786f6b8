// What the service is made of: messages, metrics, which processes there are, what systemd is told.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/process/descriptor.h"
#include "monitor/process/running_programs.h"
#include "monitor/service/message_limiter.h"
#include "monitor/service/metrics.h"
#include "monitor/service/notify.h"
#include "monitor/service/started_program.h"
#include "tests/monitor/folder.h"

using namespace tsomon;
using namespace tsomon::service;
using std::chrono::seconds;

TEST_CASE("the same message once a minute, with how often it came") {
  MessageLimiter limiter;
  const MessageLimiter::Time begin{};
  CHECK(limiter.add("process 1: gone", begin) == "process 1: gone");
  CHECK_FALSE(limiter.add("process 2: gone", begin + seconds(1)));
  CHECK_FALSE(limiter.add("process 3: gone", begin + seconds(2)));
  CHECK(limiter.add("another", begin + seconds(2)) == "another");
  CHECK(limiter.due(begin + seconds(59)).empty());
  CHECK(limiter.due(begin + seconds(60)) ==
        std::vector<std::string>{"process 3: gone (2 times in 60 s)"});
  CHECK_FALSE(limiter.add("process 4: gone", begin + seconds(61)));
  CHECK(limiter.due(begin + seconds(90)).empty());
  CHECK(limiter.due(begin + seconds(120)) ==
        std::vector<std::string>{"process 4: gone (1 times in 60 s)"});
  CHECK(limiter.due(begin + seconds(180)).empty());  // nobody said it again
  CHECK(limiter.add("process 5: gone", begin + seconds(181)) == "process 5: gone");
  CHECK(limiter.withheld() == 3);
  CHECK_FALSE(limiter.add("process 6: gone", begin + seconds(182)));
  CHECK(limiter.due(begin + seconds(183), true).size() == 1);
  // However many different ones there are.
  MessageLimiter many;
  size_t told = 0;
  for (size_t i = 0; i < 2 * MessageLimiter::kMost; ++i) {
    told += many.add(std::string(i + 1, 'a'), begin).has_value() ? 1 : 0;
  }
  CHECK(told == MessageLimiter::kMost + 1);
}

TEST_CASE("metrics in Prometheus' text format, whatever labels hold") {
  MetricsText metrics;
  metrics.family("tsomon_slices_total", MetricsText::Type::kCounter, "Slices.");
  metrics.sample({{"target", "a\"b\\c\nd\x1b\xff"}, {"kind", "x"}}, 12);
  metrics.family("tsomon_store_bytes", MetricsText::Type::kGauge, "Bytes.");
  metrics.sample({}, 0.5);
  CHECK(metrics.text() ==
        "# HELP tsomon_slices_total Slices.\n# TYPE tsomon_slices_total counter\n"
        "tsomon_slices_total{target=\"a\\\"b\\\\c\\\\x0ad\\\\x1b\\\\xff\",kind=\"x\"} 12\n"
        "# HELP tsomon_store_bytes Bytes.\n# TYPE tsomon_store_bytes gauge\ntsomon_store_bytes "
        "0.5\n");
}

TEST_CASE("a program that is started is found by its name until it ends") {
  const testing::Folder folder;
  const std::string program = folder.write("tsomon_sleeper", "");
  std::filesystem::copy_file("/bin/sleep", program,
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  CHECK(attach::processes_running("tsomon_sleeper").empty());
  auto first = StartedProgram::start({program, "60"}, {});
  REQUIRE(first);
  auto second = StartedProgram::start({program, "60"}, "/none");
  REQUIRE(second);
  const std::vector<pid_t> both{first->pid(), second->pid()};
  CHECK(attach::start_of(first->pid()) > 0);
  CHECK(attach::program_of(first->pid()) == program);
  std::filesystem::remove(program);
  CHECK(attach::program_of(first->pid()) == program);
  for (const char* const pattern : {"tsomon_sleeper", "tsomon_sl*"}) {
    auto found = attach::processes_running(pattern);
    std::sort(found.begin(), found.end());
    CHECK(found == both);
  }
  CHECK(attach::processes_running(program).size() == 2);
  CHECK(attach::processes_running("/none/tsomon_sleeper").empty());
  CHECK_FALSE(first->has_ended());
  const pid_t pid = first->pid();
  ::kill(pid, SIGKILL);
  siginfo_t status{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(pid), &status, WEXITED | WNOWAIT) == 0);
  CHECK(attach::start_of(pid) == 0);  // though nobody has asked for its status
  CHECK(first->has_ended());
  CHECK(attach::processes_running("tsomon_sleeper") == std::vector{second->pid()});
  const pid_t other = second->pid();
  { const StartedProgram gone = std::move(*second); }
  CHECK(attach::start_of(other) == 0);
  const auto none = StartedProgram::start({"/no/such/program"}, {});
  REQUIRE_FALSE(none);
  CHECK(none.error().kind == ErrorKind::kUsage);
}

TEST_CASE("systemd is told, if there is one") {
  const testing::Folder folder;
  CHECK(notify_manager("READY=1"));
  CHECK(watchdog_time().count() == 0);
  const std::string path = folder.write("x", "") + ".socket";
  const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  CHECK_FALSE(notify_manager("READY=1"));
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  CHECK(notify_manager("READY=1\nSTATUS=here"));
  char text[100];
  const ssize_t size = ::recv(socket.get(), text, sizeof text, 0);
  CHECK(std::string(text, static_cast<size_t>(std::max<ssize_t>(size, 0))) ==
        "READY=1\nSTATUS=here");
  for (const char* const wrong : {"", "relative", "vsock:1:2"}) {
    ::setenv("NOTIFY_SOCKET", wrong, 1);
    CHECK_FALSE(notify_manager("READY=1"));
  }
  ::setenv("NOTIFY_SOCKET", std::string(500, '/').c_str(), 1);
  CHECK_FALSE(notify_manager("READY=1"));
  ::unsetenv("NOTIFY_SOCKET");
  ::setenv("WATCHDOG_USEC", "2000000", 1);
  CHECK(watchdog_time() == seconds(2));
  ::setenv("WATCHDOG_PID", "1", 1);
  CHECK(watchdog_time().count() == 0);
  ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
  CHECK(watchdog_time() == seconds(2));
  ::setenv("WATCHDOG_USEC", "soon", 1);
  CHECK(watchdog_time().count() == 0);
  ::unsetenv("WATCHDOG_USEC");
  ::unsetenv("WATCHDOG_PID");
}
