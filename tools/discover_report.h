// `tsomon attach --discover`: prints what is worth watching in a process.
#pragma once

#include <sys/types.h>

#include "tools/output_option.h"

namespace tsomon {

// Samples for `seconds`; the exit status.
int run_discover(pid_t pid, double seconds, OutputFormat output);

}  // namespace tsomon
