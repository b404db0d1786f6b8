// A pipe that another process can open by a path. Nothing of it is left in any file system.
//
// Reading does not wait. Both ends are closed on exec. Thread-safety: as a descriptor's.
#pragma once

#include <cstddef>
#include <string>

namespace tsomon {

class OpenablePipe {
 public:
  // Room for so many bytes, or as many as the system allows; 0: as it comes.
  explicit OpenablePipe(size_t bytes = 0);
  OpenablePipe(const OpenablePipe&) = delete;
  OpenablePipe& operator=(const OpenablePipe&) = delete;
  ~OpenablePipe();

  int fd() const { return fd_; }
  const std::string& path() const { return path_; }
  const std::string& problem() const { return problem_; }  // empty: none

 private:
  int fd_ = -1;
  int writing_ = -1;  // stays open: its name is what others open
  std::string path_;
  std::string problem_;
};

}  // namespace tsomon
