// Errors as values.
//
// Every fallible operation at a module boundary returns Result<T>; exceptions do not cross
// modules. An Error says which input, where in it, what was expected and what was found.
// Violated invariants are not errors: TSOMON_CHECK aborts with a message, also in release builds.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace tsomon {

enum class ErrorKind : uint8_t {
  kUsage,        // the caller asked for something that does not exist
  kUnreadable,   // the input cannot be opened or read
  kMalformed,    // the input is not what its format says
  kDamaged,      // parts of the input are missing or fail their checksum
  kEnvironment,  // the machine lacks a permission, a kernel feature or hardware
};

struct Error {
  ErrorKind kind = ErrorKind::kMalformed;
  std::string input;    // file name, or "<stdin>"; may be empty
  std::string where;    // "line 12" or "byte 4096"; may be empty
  std::string message;  // what was expected and what was found, or what to do

  // "input: where: message" without the empty parts.
  std::string to_string() const {
    std::string text;
    for (const std::string* part : {&input, &where}) {
      if (!part->empty()) {
        text += *part + ": ";
      }
    }
    return text + message;
  }
};

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorKind kind, std::string message) {
  return tl::unexpected<Error>(Error{kind, {}, {}, std::move(message)});
}

}  // namespace tsomon

// An invariant of the program itself; holds in every build type.
#define TSOMON_CHECK(condition, message)                                                      \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      std::fprintf(stderr, "%s:%d: internal error: %s (%s)\n", __FILE__, __LINE__, (message), \
                   #condition);                                                               \
      std::abort();                                                                           \
    }                                                                                         \
  } while (false)
