// Which processes a group, a unit or a container has, by what /proc/PID/cgroup shows in the layouts that there are.
#include "monitor/process/control_groups.h"

#include <string>

#include <doctest/doctest.h>
#include <unistd.h>

using namespace tsomon::attach;

namespace {

const std::string kId = "4f5e6d7c8b9a0123456789abcdef0123456789abcdef0123456789abcdef0123";

bool in_path(const std::string& text, const std::string& path) {
  return is_in_group(text, GroupChoice{path, {}, {}});
}
bool in_unit(const std::string& text, const std::string& unit) {
  return is_in_group(text, GroupChoice{{}, unit, {}});
}
bool in_container(const std::string& text, const std::string& id) {
  return is_in_group(text, GroupChoice{{}, {}, id});
}

}  // namespace

TEST_CASE("a control group and what is below it, in each layout") {
  const std::string unified = "0::/system.slice/foo.service/worker\n";
  CHECK(in_path(unified, "/system.slice/foo.service"));
  CHECK(in_path(unified, "/system.slice/foo.service/worker"));
  CHECK(in_path(unified, "/system.slice"));
  CHECK_FALSE(in_path(unified, "/system.slice/foo"));
  CHECK_FALSE(in_path(unified, "/system.slice/foo.service/worker/more"));
  CHECK_FALSE(in_path(unified, "/foo.service"));
  const std::string hybrid =
      "12:cpu,cpuacct:/\n4:memory:/jobs/7\n1:name=systemd:/system.slice/cron.service\n0::/"
      "system.slice/cron.service\n";
  CHECK(in_path(hybrid, "/jobs/7"));
  CHECK(in_path(hybrid, "/system.slice/cron.service"));
  CHECK_FALSE(in_path(hybrid, "/jobs/70"));
  CHECK(in_path("0::/a:b/c\n", "/a:b"));
  // Nothing of what is no line of it counts.
  for (const char* const text : {"", "\n\n", "0:", "0::", "no line", "::/x", ":/a"}) {
    CHECK_FALSE(in_path(text, "/a"));
    CHECK_FALSE(in_unit(text, "a.service"));
    CHECK_FALSE(in_container(text, "0123456789ab"));
  }
  CHECK_FALSE(is_in_group(unified, GroupChoice{}));
}

TEST_CASE("a unit of the system, and none that a user calls so") {
  CHECK(in_unit("0::/system.slice/foo.service\n", "foo.service"));
  CHECK(in_unit("0::/system.slice/system-foo.slice/foo.service/sub\n", "foo.service"));
  CHECK(in_unit("0::/system.slice/_cpu.service\n", "cpu.service"));
  CHECK(in_unit("0::/user.slice/user-1000.slice/session-4.scope\n", "session-4.scope"));
  CHECK(in_unit("0::/user.slice/user-1000.slice/session-4.scope\n", "user-1000.slice"));
  CHECK(in_unit("4:memory:/\n1:name=systemd:/system.slice/foo.service\n", "foo.service"));
  CHECK_FALSE(in_unit("4:memory:/system.slice/foo.service\n1:name=systemd:/\n", "foo.service"));
  const std::string users =
      "0::/user.slice/user-1000.slice/user@1000.service/app.slice/foo.service\n";
  CHECK_FALSE(in_unit(users, "foo.service"));
  CHECK(in_unit(users, "user@1000.service"));
  CHECK_FALSE(in_unit("0::/system.slice/docker-" + kId + ".scope/system.slice/foo.service\n",
                      "foo.service"));
  CHECK_FALSE(in_unit("0::/system.slice/foo.service2\n", "foo.service"));
}

TEST_CASE("a container by the first digits of its ID") {
  const std::string first = kId.substr(0, 12);
  for (const std::string& path :
       {"0::/system.slice/docker-" + kId + ".scope\n",
        "0::/machine.slice/libpod-" + kId + ".scope/container\n",
        "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + kId + ".scope\n",
        "9:pids:/docker/" + kId + "\n1:name=systemd:/\n",
        "0::/kubepods/burstable/pod7/" + kId + "\n"}) {
    CAPTURE(path);
    CHECK(in_container(path, first));
    CHECK(in_container(path, kId));
    CHECK_FALSE(in_container(path, "0123456789ab"));
  }
  CHECK_FALSE(in_container("0::/docker/" + first + "\n", first));  // no whole ID
  CHECK_FALSE(in_container("0::/docker/x" + kId + "\n", first));
}

TEST_CASE("what a configuration may name") {
  CHECK(wrong_group_path("/a").empty());
  for (const char* const wrong :
       {"/", "a", "/a/", "/a//b", "/a/../b", "/./a", "/sys/fs/cgroup/a"}) {
    CHECK_FALSE(wrong_group_path(wrong).empty());
  }
  CHECK(wrong_unit("a@b.service").empty());
  for (const char* const wrong : {"a", ".service", "a/b.service", "a.socket"}) {
    CHECK_FALSE(wrong_unit(wrong).empty());
  }
  CHECK(wrong_container("0123456789ab").empty());
  CHECK(wrong_container(kId).empty());
  CHECK_FALSE(wrong_container(kId + "0").empty());
  CHECK_FALSE(wrong_container("0123456789a").empty());
  CHECK_FALSE(wrong_container("0123456789AB").empty());
  CHECK_FALSE(is_in_group(::getpid(), GroupChoice{{}, "no-such-unit.service", {}}));
}
