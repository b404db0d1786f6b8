// Bytes of a test as code that a CodeCache can read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tsomon::test {

// The code lies at `begin`. It must outlive the reading.
inline auto code_reader(const std::vector<uint8_t>& code, uint64_t begin) {
  return [&code, begin](uint64_t at, uint8_t* to, size_t size) {
    const size_t from = std::min<size_t>(at - begin, code.size());
    const size_t there = std::min(size, code.size() - from);
    std::copy_n(code.begin() + static_cast<ptrdiff_t>(from), there, to);
    return there;
  };
}

}  // namespace tsomon::test
