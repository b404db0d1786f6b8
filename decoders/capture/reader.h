// A capture file becomes a Trace.
//
// Contract    Whatever is intact is read; what is not is described in `problems`, exactly: bytes,
//             thread, chunk. Any problem makes the trace incomplete. Reading fails only on
//             what is not a capture, or of a newer major version.
// Trace       Sorted by the start of the interval, events of one thread in program order
//             (stream.h tells how records become events). Time is the time-stamp counter in
//             cycles. Locks and condition variables are size-0 locations at their raw address.
//             Source locations are the instruction pointers as text, "0x401136", until
//             monitor/symbols.h replaces them. Nothing is known of memory before the start.
// Complexity  O(n log threads). Memory: the trace, the file, one unpacked chunk per thread.
// Thread-safety: pure function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "decoders/capture/format.h"
#include "tso/result.h"
#include "tso/trace.h"

namespace tsomon::capture {

// A range of addresses that a module's code occupied.
struct Module {
  std::string path;
  std::string build_id;  // raw bytes; empty: has none
  uint64_t bias = 0;     // address in memory minus address in the file
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct Capture {
  Trace trace;
  FileHeader header;  // all zero behind the versions when it is damaged
  std::vector<std::string> command_line;
  std::vector<Module> modules;        // later ones win where ranges overlap
  std::vector<std::string> problems;  // empty iff trace.complete
};

Result<Capture> read_capture(std::string_view bytes);

}  // namespace tsomon::capture
