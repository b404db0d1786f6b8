#include "monitor/service/trusted_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/events/read_input.h"
#include "monitor/process/descriptor.h"
#include "tso/support/open_file.h"
#include "tso/support/printable.h"

namespace tsomon::service {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kPermissions = 07777;

Error untrusted(const std::string& path, std::string message) {
  return {ErrorKind::kEnvironment, printable(path), {}, std::move(message)};
}

bool others_write(const struct stat& status) {
  return (status.st_mode & S_IWOTH) != 0 ||
         ((status.st_mode & S_IWGRP) != 0 && status.st_gid != status.st_uid);
}

Result<void> check_folders_above(const std::string& path) {
  std::error_code error;
  for (fs::path folder = fs::canonical(path, error).parent_path(); !error && !folder.empty();
       folder = folder.parent_path()) {
    struct stat status {};
    if (::stat(folder.c_str(), &status) == 0 && others_write(status) &&
        (status.st_mode & S_ISVTX) == 0) {
      return tl::unexpected(untrusted(
          path, fmt::format("the folder {} above it has mode {:04o}: others may replace it; "
                            "chmod go-w, or move it",
                            printable(folder.string()), status.st_mode & kPermissions)));
    }
    if (folder == folder.parent_path()) {
      break;
    }
  }
  return {};
}

Result<void> check_status(const std::string& path, const struct stat& status, uid_t user) {
  if (status.st_uid != 0 && status.st_uid != user) {
    return tl::unexpected(untrusted(
        path, user == 0 ? fmt::format("belongs to user {}, expected root: chown root, or start the "
                                      "monitor as that user",
                                      status.st_uid)
                        : fmt::format("belongs to user {}, expected root or user {}", status.st_uid,
                                      user)));
  }
  if (others_write(status)) {
    return tl::unexpected(
        untrusted(path, fmt::format("has mode {:04o}: others may write it; chmod go-w",
                                    status.st_mode & kPermissions)));
  }
  return check_folders_above(path);
}

// Sockets in it are not relied on, only that they cannot be taken away.
Result<void> check_control(const std::string& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) == 0 && others_write(status) &&
      (status.st_mode & S_ISVTX) == 0) {
    return tl::unexpected(untrusted(
        folder, fmt::format("has mode {:04o}: others may remove sockets; chmod go-w, or +t",
                            status.st_mode & kPermissions)));
  }
  return {};
}

Result<void> check_store(const std::string& folder, uid_t user) {
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0) {
    return {};
  }
  if (!S_ISDIR(status.st_mode)) {
    return tl::unexpected(untrusted(folder, "is no folder, or a link: expected the folder itself"));
  }
  if (status.st_uid != user) {
    return tl::unexpected(untrusted(
        folder,
        fmt::format("belongs to user {}, expected user {}: chown -R", status.st_uid, user)));
  }
  return check_status(folder, status, user);
}

}  // namespace

Result<void> check_trusted(const std::string& path, uid_t user) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return tl::unexpected(Error{ErrorKind::kUnreadable,
                                printable(path),
                                {},
                                fmt::format("cannot be opened: {}", std::strerror(errno))});
  }
  return check_status(path, status, user);
}

ConfigReading read_trusted_config(const std::string& file, uid_t user) {
  struct stat status {};
  if (file == "-" || ::stat(file.c_str(), &status) != 0) {
    return read_config(file);  // why it cannot be read is told there
  }
  const bool regular = S_ISREG(status.st_mode);
  const Descriptor opened(regular ? open_regular_file(file) : -1);
  if (regular && (!opened.is_open() || ::fstat(opened.get(), &status) != 0)) {
    return read_config(file);
  }
  if (const auto trusted = check_status(file, status, user); !trusted) {
    return {{}, {trusted.error()}};
  }
  if (!regular) {
    return read_config(file);
  }
  auto text = read_input(fmt::format("/proc/self/fd/{}", opened.get()), kMostConfigBytes);
  if (!text) {
    text.error().input = input_name(file);
    return {{}, {std::move(text.error())}};
  }
  return parse_config(*text, input_name(file));
}

std::vector<Error> untrusted_places(const ServiceConfig& config, uid_t user) {
  std::vector<Error> errors;
  const auto note = [&](const Result<void>& checked) {
    if (!checked && checked.error().kind != ErrorKind::kUnreadable) {
      errors.push_back(checked.error());
    }
  };
  note(check_store(config.store, user));
  for (const TargetConfig& target : config.targets) {
    for (const std::string& file : target.suppressions) {
      note(check_trusted(file, user));
    }
    if (!target.control.empty()) {
      note(check_control(target.control));
    }
  }
  return errors;
}

}  // namespace tsomon::service
