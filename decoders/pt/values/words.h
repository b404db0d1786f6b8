// Terms in memory, in units of four bytes.
//
// Contract    What is found is the last term stored there, in whole or its low bytes; stores that
//             overlap take away what they cut.
// Storage     Word* find(unit): null where nothing was stored; Word* make(unit): null where nothing
//             can be kept. from(unit), upto(unit): cut to where there may be any.
// Cost        One or two look-ups for each access.
// Thread-safety: none.
#pragma once

#include <cstdint>

#include "decoders/pt/values/terms.h"

namespace tsomon::pt {

struct Word {
  static constexpr uint8_t kTail = 255;  // the second half of eight bytes

  Term value;
  uint32_t epoch = 0;
  uint8_t size = 0;  // bytes of the term here; 0: nothing
  uint8_t shift = 0;
  bool pushed = false;
};

template <typename Storage>
class Words : public Storage {
 public:
  // Null: not known.
  Word* get(int64_t address, unsigned size) {
    Word* word = Storage::find(address >> 2);
    return word != nullptr && word->size != Word::kTail && word->size >= size &&
                   word->shift == (address & 3)
               ? word
               : nullptr;
  }

  // Whether anything is known of these bytes.
  bool any(int64_t address, uint64_t size) {
    const int64_t end = Storage::upto(last(address, size));
    for (int64_t unit = Storage::from(address >> 2); unit <= end; ++unit) {
      const Word* word = Storage::find(unit);
      if (word != nullptr && word->size != 0) {
        return true;
      }
    }
    return false;
  }

  void forget(int64_t address, uint64_t size) {
    const int64_t end = Storage::upto(last(address, size));
    for (int64_t unit = Storage::from(address >> 2); unit <= end; ++unit) {
      Word* word = Storage::find(unit);
      if (word == nullptr || word->size == 0) {
        continue;
      }
      if (Word* other = word->size == Word::kTail ? Storage::find(unit - 1)
                        : word->size == 8         ? Storage::find(unit + 1)
                                                  : nullptr) {
        other->size = 0;
      }
      word->size = 0;
    }
  }

  // Null where it cannot be kept.
  Word* put(int64_t address, unsigned size, Term value) {
    if (size == 8 && (address & 3) == 0) {
      Word* same = Storage::find(address >> 2);
      if (same != nullptr && same->size == 8) {
        same->value = value;
        same->pushed = false;
        return same;
      }
    }
    forget(address, size);
    const auto shift = static_cast<uint8_t>(address & 3);
    if (shift + size > 4 && (shift != 0 || size != 8)) {
      return nullptr;
    }
    Word* tail = size == 8 ? Storage::make((address >> 2) + 1) : nullptr;
    if (size == 8 && tail == nullptr) {
      return nullptr;
    }
    if (tail != nullptr) {
      tail->size = Word::kTail;
    }
    Word* word = Storage::make(address >> 2);
    if (word == nullptr) {
      return nullptr;
    }
    word->value = value;
    word->size = static_cast<uint8_t>(size);
    word->shift = shift;
    word->pushed = false;
    return word;
  }

 private:
  static int64_t last(int64_t address, uint64_t size) {
    return (address + static_cast<int64_t>(size) - 1) >> 2;
  }
};

}  // namespace tsomon::pt
