#include "monitor/process/running_programs.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <tuple>

#include <fmt/format.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tsomon::attach {
namespace {

namespace fs = std::filesystem;

bool is_ours(pid_t pid) {
  struct stat status {};
  return ::geteuid() == 0 || (::stat(fmt::format("/proc/{}", pid).c_str(), &status) == 0 &&
                              status.st_uid == ::geteuid());
}

}  // namespace

std::vector<pid_t> all_processes() {
  std::vector<pid_t> all;
  std::error_code error;
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    pid_t number = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
    if (parsed.ec == std::errc() && parsed.ptr == name.data() + name.size()) {
      all.push_back(number);
    }
  }
  return all;
}

std::string program_of(pid_t pid) {
  constexpr std::string_view kDeleted = " (deleted)";
  std::error_code error;
  std::string path = fs::read_symlink(fmt::format("/proc/{}/exe", pid), error).string();
  if (path.size() > kDeleted.size() && path.ends_with(kDeleted)) {
    path.resize(path.size() - kDeleted.size());
  }
  return path;
}

uint64_t start_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  // Its name, in brackets, may hold anything; behind it the state is the first field, this the twentieth.
  size_t at = text.rfind(')');
  if (at == std::string::npos || at + 2 >= text.size() ||
      std::string_view("ZX").find(text[at + 2]) != std::string_view::npos) {
    return 0;
  }
  constexpr int kField = 20;
  for (int field = 0; field < kField && at != std::string::npos; ++field) {
    at = text.find(' ', at + 1);
  }
  uint64_t ticks = 0;
  if (at != std::string::npos) {
    std::from_chars(text.data() + at + 1, text.data() + text.size(), ticks);
  }
  return ticks;
}

std::string status_field(pid_t pid, const std::string& name) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name + ":", 0) == 0) {
      const size_t begin = line.find_first_not_of(" \t", name.size() + 1);
      return begin == std::string::npos ? std::string() : line.substr(begin);
    }
  }
  return {};
}

bool runs_program(pid_t pid, const std::string& pattern) {
  std::string name = program_of(pid);
  name.erase(0, pattern.find('/') != std::string::npos ? 0 : name.rfind('/') + 1);
  return !name.empty() && ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

std::vector<pid_t> processes_where(const std::function<bool(pid_t)>& chosen) {
  std::vector<std::tuple<uint64_t, pid_t>> found;
  for (const pid_t pid : all_processes()) {
    if (pid == ::getpid() || !chosen(pid) || !is_ours(pid)) {
      continue;
    }
    if (const uint64_t start = start_of(pid); start != 0) {
      found.emplace_back(start, pid);
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<pid_t> processes;
  for (const auto& [start, pid] : found) {
    processes.push_back(pid);
  }
  return processes;
}

std::vector<pid_t> processes_running(const std::string& pattern) {
  return processes_where([&](pid_t pid) { return runs_program(pid, pattern); });
}

}  // namespace tsomon::attach
