#include "decoders/std/text.h"

#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "tso/model/event.h"

namespace tsomon::std_trace {
namespace {

template <typename T>
std::errc parse_number(std::string_view text, int base, T& number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base);
  if (error == std::errc() && stop != end) {
    return std::errc::invalid_argument;
  }
  return error;
}

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

bool has_hex_prefix(std::string_view text) {
  return text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
}

}  // namespace

std::string quoted(std::string_view text) {
  constexpr size_t kShown = 60;
  std::string shown = "'";
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7F) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown += c;
    }
  }
  return shown + (text.size() > kShown ? "'..." : "'");
}

std::optional<Result<LocationKey>> parse_byte_range(std::string_view text) {
  const size_t plus = text.find('+');
  if (text.size() < 5 || text[0] != '0' || text[1] != 'x' || plus == std::string_view::npos ||
      plus == 2 || plus + 1 == text.size()) {
    return std::nullopt;
  }
  const std::string_view address = text.substr(2, plus - 2);
  const std::string_view size = text.substr(plus + 1);
  if (!is_hex(address) || size.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  LocationKey key;
  if (parse_number(address, 16, key.address) != std::errc()) {
    return fail(ErrorKind::kMalformed,
                fmt::format("expected an address of at most 64 bits, found {}", quoted(text)));
  }
  if (parse_number(size, 10, key.size) != std::errc() || key.size == 0 ||
      key.size > Event::kMaxSize) {
    return fail(ErrorKind::kMalformed, fmt::format("expected a size from 1 to {} bytes, found {}",
                                                   Event::kMaxSize, quoted(text)));
  }
  if (key.address > std::numeric_limits<uint64_t>::max() - key.size) {
    return fail(ErrorKind::kMalformed,
                fmt::format("expected a byte range that ends below 2^64, found {}", quoted(text)));
  }
  return key;
}

std::pair<std::string_view, std::string_view> split_place(std::string_view text) {
  const size_t at = text.rfind('@');
  if (at == std::string_view::npos || at == 0 || at + 1 == text.size() ||
      text.find_first_not_of("0123456789abcdefx/:", at + 1) != std::string_view::npos) {
    return {text, {}};
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

Result<uint64_t> parse_value(std::string_view text, uint32_t size) {
  if (size > 8 && text.starts_with('#')) {
    return parse_value(text.substr(1), 0);
  }
  if (size > 8) {
    return fail(ErrorKind::kMalformed,
                fmt::format("expected no value: only accesses of at most 8 bytes have one, found "
                            "{} on {} bytes",
                            quoted(text), size));
  }
  const unsigned bits = size == 0 ? 64 : size * 8;
  std::errc error{};
  uint64_t value = 0;
  if (!text.empty() && text[0] == '-') {
    int64_t negative = 0;
    error = parse_number(text, 10, negative);
    if (error == std::errc() && bits < 64 && negative < -(int64_t{1} << (bits - 1))) {
      error = std::errc::result_out_of_range;
    }
    value = static_cast<uint64_t>(negative);
    if (bits < 64) {
      value &= (uint64_t{1} << bits) - 1;
    }
  } else {
    error = has_hex_prefix(text) ? parse_number(text.substr(2), 16, value)
                                 : parse_number(text, 10, value);
    if (error == std::errc() && bits < 64 && (value >> bits) != 0) {
      error = std::errc::result_out_of_range;
    }
  }
  if (error == std::errc::result_out_of_range) {
    return fail(ErrorKind::kMalformed,
                fmt::format("expected a value of at most {} bits, found {}", bits, quoted(text)));
  }
  if (error != std::errc()) {
    return fail(
        ErrorKind::kMalformed,
        fmt::format("expected a value (decimal, or hexadecimal with 0x), found {}", quoted(text)));
  }
  return value;
}

Result<Interval> parse_interval(std::string_view text) {
  const size_t dots = text.find("..");
  Interval interval;
  if (dots == std::string_view::npos ||
      parse_number(text.substr(0, dots), 10, interval.lo) != std::errc() ||
      parse_number(text.substr(dots + 2), 10, interval.hi) != std::errc()) {
    return fail(ErrorKind::kMalformed,
                fmt::format("expected an interval lo..hi of signed 64-bit integers, found {}",
                            quoted(text)));
  }
  if (interval.lo > interval.hi) {
    return fail(ErrorKind::kMalformed,
                fmt::format("expected an interval with lo <= hi, found {}", quoted(text)));
  }
  return interval;
}

}  // namespace tsomon::std_trace
