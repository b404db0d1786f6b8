// The small parts of a line of a text trace: byte ranges, values, time stamps, quoted excerpts.
//
// Pure functions; thread-safe. All are O(length).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tso/model/trace.h"
#include "tso/support/result.h"

namespace tsomon::std_trace {

// The text in quotes, shortened, everything unprintable escaped: safe to show on a terminal.
std::string quoted(std::string_view text);

// `0xADDRESS+SIZE`. Nothing when the text is not of that form, and then it is a name; an error
// when it is of that form and its numbers are out of range.
std::optional<Result<LocationKey>> parse_byte_range(std::string_view text);

// Decimal, negative decimal or 0x hexadecimal, of at most 64 bits. `size` is the size of the
// access in bytes, 0 if it has a name: the value must fit, negative ones become their two's
// complement of that size. Accesses of more than 8 bytes have digests: "#1234".
Result<uint64_t> parse_value(std::string_view text, uint32_t size);

// "f file.cpp:12@34/5:6": the text of a source location, and which of the places of that line it is (Symbols).
std::pair<std::string_view, std::string_view> split_place(std::string_view text);

struct Interval {
  int64_t lo = 0;
  int64_t hi = 0;
};
Result<Interval> parse_interval(std::string_view text);

}  // namespace tsomon::std_trace
