// Splitting a line at its bars, 32 bytes a step.
//
// Every function may read LineBuffer::kSlack bytes past what it is given; the line ends in '\n'.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <emmintrin.h>

namespace tsomon::std_trace {

// THREAD|OP|LOCATION|INTERVAL: the ends of the fields; of those that are missing, `end`.
struct Fields {
  const char* begin = nullptr;
  const char* thread_end = nullptr;
  const char* op_end = nullptr;
  const char* location_end = nullptr;
  const char* end = nullptr;   // without line end
  const char* next = nullptr;  // the following line
};

enum class LineKind : uint8_t { kFields, kNothing, kNoBar, kTooManyFields, kNul };

inline uint64_t load8(const char* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

inline uint32_t bytes_equal(__m128i bytes, char value) {
  return static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(value))));
}

inline bool contains(__m128i bytes, char value) { return bytes_equal(bytes, value) != 0; }

struct Masks {
  uint32_t bars = 0;
  uint32_t controls = 0;  // bytes below 0x20, the line end among them
};

inline Masks masks32(const char* at) {
  const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 16));
  const __m128i top = _mm_set1_epi8(0x1F);
  const auto controls = [&](__m128i bytes) {
    return static_cast<uint32_t>(
        _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(bytes, top), bytes)));
  };
  return {bytes_equal(low, '|') | (bytes_equal(high, '|') << 16),
          controls(low) | (controls(high) << 16)};
}

// Number of leading bytes with the bit that lower-case letters have and '(' has not; at most 8.
inline size_t leading_letters(uint64_t word) {
  const uint64_t others = ~word & 0x4040404040404040ULL;
  return others == 0 ? 8 : static_cast<size_t>(__builtin_ctzll(others)) / 8;
}

// A decimal number of at most 8 digits without leading zeros, eight digits at once.
inline bool short_number(const char* text, size_t length, uint32_t& number) {
  if (length - 1 >= 8 || (*text == '0' && length != 1)) {
    return false;
  }
  const size_t unused = 64 - 8 * length;
  // Leading '0' in front: the bytes move up, the lowest address is the leading digit.
  uint64_t word = load8(text) << unused;
  word |= 0x3030303030303030ULL & ((uint64_t{1} << unused) - 1);
  if ((word & 0xF0F0F0F0F0F0F0F0ULL) != 0x3030303030303030ULL ||
      ((word + 0x0606060606060606ULL) & 0xF0F0F0F0F0F0F0F0ULL) != 0x3030303030303030ULL) {
    return false;
  }
  word -= 0x3030303030303030ULL;
  word = word * 10 + (word >> 8);  // pairs of digits in every second byte
  word = ((word & 0x000000FF000000FFULL) * (100 + (uint64_t{1000000} << 32)) +
          ((word >> 16) & 0x000000FF000000FFULL) * (1 + (uint64_t{10000} << 32))) >>
         32;
  number = static_cast<uint32_t>(word);
  return true;
}

// For lines longer than 32 bytes or with unusual bytes.
LineKind split_any(const char* line, Fields& fields);

inline LineKind split(const char* line, Fields& fields) {
  const Masks masks = masks32(line);
  const auto first =
      masks.controls == 0 ? 31U : static_cast<uint32_t>(__builtin_ctz(masks.controls));
  const uint32_t end_bit = 1U << first;
  uint32_t bars = masks.bars & (end_bit - 1);
  if (__builtin_expect(line[first] != '\n' || bars == 0 || static_cast<uint8_t>(*line) <= '#', 0)) {
    return split_any(line, fields);
  }
  // The line end stands in for every bar that is missing.
  const auto take = [&] {
    const char* at = line + __builtin_ctz(bars | end_bit);
    bars &= bars - 1;
    return at;
  };
  fields.begin = line;
  fields.end = line + first;
  fields.next = fields.end + 1;
  fields.thread_end = take();
  fields.op_end = take();
  fields.location_end = take();
  return bars == 0 ? LineKind::kFields : LineKind::kTooManyFields;
}

// What was expected of a line that has no fields.
const char* wrong_line(LineKind kind);

}  // namespace tsomon::std_trace
