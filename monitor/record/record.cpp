#include "monitor/record/record.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "monitor/process/child.h"
#include "monitor/record/capture_file.h"
#include "monitor/record/probe_messages.h"
#include "monitor/record/probe_options.h"

namespace tsomon {
namespace {

namespace fs = std::filesystem;

// The captures FILE, FILE.PID and FILE.PID.N that lie there.
std::vector<std::string> written(const fs::path& output) {
  std::vector<std::string> files;
  std::error_code error;
  const std::string prefix = output.filename().string() + ".";
  for (const auto& entry : fs::directory_iterator(output.parent_path(), error)) {
    const std::string name = entry.path().filename().string();
    const bool further =
        name.size() > prefix.size() && name.rfind(prefix, 0) == 0 &&
        std::all_of(name.begin() + static_cast<ptrdiff_t>(prefix.size()), name.end(),
                    [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
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
      "'{0}' ended with status {1}, and it is not linked with the tsomon probe, did not live to "
      "record or runs with the rights of another user (set-user-id). Build it with tsomon-c++ or "
      "tsomon-cc in the place of its compiler, then run: {2} "
      "-- "
      "{3}",
      command[0], status, subcommand, fmt::join(command, " "));
}

NotStarted not_started(const std::vector<std::string>& command, const Child& child) {
  const int error = child.exec_error();
  return {child.short_of_resources() ? kRecordEnvironment
          : error == ENOENT          ? kNotFound
                                     : kNotExecutable,
          fmt::format("{}: {}", command[0], std::strerror(error))};
}

std::string left_running(pid_t process) {
  return fmt::format(
      "the program did not end when it was asked to, twice: it goes on as process {}", process);
}

std::string refused(const std::vector<std::string>& command) {
  return fmt::format("nothing was recorded: the probe in '{}' ended it at its start, as it said",
                     command[0]);
}

RecordResult record(const std::vector<std::string>& command, const std::string& output) {
  RecordResult result;
  ProbeOptions probe_options;
  if (const std::string wrong = probe_options.problem(); !wrong.empty()) {
    result.status = kRecordUsage;
    result.problem = wrong;
    return result;
  }
  if (probe_options.has("output=")) {
    result.problem = "TSOMON_OPTIONS names an output already; remove it there and use -o";
    return result;
  }
  // Absolute: the program may change its folder before it records.
  auto place = CapturePlace::make(fs::absolute(output).lexically_normal());
  if (!place) {
    result.status = place.error().kind == ErrorKind::kUsage ? kRecordUsage : kRecordFailed;
    result.problem = place.error().to_string();
    return result;
  }
  const fs::path& path = place->path();
  const std::vector<std::string> old_files = written(path);
  probe_options.add("existing=keep:" + output_option(path.string()));
  ProbeMessages messages;
  Child child(command);
  if (child.exec_error() != 0) {
    const NotStarted failure = not_started(command, child);
    result.status = failure.status;
    result.problem = failure.problem;
    return result;
  }
  const int status = exit_status(child.wait());
  const ProbeMessages::Said said = messages.take();
  result.warnings = said.unsaid;
  if (child.left()) {
    result.left = true;
    result.warnings.push_back(left_running(child.pid()) + ", and records on");
  }
  for (std::string& file : written(path)) {
    if (file == path.string() ||
        std::find(old_files.begin(), old_files.end(), file) == old_files.end()) {
      result.files.push_back(std::move(file));
    }
  }
  if (result.files.empty()) {
    result.status = said.refused ? kRecordEnvironment : kRecordFailed;
    result.problem =
        said.refused ? refused(command)
                     : "no capture was written: " + not_recorded(command, status, "tsomon record");
    return result;
  }
  result.status = status;
  for (const std::string& file : result.files) {
    if (const std::string missing = missing_part(file); !missing.empty()) {
      result.warnings.push_back(fmt::format("{}: is not whole: {}", file, missing));
      result.status = status == 0 ? kRecordEnvironment : status;
    }
  }
  return result;
}

}  // namespace tsomon
