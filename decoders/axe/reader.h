// Reader of the traces of the axe checker (docs/formats/axe.md).
//
// Purpose     Operations with values, thread by thread, without any order between threads. A file
//             holds one or more tests, each ended by a line `check`; the end of the file also ends
//             one. They are read one at a time.
// Time        Stamps are checked for their form and not used: axe's are local to a thread.
// Errors      kMalformed with "line N" (from 1), what was expected and what was found; kUnreadable.
//             The first error ends the reading. An input without a single operation is malformed.
// Memory      One test and a buffer. Complexity: O(bytes).
// Not thread-safe; distinct readers are independent.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tso/model/trace.h"
#include "tso/support/result.h"

namespace tsomon {

struct AxeTest {
  Trace trace;  // locations start at 0
  std::vector<InitialValue> final_values;
  uint64_t first_line = 0;
};

// Whether a text that begins so is an axe trace, by its first line that is neither empty nor a
// comment: it begins as such lines do and has no '|' (also in no comment), which every line of a
// text trace has. Nothing when `beginning` ends before that line does.
std::optional<bool> looks_like_axe(std::string_view beginning);

class AxeReader {
 public:
  // `path` "-" is standard input.
  static Result<AxeReader> open(const std::string& path);
  // `fd` must stay open. `name` as in messages.
  static AxeReader from_descriptor(int fd, std::string name);
  // `text` must stay alive and unchanged.
  static AxeReader from_text(std::string_view text, std::string name);
  AxeReader(AxeReader&&) noexcept;
  AxeReader& operator=(AxeReader&&) noexcept;
  ~AxeReader();

  // The next test; false at the end.
  Result<bool> next(AxeTest& test);

 private:
  class Impl;
  explicit AxeReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tsomon
