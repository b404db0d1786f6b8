// A direct-mapped cache from short tokens to their ids, before an Interner.
//
// Purpose     Nearly every token of a trace was seen a moment ago. A hit costs one 16-byte
//             compare on one cache line, instead of a hash, a slot, an entry and the bytes.
// Contract    Tokens hold no NUL bytes (a token is padded with them to make its key), and 16
//             bytes from their start are readable. Longer and empty tokens always miss.
// Memory      32 bytes << bits. O(1). Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <emmintrin.h>

namespace tsomon::std_trace {

inline constexpr size_t kShortToken = 16;

// The token's first `length` <= 16 bytes, zeros after.
inline __m128i token_key(const char* token, size_t length) {
  alignas(16) static constexpr unsigned char kMask[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                                          255, 255, 255, 255, 255, 255, 255, 255};
  return _mm_and_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(token)),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(kMask + 16 - length)));
}

class TokenCache {
 public:
  explicit TokenCache(unsigned bits) : shift_(64 - bits), slots_(size_t{1} << bits) {}

  // The id of the token; `miss()` finds it when it is not cached. kUncached results are passed on
  // and not remembered.
  static constexpr uint32_t kUncached = 0xFFFFFFFFU;
  template <typename Miss>
  uint32_t get(const char* token, size_t length, Miss miss) {
    if (length - 1 >= kShortToken) {
      return miss();
    }
    return get(token_key(token, length), miss);
  }
  template <typename Miss>
  uint32_t get(__m128i key, Miss miss) {
    const auto low = static_cast<uint64_t>(_mm_cvtsi128_si64(key));
    const auto high = static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(key, key)));
    const uint64_t mixed = (low ^ (high * 0xA24BAED4963EE407ULL)) * 0x9E3779B97F4A7C15ULL;
    Slot& slot = slots_[mixed >> shift_];
    if (_mm_movemask_epi8(_mm_cmpeq_epi8(slot.key, key)) != 0xFFFF) {
      const uint32_t id = miss();
      if (id == kUncached) {
        return id;
      }
      slot.key = key;
      slot.id = id;
    }
    return slot.id;
  }

 private:
  struct Slot {
    __m128i key = _mm_setzero_si128();  // no token is empty
    uint32_t id = 0;
  };
  unsigned shift_;
  std::vector<Slot> slots_;
};

}  // namespace tsomon::std_trace
