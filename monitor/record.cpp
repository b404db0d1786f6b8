#include "monitor/record.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "decoders/capture/chunks.h"
#include "monitor/child.h"
#include "monitor/probe_options.h"

namespace tsomon {
namespace {

namespace fs = std::filesystem;

bool is_capture(const fs::path& path) {
  std::array<char, 128> head{};
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), head.size());
  return capture::looks_like_capture({head.data(), static_cast<size_t>(file.gcount())});
}

// Makes place for the capture; the problem if there is one.
std::optional<std::string> prepare(const fs::path& output) {
  std::error_code error;
  if (fs::is_regular_file(output, error)) {
    if (fs::file_size(output, error) != 0 && !is_capture(output)) {
      return fmt::format(
          "{}: exists and is not a capture; it is not overwritten. Remove it or "
          "choose another file with -o",
          output.string());
    }
    if (!fs::remove(output, error)) {
      return fmt::format("{}: cannot be replaced: {}", output.string(), error.message());
    }
  }
  // Tried here, where it can be told apart from a program that does not record.
  const bool existed = fs::exists(output, error);
  const int fd = ::open(output.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
  if (fd < 0) {
    return fmt::format("{}: cannot be written: {}", output.string(), std::strerror(errno));
  }
  ::close(fd);
  if (!existed) {
    fs::remove(output, error);
  }
  return std::nullopt;
}

// The captures FILE and FILE.PID that lie there.
std::vector<std::string> written(const fs::path& output) {
  std::vector<std::string> files;
  std::error_code error;
  const std::string prefix = output.filename().string() + ".";
  for (const auto& entry : fs::directory_iterator(output.parent_path(), error)) {
    const std::string name = entry.path().filename().string();
    const bool further = name.size() > prefix.size() && name.rfind(prefix, 0) == 0 &&
                         std::all_of(name.begin() + static_cast<ptrdiff_t>(prefix.size()),
                                     name.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (further && is_capture(entry.path())) {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  if (is_capture(output)) {
    files.insert(files.begin(), output.string());
  }
  return files;
}

}  // namespace

std::string not_recorded(const std::vector<std::string>& command, int status,
                         std::string_view subcommand) {
  return fmt::format(
      "'{0}' ended with status {1}, and it is not linked with the tsomon probe or did not live to "
      "record. Build it with tsomon-c++ or tsomon-cc in the place of its compiler, then run: {2} "
      "-- "
      "{3}",
      command[0], status, subcommand, fmt::join(command, " "));
}

RecordResult record(const std::vector<std::string>& command, const std::string& output) {
  RecordResult result;
  ProbeOptions probe_options;
  if (probe_options.has("output=")) {
    result.problem = "TSOMON_OPTIONS names an output already; remove it there and use -o";
    return result;
  }
  // Absolute: the program may change its folder before it records.
  const fs::path path = fs::absolute(output).lexically_normal();
  if (auto problem = prepare(path)) {
    result.problem = std::move(*problem);
    return result;
  }
  const std::vector<std::string> old_files = written(path);
  probe_options.add("existing=keep:" + output_option(path.string()));
  Child child(command);
  const int wait_status = child.exec_error() == 0 ? child.wait() : 0;

  if (child.exec_error() != 0) {
    result.status = child.exec_error() == ENOENT ? kNotFound : kNotExecutable;
    result.problem = fmt::format("{}: {}", command[0], std::strerror(child.exec_error()));
    return result;
  }
  for (std::string& file : written(path)) {
    if (file == path.string() ||
        std::find(old_files.begin(), old_files.end(), file) == old_files.end()) {
      result.files.push_back(std::move(file));
    }
  }
  const int status = exit_status(wait_status);
  std::error_code error;
  const bool is_device = fs::exists(path, error) && !fs::is_regular_file(path, error);
  if (result.files.empty() && !is_device) {
    result.problem = "no capture was written: " + not_recorded(command, status, "tsomon record");
    return result;
  }
  result.status = status;
  return result;
}

}  // namespace tsomon
