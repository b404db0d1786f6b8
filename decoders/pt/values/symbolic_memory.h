// Terms in memory, in units of four bytes.
//
// Contract    What is found is the last term stored there, in whole or its low bytes; stores that
//             overlap take away what they cut.
// Storage     SymbolicWord* find(unit): null where nothing was stored; SymbolicWord* make(unit): null where nothing
//             can be kept. from(unit), upto(unit): cut to where there may be any.
// Cost        One or two look-ups for each access.
// Thread-safety: none.
#pragma once

#include <cstdint>

#include "decoders/pt/values/symbolic_values.h"

namespace tsomon::pt {

struct SymbolicWord {
  static constexpr uint8_t kTail = 255;  // the second half of eight bytes

  SymbolicValue value;
  uint32_t epoch = 0;
  uint8_t size = 0;  // bytes of the term here; 0: nothing
  uint8_t shift = 0;
  bool pushed = false;
};

template <typename Storage>
class SymbolicMemory : public Storage {
 public:
  // Null: not known.
  SymbolicWord* get(int64_t address, unsigned size) {
    SymbolicWord* word = Storage::find(address >> 2);
    return word != nullptr && word->size != SymbolicWord::kTail && word->size >= size &&
                   word->shift == (address & 3)
               ? word
               : nullptr;
  }

  // Whether anything is known of these bytes.
  bool any(int64_t address, uint64_t size) {
    const int64_t end = Storage::upto(last(address, size));
    for (int64_t unit = Storage::from(address >> 2); unit <= end; ++unit) {
      const SymbolicWord* word = Storage::find(unit);
      if (word != nullptr && word->size != 0) {
        return true;
      }
    }
    return false;
  }

  void forget(int64_t address, uint64_t size) {
    const int64_t end = Storage::upto(last(address, size));
    for (int64_t unit = Storage::from(address >> 2); unit <= end; ++unit) {
      SymbolicWord* word = Storage::find(unit);
      if (word == nullptr || word->size == 0) {
        continue;
      }
      if (SymbolicWord* other = word->size == SymbolicWord::kTail ? Storage::find(unit - 1)
                                : word->size == 8                 ? Storage::find(unit + 1)
                                                                  : nullptr) {
        other->size = 0;
      }
      word->size = 0;
    }
  }

  // Null where it cannot be kept.
  SymbolicWord* put(int64_t address, unsigned size, SymbolicValue value) {
    if (size == 8 && (address & 3) == 0) {
      SymbolicWord* same = Storage::find(address >> 2);
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
    SymbolicWord* tail = size == 8 ? Storage::make((address >> 2) + 1) : nullptr;
    if (size == 8 && tail == nullptr) {
      return nullptr;
    }
    if (tail != nullptr) {
      tail->size = SymbolicWord::kTail;
    }
    SymbolicWord* word = Storage::make(address >> 2);
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
