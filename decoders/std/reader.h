// Reader of text traces: RAPID's STD lines, extended (docs/formats/text-traces.md).
//
// Purpose     THREAD|OP|LOCATION|LO..HI lines to events, block by block, while the input is read.
// Time        Without the fourth field lo = hi = the number of event lines before this one.
// Errors      The input is judged as it stands: the first malformed line ends the reading with
//             kMalformed; `where` is "line N" (from 1) and the message says what was expected and
//             shows what was found, escaped and shortened. The events before it were delivered.
//             With skip_malformed such lines are counted and left out, and complete() is false.
//             An input without a single event is malformed, too: nothing can be judged.
// Memory      The buffer (grows only for a line that does not fit, see lines.h), the caches
//             (below 1 MiB), the block, 16 bytes a thread, and Symbols: bounded by the number
//             of distinct names, not by the length of the trace.
// Complexity  O(bytes), without allocation for a line whose names are known.
// Misses      Locks are not checked: RAPID's traces may release what they did not acquire. Names
//             are compared as text: `0x10` and `0x10+4` are unrelated locations.
// Not thread-safe; distinct readers are independent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tso/model/damage.h"
#include "tso/model/trace.h"
#include "tso/support/result.h"

namespace tsomon {

struct StdOptions {
  size_t buffer_bytes = size_t{256} << 10;
  size_t block_events = 4096;  // most events one next() delivers
  bool skip_malformed = false;
};

class StdReader {
 public:
  // `path` "-" is standard input.
  static Result<StdReader> open(const std::string& path, const StdOptions& options = {});
  // `fd` stays open and belongs to the caller; `name` is for messages.
  static StdReader from_descriptor(int fd, std::string name, const StdOptions& options = {});
  // `text` must stay alive and unchanged.
  static StdReader from_text(std::string_view text, std::string name,
                             const StdOptions& options = {});
  StdReader(StdReader&&) noexcept;
  StdReader& operator=(StdReader&&) noexcept;
  ~StdReader();

  // Replaces the contents of `block` by the next events, at least one; false at the end. On an
  // error the block holds the events before the malformed line, and later calls fail again.
  Result<bool> next(EventBlock& block);

  // Headers may stand anywhere: the sets are final only at the end.
  const Symbols& symbols() const;
  Symbols take_symbols();  // when done reading
  bool complete() const;   // no lost(N) header and no line left out so far
  uint64_t lost_events() const;
  bool sampled() const;         // a header said so
  bool recorded() const;        // likewise
  Damage damage() const;        // likewise
  bool nothing_counts() const;  // likewise
  bool atomics() const;         // likewise
  bool may_cancel() const;      // likewise
  Selection selection() const;  // likewise
  uint64_t skipped_lines() const;
  uint64_t lines() const;
  size_t buffer_bytes() const;

 private:
  class Impl;
  explicit StdReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Whole traces, with their cancelled units resolved (tso/model/cancelled_units.h); blocks of next()
// have them as they stand.
Result<Trace> read_std(const std::string& path, const StdOptions& options = {});
Result<Trace> read_std_text(std::string_view text, const std::string& name,
                            const StdOptions& options = {});

// Whether an input that begins with these bytes (a few hundred are enough) looks like a text
// trace: its first line that is neither blank nor a comment has the shape THREAD|OP..., whether
// or not OP exists, so that a misspelt trace gets the reader's message.
bool looks_like_std(std::string_view first_bytes);

}  // namespace tsomon
