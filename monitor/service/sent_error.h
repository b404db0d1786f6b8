// An error in a message between parts of the service.
//
// Trust       None: what the other side wrote is cut at its end, and made printable.
// Thread-safety: plain data.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "tso/support/printable.h"
#include "tso/support/result.h"

namespace tsomon::service {

class SentError {
 public:
  SentError() = default;
  explicit SentError(const Error& error) : failed_(static_cast<uint32_t>(error.kind) + 1) {
    copy(error.input, &input_);
    copy(error.message, &message_);
  }
  bool is_one() const { return failed_ != 0; }
  // Nothing: there is none.
  std::optional<Error> error() const {
    if (!is_one()) {
      return std::nullopt;
    }
    const auto kind = std::min(failed_ - 1, static_cast<uint32_t>(ErrorKind::kEnvironment));
    return Error{static_cast<ErrorKind>(kind), text(input_), {}, text(message_)};
  }

 private:
  using Text = std::array<char, 480>;
  static void copy(const std::string& from, Text* to) {
    std::copy_n(from.begin(), std::min(from.size(), to->size() - 1), to->begin());
  }
  static std::string text(const Text& bytes) {
    return printable(std::string(bytes.data(), ::strnlen(bytes.data(), bytes.size())));
  }

  uint32_t failed_ = 0;  // 0: no; else what Error::kind has, and one more
  Text input_{};         // both end with NUL
  Text message_{};
};

}  // namespace tsomon::service
