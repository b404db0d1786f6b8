// How much memory a process has, as /proc shows it.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace tsomon::service {

// Resident bytes without those of files; 0: there is no such process.
uint64_t memory_of_process(pid_t pid);

}  // namespace tsomon::service
