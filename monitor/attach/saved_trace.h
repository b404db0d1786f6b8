// The events of an attachment as a text trace, for `tsomon check`.
//
// Errors      problem(): that the file cannot be written; nothing is written after that.
// Thread-safety: none.
#pragma once

#include <string>
#include <vector>

#include "decoders/std/writer.h"
#include "monitor/process/descriptor.h"
#include "online/stream/event_merge.h"
#include "tso/model/trace.h"

namespace tsomon::attach {

class SavedTrace {
 public:
  // Empty path: nothing is written. `note`: a comment at the start, if not empty.
  SavedTrace(const std::string& path, const Symbols& symbols, const std::string& note);

  void add(const EventBlock& block, const std::vector<EventLoss>& losses);
  void incomplete();
  // Nothing comes any more. What is not finished is incomplete for those who read it.
  void finish();
  const std::string& problem() const { return problem_; }

 private:
  void flush();
  void note_failure();

  std::string path_;
  Descriptor file_;
  StdWriter writer_;
  std::string text_;
  std::string problem_;
};

}  // namespace tsomon::attach
