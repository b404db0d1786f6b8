#include "monitor/process/control_groups.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

namespace tsomon::attach {
namespace {

constexpr size_t kLeastDigits = 12;  // as docker and podman show them
constexpr size_t kIdDigits = 64;

bool are_digits(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end != 0) {
      parts.push_back(text.substr(0, end));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool is_below(std::string_view path, std::string_view group) {
  return path.starts_with(group) && (path.size() == group.size() || path[group.size()] == '/');
}

// systemd puts a line before names that the kernel has for itself.
bool is_unit(std::string_view path, std::string_view unit) {
  for (std::string_view part : parts_of(path, '/')) {
    part.remove_prefix(part.front() == '_' && unit.front() != '_' ? 1 : 0);
    if (part == unit) {
      return true;
    }
    if (!part.ends_with(".slice")) {
      return false;
    }
  }
  return false;
}

// "docker-ID.scope", "libpod-ID.scope", "cri-containerd-ID.scope", "ID", ...
bool is_container(std::string_view path, std::string_view id) {
  constexpr std::string_view kScope = ".scope";
  for (std::string_view part : parts_of(path, '/')) {
    part.remove_suffix(part.ends_with(kScope) ? kScope.size() : 0);
    part.remove_prefix(part.rfind('-') == std::string_view::npos ? 0 : part.rfind('-') + 1);
    if (part.size() == kIdDigits && are_digits(part) && part.starts_with(id)) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool is_in_group(std::string_view text, const GroupChoice& choice) {
  for (const std::string_view line : parts_of(text, '\n')) {
    // NUMBER:CONTROLLERS:PATH; the path may have colons.
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) {
      continue;
    }
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    const bool systemds = controllers.empty() || controllers == "name=systemd";
    if ((!choice.path.empty() && is_below(path, choice.path)) ||
        (!choice.unit.empty() && systemds && is_unit(path, choice.unit)) ||
        (!choice.container.empty() && is_container(path, choice.container))) {
      return true;
    }
  }
  return false;
}

bool is_in_group(pid_t pid, const GroupChoice& choice) {
  std::ifstream file(fmt::format("/proc/{}/cgroup", pid));
  return is_in_group(std::string(std::istreambuf_iterator<char>(file), {}), choice);
}

std::string wrong_group_path(std::string_view path) {
  const auto parts = parts_of(path, '/');
  const bool dots = std::any_of(parts.begin(), parts.end(),
                                [](std::string_view part) { return part == "." || part == ".."; });
  const bool is_one = path.starts_with('/') && !path.ends_with('/') && !parts.empty() && !dots &&
                      path.find("//") == std::string_view::npos && !path.starts_with("/sys/");
  return is_one ? ""
                : "a control group as /proc/PID/cgroup shows it, as \"/system.slice/foo.service\"";
}

std::string wrong_unit(std::string_view unit) {
  constexpr std::array<std::string_view, 3> kKinds{".service", ".scope", ".slice"};
  const bool is_one = unit.find('/') == std::string_view::npos && unit.front() != '.' &&
                      std::any_of(kKinds.begin(), kKinds.end(), [&](std::string_view kind) {
                        return unit.size() > kind.size() && unit.ends_with(kind);
                      });
  return is_one ? "" : "a unit of systemd as \"foo.service\" (.service, .scope or .slice)";
}

std::string wrong_container(std::string_view container) {
  const bool is_one =
      container.size() >= kLeastDigits && container.size() <= kIdDigits && are_digits(container);
  return is_one ? ""
                : fmt::format(
                      "the ID of a container, {} to {} hexadecimal digits as `docker ps` and "
                      "`podman ps` show them (its name is known to its runtime alone)",
                      kLeastDigits, kIdDigits);
}

}  // namespace tsomon::attach
