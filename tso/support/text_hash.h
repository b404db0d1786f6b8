// The hash that names of things that must stay the same on every machine are made of: fingerprints, classes.
//
// Source      XXH3-64 (xxHash). Not for protection: whoever wants to can make two texts with one hash.
// Complexity  O(size). Thread-safety: pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tsomon {

uint64_t text_hash(std::string_view text);
// Of 16 hexadecimal digits.
std::string hash_name(std::string_view text);

}  // namespace tsomon
