// What came through the pipe of a live recording, kept in a file.
//
// Thread-safety: none.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "monitor/process/descriptor.h"

namespace tsomon {

class SavedCapture {
 public:
  // Opens it; an empty path: nothing is kept.
  explicit SavedCapture(const std::string& path);
  SavedCapture(const SavedCapture&) = delete;
  SavedCapture& operator=(const SavedCapture&) = delete;
  ~SavedCapture() { finish(); }

  // After a failure nothing more is written: what is there can be read. Where a FIFO is full it waits
  // for whoever reads it, until `gives_up` says so.
  void add(std::string_view bytes, const std::function<bool()>& gives_up);
  void finish();
  // To read what is there; none where it is no file.
  Descriptor reopen() const;
  const std::string& problem() const { return problem_; }

 private:
  void not_whole(const char* why);

  std::string path_;
  int fd_ = -1;
  std::string problem_;
};

}  // namespace tsomon
