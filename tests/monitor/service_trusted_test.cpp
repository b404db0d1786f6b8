// Whether what the service relies on can be changed by others.
#include <filesystem>
#include <string>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/service/trusted_file.h"
#include "tests/monitor/folder.h"

using namespace tsomon;
using namespace tsomon::service;

namespace {

std::string problem_of(const Result<void>& checked) {
  return checked ? std::string() : checked.error().to_string();
}

constexpr const char* kText = "[service]\nstore = 's'\n[[target]]\nname = 'a'\npid = 7\n";

}  // namespace

TEST_CASE("files that others may change are not trusted") {
  const testing::Folder folder;
  const std::string file = folder.write("t.toml", kText);
  const uid_t user = ::geteuid();
  ::chmod(file.c_str(), 0644);
  CHECK(problem_of(check_trusted(file, user)).empty());
  CHECK(read_trusted_config(file, user).errors.empty());
  ::chmod(file.c_str(), 0646);
  CHECK(problem_of(check_trusted(file, user)) ==
        file + ": has mode 0646: others may write it; chmod go-w");
  const auto refused = read_trusted_config(file, user);
  REQUIRE(refused.errors.size() == 1);
  CHECK(refused.errors.front().message.starts_with("has mode 0646"));
  ::chmod(file.c_str(), 0644);
  // A link to it is as it is, wherever the link lies.
  const std::string link = file + ".link";
  std::filesystem::create_symlink(file, link);
  CHECK(read_trusted_config(link, user).errors.empty());
  CHECK(read_trusted_config(file + ".none", user).errors.front().message.find("No such file") !=
        std::string::npos);
  const std::string above = std::filesystem::path(file).parent_path().string();
  ::chmod(above.c_str(), 0777);
  CHECK(problem_of(check_trusted(file, user)).find("above it has mode 0777") != std::string::npos);
  ::chmod(above.c_str(), 01777);
  CHECK(problem_of(check_trusted(file, user)).empty());
  ::chmod(above.c_str(), 0700);
  if (user == 0) {
    REQUIRE(::chown(file.c_str(), 12345, 12345) == 0);
    CHECK(problem_of(check_trusted(file, 0)).find("belongs to user 12345, expected root") !=
          std::string::npos);
    CHECK(problem_of(check_trusted(file, 12345)).empty());
    ::chmod(file.c_str(), 0664);  // its own group
    CHECK(problem_of(check_trusted(file, 12345)).empty());
    REQUIRE(::chown(file.c_str(), 12345, 54321) == 0);
    CHECK(problem_of(check_trusted(file, 12345)).find("has mode 0664") != std::string::npos);
  } else {
    MESSAGE("files of other users: only root can make them");
  }
}

TEST_CASE("what a configuration names") {
  const testing::Folder folder;
  const uid_t user = ::geteuid();
  ServiceConfig config;
  config.store = folder.write("x", "") + ".store";
  config.targets.resize(1);
  config.targets[0].suppressions = {folder.write("known", ""), "/no/such/file"};
  config.targets[0].control = config.store + ".control";
  ::chmod(config.targets[0].suppressions[0].c_str(), 0644);
  CHECK(untrusted_places(config, user).empty());
  std::filesystem::create_directory(config.store);
  std::filesystem::create_directory(config.targets[0].control);
  ::chmod(config.store.c_str(), 0777);
  ::chmod(config.targets[0].control.c_str(), 0777);
  ::chmod(config.targets[0].suppressions[0].c_str(), 0666);
  const auto errors = untrusted_places(config, user);
  REQUIRE(errors.size() == 3);
  CHECK(errors[0].to_string() == config.store + ": has mode 0777: others may write it; chmod go-w");
  CHECK(errors[1].message.starts_with("has mode 0666"));
  CHECK(errors[2].message.starts_with("has mode 0777: others may remove sockets"));
  ::chmod(config.targets[0].control.c_str(), 01777);
  CHECK(untrusted_places(config, user).size() == 2);
  std::filesystem::remove(config.store);
  std::filesystem::create_directory_symlink("/tmp", config.store);
  CHECK(untrusted_places(config, user).front().message.starts_with("is no folder, or a link"));
}
