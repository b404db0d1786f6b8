// The control groups of processes, and what systemd and container runtimes call them.
//
// How         /proc/PID/cgroup has a path for each hierarchy: one of version 2, one for each controller of version 1, both where
//             both are mounted. The paths count from this process's cgroup namespace.
// Units       systemd gives each unit of the system a group of its name, below slices alone. A unit of that name of a user's own
//             manager lies below user@UID.service, and is none of them.
// Containers  Docker, Podman, containerd and CRI-O put the 64 hexadecimal digits of a container's ID into the name of its group.
//             Its name is known to its runtime alone.
// Misses      A group with several hierarchies of version 1: being in it in one of them is enough. Who may make groups, as a user
//             in what systemd delegates, may call them as containers are called.
// Complexity  O(length). Thread-safety: pure functions, but for the kernel's state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace tsomon::attach {

// At most one of them is not empty.
struct GroupChoice {
  std::string path;       // "/system.slice/foo.service", and what is below it
  std::string unit;       // "foo.service"
  std::string container;  // the first digits of its ID

  bool is_empty() const { return path.empty() && unit.empty() && container.empty(); }
  bool operator==(const GroupChoice&) const = default;
};

// `text`: what /proc/PID/cgroup has.
bool is_in_group(std::string_view text, const GroupChoice& choice);
bool is_in_group(pid_t pid, const GroupChoice& choice);

// What is wrong with a choice, for messages: what is expected. Empty: nothing.
std::string wrong_group_path(std::string_view path);
std::string wrong_unit(std::string_view unit);
std::string wrong_container(std::string_view container);

}  // namespace tsomon::attach
