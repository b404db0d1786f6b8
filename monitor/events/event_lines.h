// Which line of the input each event of a reordered stream was.
//
// Purpose     Reports count the event lines of the input; a detector counts the events as it gets
//             them. Where the two differ, because lines with intervals were put in order, this
//             remembers it.
// Memory      A few bytes: the numbers are in a temporary file of 8 bytes an event, with holes
//             where nothing was out of place, and no file at all if nothing ever was.
// Errors      kEnvironment, when that file cannot be written.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "monitor/process/descriptor.h"

namespace tsomon {

class EventLines {
 public:
  // The events at `first` and after it were these lines.
  Result<bool> add(uint64_t first, const std::vector<uint64_t>& lines);
  // Of an event that add() was not told about: its position.
  uint64_t line(uint64_t position) const;

 private:
  Descriptor file_;  // entry + 1, so that holes read as unknown
};

}  // namespace tsomon
