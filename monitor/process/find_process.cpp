#include "monitor/process/find_process.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "monitor/process/running_programs.h"

namespace tsomon::attach {
namespace {

namespace fs = std::filesystem;

bool is_number(std::string_view text, pid_t& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return !text.empty() && parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

bool is_called(pid_t pid, const std::string& name) {
  std::string comm;
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::getline(file, comm);
  if (comm == name) {
    return true;
  }
  return fs::path(program_of(pid)).filename().string() == name;
}

// Printable, and not long.
std::string command_of(const fs::path& process) {
  constexpr size_t kLongest = 100;
  std::ifstream file(process / "cmdline");
  std::string command(std::istreambuf_iterator<char>(file), {});
  command.resize(std::min(command.size(), kLongest));
  for (char& letter : command) {
    letter = letter < ' ' || letter > '~' ? ' ' : letter;
  }
  command.resize(command.find_last_not_of(' ') + 1);
  return command;
}

// In one line, as all messages: the numbers with their commands, of many the first ones.
std::string several(const std::string& name, std::vector<pid_t> found) {
  constexpr size_t kShown = 20;
  std::sort(found.begin(), found.end());
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(found.size(), kShown); ++i) {
    const fs::path process = fs::path("/proc") / std::to_string(found[i]);
    shown.push_back(fmt::format("{} ({})", found[i], command_of(process)));
  }
  return fmt::format("{} processes are called {}; give the number of one: {}{}", found.size(), name,
                     fmt::join(shown, ", "), found.size() > kShown ? ", ..." : "");
}

}  // namespace

Result<pid_t> find_process(const std::string& name) {
  pid_t number = 0;
  if (is_number(name, number)) {
    return number;
  }
  std::vector<pid_t> found;
  for (const pid_t pid : all_processes()) {
    if (pid != ::getpid() && is_called(pid, name)) {
      found.push_back(pid);
    }
  }
  if (found.empty()) {
    return fail(ErrorKind::kUsage,
                fmt::format("no process is called {}; `ps -e` lists them", name));
  }
  if (found.size() > 1) {
    return fail(ErrorKind::kUsage, several(name, std::move(found)));
  }
  return found.front();
}

}  // namespace tsomon::attach
