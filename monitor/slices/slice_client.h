// Asks a running program, built with --dormant and started with control=, to be watched for a while.
//
// Purpose     The other end of monitor/probe/control.h: one slice, recorded into a file of the caller's.
// Whose       The socket's owner is asked of the kernel: a process that has taken another one's name gets no file.
// Errors      kUnreadable: no such process. kEnvironment: it does not answer, refuses, or ended meanwhile; the message says what
//             to do. The file then holds what was recorded until that moment, or nothing.
// Waiting     For the slice, and two seconds more; a stop (tso/support/work.h) ends the slice, and is answered as its end.
// Thread-safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <sys/types.h>

#include "tso/support/result.h"

namespace tsomon {

struct SliceEnd {
  std::chrono::microseconds watched{0};
  uint64_t threads = 0;    // that took part
  uint64_t cut_units = 0;  // that were open when it ended
};

// `folder`: where the socket is; empty: its abstract name. `file`: an empty regular file, open for writing.
Result<SliceEnd> record_slice(pid_t pid, const std::string& folder, std::chrono::microseconds time,
                              int file);

}  // namespace tsomon
