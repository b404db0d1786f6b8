// The configuration of the service: what is read, and every mistake with its place.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "monitor/service/config.h"
#include "tests/monitor/folder.h"

using namespace tsomon;
using namespace tsomon::service;
using std::chrono::microseconds;

namespace {

std::vector<std::string> errors_of(const std::string& text) {
  std::vector<std::string> messages;
  for (const Error& error : parse_config(text, "t.toml").errors) {
    messages.push_back(error.to_string());
  }
  return messages;
}

// The only error of a target with these lines, the first of which is the file's line 5.
std::string error_of(const std::string& lines, const std::string& way = "pid = 7\n") {
  const auto errors =
      errors_of("[service]\nstore = 's'\n[[target]]\nname = 'a'\n" + lines + "\n" + way);
  CAPTURE(lines);
  REQUIRE(errors.size() == 1);
  return errors.front();
}

}  // namespace

TEST_CASE("a configuration with everything") {
  const ConfigReading reading = parse_config(R"([service]
store = "/var/lib/tsomon"
store_megabytes = 64
metrics = "/run/tsomon.prom"
metrics_listen = "[::1]:9464"
journal = true
idle_share = "5%"
memory_megabytes = 256
cpu_share = 0.1

[[target]]
name = "bank"
program = "*/bank_server"
control = "/run/bank"
properties = ["robustness", "atomic-sets"]
sample = "5%"
max_overhead = 0.02
slice = "50ms"
focus = true
cold = true
labels = ["transfer*"]
suppressions = ["known.supp", "more.supp"]
flight_recorder = "5s"
flight_function = "audit*"

[[target]]
name = "once"
command = ["./once", "--fast"]
[[target]]
name = "that one"
pid = 4711
)",
                                             "t.toml");
  REQUIRE(reading.errors.empty());
  const ServiceConfig& config = reading.config;
  CHECK(config.store == "/var/lib/tsomon");
  CHECK(config.store_megabytes == 64);
  CHECK(config.metrics == "/run/tsomon.prom");
  CHECK(config.metrics_listen == "[::1]:9464");
  CHECK(config.journal);
  CHECK(config.idle_share == doctest::Approx(0.05));
  CHECK(config.memory_megabytes == 256);
  CHECK(config.cpu_share == doctest::Approx(0.1));
  REQUIRE(config.targets.size() == 3);
  const TargetConfig& bank = config.targets[0];
  CHECK(bank.name == "bank");
  CHECK(bank.program == "*/bank_server");
  CHECK(bank.pid == 0);
  CHECK(bank.command.empty());
  CHECK(bank.control == "/run/bank");
  CHECK(bank.properties == std::vector{Property::kRobustness, Property::kAtomicSets});
  CHECK(bank.sample == doctest::Approx(0.05));
  CHECK(bank.max_overhead == doctest::Approx(0.02));
  CHECK(bank.slice == microseconds(50'000));
  CHECK(bank.focus);
  CHECK(bank.cold);
  CHECK(bank.labels == std::vector<std::string>{"transfer*"});
  CHECK(bank.suppressions == std::vector<std::string>{"known.supp", "more.supp"});
  CHECK(bank.flight_recorder == microseconds(5'000'000));
  CHECK(bank.flight_function == "audit*");
  const TargetConfig& once = config.targets[1];
  CHECK(once.flight_recorder.count() == 0);
  CHECK(once.command == std::vector<std::string>{"./once", "--fast"});
  CHECK(once.properties == std::vector{Property::kSerializability});
  CHECK(once.sample == doctest::Approx(0.01));
  CHECK(once.max_overhead == 0);
  CHECK(once.slice == microseconds(20'000));
  CHECK_FALSE(once.focus);
  CHECK_FALSE(once == bank);
  CHECK(config.targets[2].pid == 4711);
}

TEST_CASE("each mistake has its place, what was expected and what was found") {
  CHECK(
      error_of("sample = 2") ==
      "t.toml:5:10: target.sample: expected a share as \"1%\" or 0.01, more than 0 and at most 1, "
      "found 2");
  CHECK(error_of("sample = \"much\"").ends_with("found 'much'"));
  CHECK(error_of("max_overhead = 0.0").starts_with("t.toml:5:16: target.max_overhead: expected"));
  CHECK(error_of("slice = \"1h\"") ==
        "t.toml:5:9: target.slice: expected a time as \"20ms\", from 100us to 10s, found '1h'");
  CHECK(error_of("slice = 20").ends_with("found 20"));
  CHECK(error_of("focus = 1") == "t.toml:5:9: target.focus: expected true or false, found 1");
  CHECK(error_of("properties = [\"happiness\"]").starts_with("t.toml:5:15: target.properties: "));
  CHECK(error_of("properties = [\"robustness\", \"robustness\"]")
            .starts_with("t.toml:5:29: target.properties: "));
  CHECK(error_of("properties = []").ends_with("at least one, found an array"));
  CHECK(error_of("labels = [\"a\"]").find("focus = true") != std::string::npos);
  CHECK(
      error_of("control = \"\"") ==
      "t.toml:5:11: target.control: expected a string that is not empty and has no NUL, found ''");
  CHECK(error_of("control = \"/a:b\"") ==
        "t.toml:5:11: target.control: expected an absolute path of a folder, without ':', found "
        "'/a:b'");
  CHECK(error_of("control = \"a\"").ends_with("found 'a'"));
  CHECK(error_of("suppressions = \"one\"").ends_with("expected an array of strings, found 'one'"));
  CHECK(error_of("suppressions = [\"one\", 2]").starts_with("t.toml:5:24: "));
  CHECK(error_of("flight_recorder = 5").ends_with("from 100ms to 60s, found 5"));
  CHECK(error_of("flight_recorder = \"2h\"").starts_with("t.toml:5:19: target.flight_recorder: "));
  CHECK(error_of("flight_function = \"f\"").find("flight_recorder beside it") != std::string::npos);
  CHECK(errors_of("[service]\nstore = 's'\nidle_share = 2\ncpu_share = 0\nmemory_megabytes = "
                  "1\n[[target]]\nname = "
                  "'a'\npid = 7\n")
            .size() == 3);
  CHECK(
      parse_config("[service]\nstore = 's'\nidle_share = 0\n[[target]]\nname = 'a'\npid = 7\n", "t")
          .config.idle_share == 0);
  CHECK(error_of("samples = 0.5").starts_with("t.toml:5:1: target: expected one of "));
  CHECK(error_of("samples = 0.5").ends_with("unknown key 'samples': did you mean sample?"));
  CHECK(error_of("'a\\u001b[2J' = 1").find('\x1b') == std::string::npos);
  CHECK(error_of("", "") ==
        "t.toml:3:1: target: expected the key pid, program, command, cgroup, unit or container, "
        "found none");
  CHECK(error_of("pid = 0", "") ==
        "t.toml:5:7: target.pid: expected an integer from 1 to 2147483647, found 0");
  CHECK(error_of("pid = 1.5", "").ends_with("found 1.5"));
  CHECK(error_of("command = []", "").starts_with("t.toml:5:11: target.command: expected"));
  CHECK(error_of("program = \"x\"") ==
        "t.toml:5:11: target: expected one of pid, program, command, found program beside pid");
  // Groups of processes, alone or beside a program.
  CHECK(errors_of("[service]\nstore='s'\nuser='tsomon'\n[[target]]\nname='a'\nunit='a.service'\n"
                  "program='x'\ntrigger='function=f*'\n[[target]]\nname='b'\ncgroup='/a.slice/b'\n"
                  "[[target]]\nname='c'\ncontainer='0123456789ab'\n")
            .empty());
  CHECK(error_of("cgroup = \"system.slice\"", "").starts_with("t.toml:5:10: target.cgroup: "));
  CHECK(error_of("cgroup = \"/sys/fs/cgroup/a\"", "").starts_with("t.toml:5:10: target.cgroup: "));
  CHECK(error_of("cgroup = \"/a/../b\"", "").ends_with("found '/a/../b'"));
  CHECK(
      error_of("unit = \"foo\"", "") ==
      "t.toml:5:8: target.unit: expected a unit of systemd as \"foo.service\" (.service, .scope or "
      ".slice), found 'foo'");
  CHECK(error_of("container = \"web\"", "").starts_with("t.toml:5:13: target.container: expected"));
  CHECK(error_of("unit = \"a.service\"\ncgroup = \"/a\"", "") ==
        "t.toml:5:8: target: expected one of cgroup, unit, container, found unit beside cgroup");
  CHECK(error_of("unit = \"a.service\"") ==
        "t.toml:6:7: target.pid: expected none beside unit, found 7");
  CHECK(error_of("trigger = \"signal\"").starts_with("t.toml:5:11: target.trigger: expected"));
  CHECK(error_of("trigger = \"function=\"").ends_with("found 'function='"));
  CHECK(error_of("pid = 1\n[[target]]\nname = 'a'\n") ==
        "t.toml:6:1: target.name: expected a name of its own, found 'a' again");
}

TEST_CASE("the whole file") {
  using Errors = std::vector<std::string>;
  CHECK(errors_of("") ==
        Errors{"t.toml:1:1: expected a table [service], found none",
               "t.toml:1:1: expected a table [[target]] for each program to watch, found none"});
  CHECK(
      errors_of("service = 1\ntarget = 2\nextra = 3") ==
      Errors{
          "t.toml:1:11: the file.service: expected a table [service], found 1",
          "t.toml:2:10: the file.target: expected tables [[target]], found 2",
          "t.toml:3:1: the file: expected one of service, target; found the unknown key 'extra'"});
  const auto broken = errors_of("[service]\nstore = \n");
  REQUIRE(broken.size() == 1);
  CHECK(broken.front().starts_with("t.toml:2:"));
  // In their order, all of them.
  const auto several = errors_of(
      "[service]\nstore = 1\nstore_megabytes = 1\n[[target]]\nname = ''\nprogram = 'p'\ncold = "
      "'x'\n");
  REQUIRE(several.size() == 4);
  for (size_t i = 0; i < several.size(); ++i) {
    CHECK(
        several[i].starts_with(std::vector{"t.toml:2:", "t.toml:3:", "t.toml:5:", "t.toml:7:"}[i]));
  }
  std::string many = "[service]\nstore = 's'\n";
  for (size_t i = 0; i <= kMostTargets; ++i) {
    many += "[[target]]\nname = '" + std::to_string(i) + "'\npid = 1\n";
  }
  CHECK(errors_of(many).size() == 1);
  CHECK(errors_of(std::string(kMostConfigBytes + 1, '#')).size() == 1);
  CHECK_FALSE(errors_of(std::string(100'000, '[')).empty());
  CHECK_FALSE(errors_of("a = '\xff'").empty());
}

TEST_CASE("a configuration that cannot be read") {
  const testing::Folder folder;
  const ConfigReading none = read_config(folder.write("there", "") + "/not");
  REQUIRE(none.errors.size() == 1);
  CHECK(none.errors.front().kind == ErrorKind::kUnreadable);
  CHECK(read_config(
            folder.write("good.toml", "[service]\nstore = 's'\n[[target]]\nname = 'n'\npid = 1\n"))
            .errors.empty());
}
