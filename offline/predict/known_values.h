// What the values of a trace say, which the model does not have.
//
// Purpose     Made where the trace is read, one event after another; asked about units.
// Memory      A bit and a byte for an event.
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "tso/model/word_lock.h"

namespace tsomon::predict {

// What a store or locked operation has read and written, as far as locks that are words tell values
// apart.
class WordValues {
 public:
  WordValues() = default;
  WordValues(std::optional<uint64_t> read, std::optional<uint64_t> written)
      : read_(code(read)), written_(code(written)) {}

  std::optional<uint64_t> read() const { return value(read_); }
  std::optional<uint64_t> written() const { return value(written_); }

 private:
  static uint8_t code(std::optional<uint64_t> value) {
    return value ? static_cast<uint8_t>(1 + like_value(*value)) : 0;
  }
  static std::optional<uint64_t> value(uint8_t code) {
    return code != 0 ? std::optional<uint64_t>(code - 1U) : std::nullopt;
  }

  uint8_t read_ : 4 = 0;  // 0: not known
  uint8_t written_ : 4 = 0;
};
static_assert(sizeof(WordValues) == 1, "there is one for each event");

// By event; may be shorter. Stores of such a trace have written_tag() in span_or_extra.
struct KnownValues {
  std::vector<bool> failed;  // attempts of waiting loops
  std::vector<WordValues> words;
  std::unordered_set<uint32_t> waiting;  // locations where the code waits for what a load finds
};

// Of a value that is written; 0: not known. Two values may have one.
inline uint32_t written_tag(uint64_t value) {
  return static_cast<uint32_t>((value * 0x9E3779B97F4A7C15U) >> 33) | 0x80000000U;
}

}  // namespace tsomon::predict
