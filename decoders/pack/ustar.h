// The header of a member in POSIX's ustar form.
#pragma once

#include <array>
#include <cstddef>

namespace tsomon::pack {

constexpr size_t kBlock = 512;  // headers and contents are multiples of it

struct UstarHeader {
  std::array<char, 100> name;
  std::array<char, 8> mode;
  std::array<char, 8> owner;
  std::array<char, 8> group;
  std::array<char, 12> size;
  std::array<char, 12> modified;
  std::array<char, 8> checksum;  // the sum of all bytes, with blanks in its place
  char type;
  std::array<char, 100> link;
  std::array<char, 6> magic;  // "ustar"
  std::array<char, 2> version;
  std::array<char, 32> owner_name;
  std::array<char, 32> group_name;
  std::array<char, 8> device_major;
  std::array<char, 8> device_minor;
  std::array<char, 155> prefix;  // of the name, before a '/'
  std::array<char, 12> unused;
};
static_assert(sizeof(UstarHeader) == kBlock);

inline unsigned checksum_of(const UstarHeader& header) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&header);
  unsigned sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const size_t at = offsetof(UstarHeader, checksum);
    sum += i >= at && i < at + sizeof header.checksum ? ' ' : bytes[i];
  }
  return sum;
}

}  // namespace tsomon::pack
