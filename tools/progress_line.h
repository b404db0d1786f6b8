// One line on standard error about a long check, while it goes on.
//
// Purpose     Nothing in the first second; then, now and again, how long it has taken and how far
//             it is. On a terminal the line is rewritten and taken away at the end, elsewhere each
//             is one more line.
// Thread-safety: none; what it looks at may change on other threads.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "tso/support/progress.h"

namespace tsomon {

class ProgressLine {
 public:
  // `progress` must outlive the line. `asked`: also where standard error is no terminal.
  ProgressLine(std::string input, const Progress& progress, bool asked);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

 private:
  void run();

  std::string input_;
  const Progress& progress_;
  bool terminal_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace tsomon
