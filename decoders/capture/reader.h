// A capture file becomes a Trace.
//
// Contract    Whatever is intact is read; what is not is described in `problems`, exactly: bytes,
//             thread, chunk. Any problem makes the trace incomplete. Reading fails only on
//             what is not a capture, or of another major version.
// Lost        Records that are missing may be fences, locks, stores. Of a chunk of the process that is
//             missing nobody knows what it said: knowledge_lost.
// Trace       Sorted by the start of the interval, events of one thread in program order
//             (stream.h says how records become events). Time is the time-stamp counter in
//             cycles. Where the capture says that stamps of different threads must not be
//             compared, or its header is lost, all intervals are open. Locks and condition
//             variables are size-0 locations at their raw address. Source locations are the
//             instruction pointers as text, "0x401136", until monitor/process/symbols.h replaces
//             them. Nothing is known of memory before the start.
// Complexity  O(n log threads). Memory: the trace, the file, two unpacked chunks per
//             thread and 250 KB. A small file may hold many events: max_events bounds the trace.
// Thread-safety: pure function.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "decoders/capture/format.h"
#include "tso/model/damage.h"
#include "tso/model/trace.h"
#include "tso/support/result.h"

namespace tsomon::capture {

Selection selection_of(const FileHeader& header);

// A range of addresses that a module's code occupied.
struct Module {
  std::string path;
  std::string build_id;  // raw bytes; empty: has none
  uint64_t bias = 0;     // address in memory minus address in the file
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string file{};  // read instead of `path`; empty: it is looked for

  bool operator==(const Module&) const = default;
};

struct Capture {
  tsomon::Damage damage() const {
    using enum tsomon::Damage;
    return problems.empty() ? kNone : has_gaps ? kGaps : kEnds;
  }

  Trace trace;
  FileHeader header;  // all zero after the versions when it is damaged
  std::vector<std::string> command_line;
  std::vector<Module> modules;  // later ones win where ranges overlap
  // Asm statements that were executed may be accesses, locks and fences that are missing: nothing that is found counts.
  // One of the problems says which.
  bool not_understood = false;
  std::string other_writers;  // as UnseenCode has it
  // What is missing may say how far the clocks agree, what was not understood, where code lies (by
  // which waiting loops and counts of references are known), what is an atomic set: nothing that is
  // found counts either. Known at the end.
  bool knowledge_lost = false;
  std::vector<std::string> problems;  // empty iff trace.complete
  // What is missing does not come after all that there is of its thread. Likewise.
  bool has_gaps = false;
  std::vector<std::string> notes;  // what makes verdicts weaker, but not incomplete
  bool may_cancel = false;         // units (kFileCancels)
  bool may_have_units = true;      // false: it is whole and names no label of any
};

// What lies after max_events is left out, which is a problem. Cancelled units are resolved
// (tso/model/cancelled_units.h); what next() gives has them as they stand.
Result<Capture> read_capture(std::string_view bytes, uint64_t max_events = UINT64_MAX);

// The same piece by piece: the events are given out instead of being collected in the trace.
// `bytes` must stay alive and unchanged. Memory: the position of every chunk, and one unpacked
// chunk per thread.
class CaptureReader {
 public:
  // `least_margin`: cycles by which counters of two processors may differ, if not by more
  // (clock_margin.h).
  static Result<CaptureReader> open(std::string_view bytes, int64_t least_margin = 0);
  CaptureReader(CaptureReader&&) noexcept;
  CaptureReader& operator=(CaptureReader&&) noexcept;
  ~CaptureReader();

  // Appends the next events to `block`, at most `max_events`; false when there are no more.
  bool next(EventBlock& block, size_t max_events);
  // All but the events; the symbols grow, and problems and losses are all known at the end.
  const Capture& capture() const;
  Symbols take_symbols();  // when done reading

 private:
  friend Result<Capture> read_capture(std::string_view bytes, uint64_t max_events);
  class Impl;
  explicit CaptureReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tsomon::capture
