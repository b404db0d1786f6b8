// The processes that there are, and what they run, as /proc shows them.
//
// Races       A process may end at any time: its answer is then as if it were not there. Numbers are given again; with
//             start_of() a process is known for what it was.
// Complexity  O(processes) for all of them. Thread-safety: none needed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace tsomon::attach {

std::vector<pid_t> all_processes();
// The path of its executable, as it sees it, also where the file is deleted; empty: it may not be seen, or there is none.
std::string program_of(pid_t pid);
// When it began, in clock ticks since the machine did; 0: there is no such process, or it has ended and is not waited for yet.
uint64_t start_of(pid_t pid);
// A field of /proc/PID/status; empty: there is none, or no such process.
std::string status_field(pid_t pid, const std::string& name);
// Whether its executable's name matches the shell pattern, with a slash in it the whole path.
bool runs_program(pid_t pid, const std::string& pattern);
// Those of this process's user, for root of all, but for itself, that are chosen. The one that began first is the first.
std::vector<pid_t> processes_where(const std::function<bool(pid_t)>& chosen);
// ... that run the program.
std::vector<pid_t> processes_running(const std::string& pattern);

}  // namespace tsomon::attach
