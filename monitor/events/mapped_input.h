// The bytes of an input in memory: a file is mapped, anything else is copied to a temporary file.
//
// Memory      Pages of the file count as resident while they are read; release() gives them back.
// Errors      kUnreadable; kEnvironment when there is no room for a temporary file.
// Thread-safety: the view may be read by several threads.
#pragma once

#include <string>
#include <string_view>

#include "monitor/process/descriptor.h"
#include "tso/support/result.h"

namespace tsomon {

struct OpenedInput {
  Descriptor descriptor;
  bool regular = false;  // a file, at its begin
};

// `path` "-" is standard input. kUnreadable; the error names the input.
Result<OpenedInput> open_input(const std::string& path);

class MappedInput {
 public:
  // `regular`: a file that is read from its begin.
  static Result<MappedInput> of(Descriptor descriptor, bool regular);

  MappedInput() = default;
  MappedInput(MappedInput&& other) noexcept;
  MappedInput& operator=(MappedInput&&) = delete;
  MappedInput(const MappedInput&) = delete;
  MappedInput& operator=(const MappedInput&) = delete;
  ~MappedInput();

  std::string_view view() const { return {static_cast<const char*>(address_), size_}; }
  // What was read need not stay in memory.
  void release() const;

 private:
  MappedInput(void* address, size_t size) : address_(address), size_(size) {}

  void* address_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tsomon
