// What runs already when a recording begins, as the records that would have told of it.
//
// Source      /proc/PID: comm, maps (executable ones), task.
// Misses      What changes while it is read: the kernel's own records tell that.
// Thread-safety: pure function of the file system.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace tsomon::pt_live {

std::vector<pid_t> threads_of(pid_t pid);  // empty: there is no such process

// COMM of every thread and MMAP2, each with a trailer of TID, TIME, CPU and IDENTIFIER `id`.
std::string running_code(pid_t pid, uint64_t id);

}  // namespace tsomon::pt_live
