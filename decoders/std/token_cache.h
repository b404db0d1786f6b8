// A cache from short tokens to their ids, before an Interner: each has two places, in one cache line.
//
// Purpose     Nearly every token of a trace was seen a moment ago. A hit costs one 16-byte
//             compare on one cache line, instead of a hash, a slot, an entry and the bytes.
// Contract    Tokens hold no NUL bytes (a token is padded with them to make its key), and 16
//             bytes from their start are readable. Longer and empty tokens always miss.
// Size        It may grow, up to two to four slots for each id that there is, each time that as many
//             lookups have missed as it has slots: what no second-level cache holds costs more than
//             some misses.
// Memory      32 bytes << bits. O(1). Not thread-safe.
#pragma once

#include <algorithm>
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
  explicit TokenCache(unsigned bits, unsigned most_bits = 0)
      : shift_(64 - bits), most_bits_(most_bits), slots_(size_t{1} << bits) {}

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
    const size_t place = mixed >> shift_;
    Slot& slot = slots_[place];
    if (!is(slot, key)) {
      Slot& other = slots_[place ^ 1];
      if (is(other, key)) {
        return other.id;
      }
      const uint32_t id = miss();
      if (id == kUncached) {
        return id;
      }
      other = slot;
      slot.key = key;
      slot.id = id;
      ids_ = std::max<size_t>(ids_, id);
      if (64 - shift_ < most_bits_ && ++misses_ > slots_.size() && 2 * ids_ > slots_.size()) {
        grow();
      }
      return id;
    }
    return slot.id;
  }

 private:
  struct Slot {
    __m128i key = _mm_setzero_si128();  // no token is empty
    uint32_t id = 0;
  };
  static bool is(const Slot& slot, __m128i key) {
    return _mm_movemask_epi8(_mm_cmpeq_epi8(slot.key, key)) == 0xFFFF;
  }

  // What was cached is found again.
  void grow() {
    shift_ -= 1;
    misses_ = 0;
    slots_.assign(slots_.size() * 2, Slot());
  }

  unsigned shift_;
  unsigned most_bits_;
  size_t misses_ = 0;
  size_t ids_ = 0;  // the largest one
  std::vector<Slot> slots_;
};

}  // namespace tsomon::std_trace
