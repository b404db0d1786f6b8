// SHA-256, which names what a fleet keeps: what has this name cannot be anything else.
//
// Errors      None; the library's own end the program.
// Complexity  O(size). Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace tsomon::fleet {

// 64 hexadecimal digits.
std::string digest_of(std::string_view bytes);
bool is_digest(std::string_view text);

}  // namespace tsomon::fleet
