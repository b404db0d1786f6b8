// The rule by which a word that atomic operations change is a lock (tso/order/value_locks.h says why
// two threads then never hold it at once).
//
// Purpose     One rule for those who look at the whole of a trace and those who follow a stream.
// Complexity  O(1) for each store.
// Thread-safety: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace tsomon {

// Which values of a word are free: 0, or 1, or those with a lowest bit that is not set.
inline constexpr size_t kFreeValues = 3;
inline constexpr size_t kEvenIsFree = 2;
inline constexpr bool is_free_value(size_t which, uint64_t value) {
  return which == kEvenIsFree ? (value & 1) == 0 : value == which;
}

// A small value that is free where this one is.
inline constexpr uint64_t like_value(uint64_t value) { return value < 2 ? value : 2 | (value & 1); }

enum class WordStep : uint8_t { kNothing, kTakes, kGives, kFrees, kBreaks };

// What a store or locked operation does whose thread holds the word, or does not. `read`: of a
// locked operation. kFrees: a plain store of a free value by a thread that does not hold it, which only the
// word's making is, or the end of a section whose begin was not seen. kBreaks: the word is no lock.
inline WordStep step_of_word(size_t which, bool holds, bool locked, std::optional<uint64_t> read,
                             std::optional<uint64_t> written) {
  if (!written || (locked && !read)) {
    return WordStep::kBreaks;
  }
  const bool leaves_free = is_free_value(which, *written);
  const bool finds_free = locked && is_free_value(which, *read);
  if (holds) {
    return finds_free ? WordStep::kBreaks : leaves_free ? WordStep::kGives : WordStep::kNothing;
  }
  if (!locked) {
    return leaves_free ? WordStep::kFrees : WordStep::kBreaks;
  }
  return finds_free == leaves_free ? WordStep::kNothing
         : finds_free              ? WordStep::kTakes
                                   : WordStep::kBreaks;
}

}  // namespace tsomon
