// Asks a running program, built with --dormant and started with control=, to be watched for a while.
//
// Purpose     The other end of monitor/probe/control.h: one slice, recorded into a file of the caller's.
// Whose       As connect_to_control() (monitor/process/control_socket.h): nobody else gets the file.
// Trust       None: what the program says of the slice is bounded by what was asked for.
// Errors      kUnreadable: no such process. kEnvironment: it does not answer, refuses, or ended meanwhile; the message says what
//             to do. The file then holds what was recorded until that moment, or nothing.
// Waiting     For the slice, and two seconds more; a stop (tso/support/work.h) ends the slice, and is answered as its end. For
//             the first call of a function that begins it: until it comes, or a stop.
// Thread-safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "monitor/process/process_access.h"
#include "tso/support/result.h"

namespace tsomon {

// Which functions are watched; of all those that have twins (monitor/slices/twin_functions.h).
struct WatchedFunctions {
  enum class Which {
    kAll,
    kOnly,   // these
    kBut,    // all but these
    kFirst,  // these until a thread has called one, and then all: so the slice begins
  };
  static constexpr size_t kMost = 16384;  // entries; what is more is left out

  Which which = Which::kAll;
  std::vector<uint64_t> entries;  // addresses in the process; at least one of kOnly and kFirst
};

struct SliceRequest {
  pid_t pid = 0;
  std::string folder;  // where the socket is; empty: its abstract name
  std::chrono::microseconds time{0};
  WatchedFunctions functions;
  uint64_t most_bytes =
      0;  // of records, from which on it ends before its time, as where there is no room; 0: as they come
  std::chrono::microseconds patience{0};  // with kFirst: how long to wait for it; 0: until a stop
  attach::ProcessAccess* access = &attach::direct_access();  // who connects
};

struct SliceEnd {
  std::chrono::microseconds watched{0};
  uint64_t threads = 0;    // that took part
  uint64_t cut_units = 0;  // that were open when it ended
  uint64_t bytes = 0;      // of records
};

// Whether it would answer now.
bool can_be_asked(pid_t pid, const std::string& folder);

// `file`: an empty regular file, open for writing.
Result<SliceEnd> record_slice(const SliceRequest& request, int file);

}  // namespace tsomon
