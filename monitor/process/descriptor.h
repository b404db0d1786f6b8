// A file descriptor with an owner, and temporary files without a name.
//
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tso/support/result.h"

namespace tsomon {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1, bool owned = true) : fd_(fd), owned_(owned) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_;
  bool owned_;
};

// A file in the folder for temporary files (TMPDIR, else /tmp) that goes with its descriptor.
// kEnvironment with the remedy when there can be none.
Result<Descriptor> temporary_file();

// All of `size` bytes at `offset`; kEnvironment.
Result<bool> write_at(const Descriptor& file, const void* bytes, size_t size, uint64_t offset);

}  // namespace tsomon
