// The file that a capture is written to, before the program starts.
//
// Purpose     `tsomon record -o` and `tsomon run --save` replace captures and nothing else. What
//             cannot be written is told here, apart from a program that does not record.
// Errors      kUsage: FILE is a device, a socket, a folder, ...; kEnvironment: it is not a capture,
//             cannot be replaced or cannot be written.
// Thread-safety: none.
#pragma once

#include <filesystem>
#include <string>

#include "tso/support/result.h"

namespace tsomon {

// By its first bytes.
bool is_capture(const std::filesystem::path& path);

// What the end of recording has left out of a capture: a full disk, a program that was killed.
// Empty: it is whole. Reads chunk headers only, not what is in the chunks.
std::string missing_part(const std::filesystem::path& path);

// A place for a new capture. The old one is set aside as FILE.old.PID and comes back at the end
// when nothing was recorded: the program was not found, say.
class CapturePlace {
 public:
  // There is no file afterwards. What a symbolic link points to is replaced, not the link. `pipe`:
  // a FIFO is fine, too; it is not opened. An empty path: no file is wanted.
  static Result<CapturePlace> make(const std::filesystem::path& path, bool pipe = false);
  CapturePlace(CapturePlace&& other) noexcept;
  CapturePlace& operator=(CapturePlace&&) = delete;
  ~CapturePlace();

  const std::filesystem::path& path() const { return path_; }

 private:
  CapturePlace() = default;
  std::filesystem::path path_;
  std::filesystem::path old_;  // empty: there is none
  bool made_ = false;          // there was no file then
};

}  // namespace tsomon
