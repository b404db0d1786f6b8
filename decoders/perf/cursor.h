// Little-endian fields out of bytes that may end too early.
//
// Contract    A read past the end gives zeros or nothing and clears ok(); it stays cleared. So a
//             parser reads a whole structure and asks once. A count from the input is compared
//             with left() before anything is allocated for it.
// Thread-safety: none; plain data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace tsomon::perf {

class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T take() {
    static_assert(std::is_integral_v<T>);
    T value = 0;
    const std::string_view from = take_bytes(sizeof value);
    if (!from.empty()) {
      std::memcpy(&value, from.data(), sizeof value);
    }
    return value;
  }
  std::string_view take_bytes(uint64_t size) {
    if (size > left()) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  // The text up to a NUL, out of `size` bytes.
  std::string_view take_text(uint64_t size) {
    const std::string_view field = take_bytes(size);
    return field.substr(0, std::min(field.find('\0'), field.size()));
  }
  // What is left up to a NUL, which need not be there; nothing is taken.
  std::string_view text() const { return bytes_.substr(0, std::min(bytes_.find('\0'), left())); }

  uint64_t left() const { return bytes_.size(); }
  bool ok() const { return ok_; }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace tsomon::perf
