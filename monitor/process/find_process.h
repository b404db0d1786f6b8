// A process by its number or by the name of its program.
//
// Names       The last part of the path of the executable, or what the process calls itself
//             (/proc/PID/comm, cut off after 15 bytes).
// Errors      kUsage: nothing, or several have the name; these are listed with their commands.
// Thread-safety: none needed.
#pragma once

#include <string>

#include <sys/types.h>

#include "tso/support/result.h"

namespace tsomon::attach {

// Digits are a number, whether there is such a process or not. This process is none of the answers.
Result<pid_t> find_process(const std::string& name);

}  // namespace tsomon::attach
