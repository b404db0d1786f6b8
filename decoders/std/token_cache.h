// A direct-mapped cache from short tokens to their ids, before an Interner.
//
// Purpose     Nearly every token of a trace was seen a moment ago. A hit costs one 16-byte
//             compare on one cache line, instead of a hash, a slot, an entry and the bytes.
//             prefetch() some tokens ahead hides that the line may be far away.
// Contract    Tokens hold no NUL bytes (a token is padded with them to make its key), and 16
//             bytes from their start are readable. Longer and empty tokens always miss.
// Memory      32 bytes << bits, of which there are more when tokens often miss: up to `most`. O(1)
//             expected. Not thread-safe.
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
  explicit TokenCache(unsigned bits, unsigned most = 0)
      : shift_(64 - bits), most_(most), slots_(size_t{1} << bits) {}

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
    Slot& slot = slots_[place_of(key)];
    if (_mm_movemask_epi8(_mm_cmpeq_epi8(slot.key, key)) != 0xFFFF) {
      const uint32_t id = miss();
      if (id != kUncached) {
        keep(key, id);
      }
      return id;
    }
    return slot.id;
  }

  // The token will be asked for soon.
  void prefetch(__m128i key) const { __builtin_prefetch(&slots_[place_of(key)]); }

 private:
  struct Slot {
    __m128i key = _mm_setzero_si128();  // no token is empty
    uint32_t id = 0;
  };

  size_t place_of(__m128i key) const {
    const auto low = static_cast<uint64_t>(_mm_cvtsi128_si64(key));
    const auto high = static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(key, key)));
    const uint64_t mixed = (low ^ (high * 0xA24BAED4963EE407ULL)) * 0x9E3779B97F4A7C15ULL;
    return mixed >> shift_;
  }

  // A token that is not there. Where as many as there are slots came so, there are too few of those.
  [[gnu::noinline]] void keep(__m128i key, uint32_t id) {
    if (++missed_ > slots_.size() && 64 - shift_ < most_) {
      missed_ = 0;
      std::vector<Slot> before(slots_.size() * 2);
      before.swap(slots_);
      --shift_;
      for (const Slot& slot : before) {
        if (_mm_movemask_epi8(_mm_cmpeq_epi8(slot.key, _mm_setzero_si128())) != 0xFFFF) {
          slots_[place_of(slot.key)] = slot;
        }
      }
    }
    slots_[place_of(key)] = {key, id};
  }

  unsigned shift_;
  unsigned most_;
  size_t missed_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace tsomon::std_trace
