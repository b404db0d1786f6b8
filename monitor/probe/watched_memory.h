// Which memory is recorded: option accesses=sets.
//
// Purpose     The user has declared the data that matters (tsomon_atomic_set in tsomon.h). With the
//             option only accesses to these bytes are recorded; everything else, buffers and the
//             state of single threads above all, costs a call and a look-up.
// Meaning     The recording is the whole recording without the accesses to other memory; of locked
//             instructions on other memory it keeps the fence. Locks, threads, fences and units are
//             recorded as ever. Of a location there is everything or nothing: so a load is never
//             taken for one that was not forwarded because the store that it was forwarded from is
//             missing, and no value is looked for among a part of the stores. What is certain in
//             such a trace is certain in the whole one (tests/tso/selection_test.cpp).
//             A choice by code would not keep that.
// Declared    before another thread accesses it: what was accessed earlier is not in the
//             recording. A declaration drains the store buffer of the thread that makes it.
// Granule     8 bytes: where a declared range begins or ends inside a granule, the rest of it is
//             watched, too. An access that only partly lies in watched granules is recorded with
//             the bytes in them; a 16-byte atomic as a whole.
// Complexity  One load from 4 KB that say which pages cannot be watched, two for an access to
//             several granules; where these do not decide, two to four more.
// Memory      2 MB of addresses for each gibibyte with declared ranges, of which the parts in use
//             are touched; 64 bytes for each page that is watched in part.
// Thread-safety: looking up is safe while ranges are added, also in signal handlers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tsomon::probe {

namespace watching {

inline constexpr int kGranuleBits = 3;
inline constexpr int kPageBits = 12;
inline constexpr int kRegionBits = 30;
inline constexpr int kAddressBits = 47;
inline constexpr uint64_t kPages = uint64_t{1} << (kRegionBits - kPageBits);
inline constexpr size_t kRegions = size_t{1} << (kAddressBits - kRegionBits);

// Of a page: 0, kWholePage, or the address of a bit for each granule.
using Page = std::atomic<uint64_t>;
inline constexpr uint64_t kWholePage = 1;
extern std::atomic<Page*> regions[kRegions];

// A bit for each page, many pages to a bit: not set, none of them has a watched byte.
inline constexpr uint64_t kPageBitsKept = 1U << 15;
extern std::atomic<uint64_t> watched_pages[kPageBitsKept / 64];
inline uint64_t page_bit(uint64_t address) {
  const uint64_t page = address >> kPageBits;
  return (page ^ page >> 15) % kPageBitsKept;
}

inline uint64_t page_of(uint64_t address) {
  const uint64_t region = address >> kRegionBits;
  if (region >= kRegions) {
    return 0;
  }
  Page* const pages = regions[region].load(std::memory_order_acquire);
  return pages == nullptr
             ? 0
             : pages[(address >> kPageBits) & (kPages - 1)].load(std::memory_order_acquire);
}

// `page` is neither 0 nor kWholePage.
inline bool has_granule(uint64_t page, uint64_t address) {
  const uint64_t granule = (address >> kGranuleBits) & ((1U << (kPageBits - kGranuleBits)) - 1);
  const auto* const words = reinterpret_cast<const std::atomic<uint64_t>*>(page);
  return (words[granule / 64].load(std::memory_order_relaxed) >> (granule % 64) & 1) != 0;
}

}  // namespace watching

inline constexpr uint64_t kGranule = uint64_t{1} << watching::kGranuleBits;  // bytes

// Adds a range. Callers take turns. False: there was no memory for all of it.
bool watch_range(uint64_t address, uint64_t size);

// Whether its page may have a watched byte. Most accesses are decided here.
inline bool may_be_watched(uint64_t address) {
  const uint64_t bit = watching::page_bit(address);
  return (watching::watched_pages[bit / 64].load(std::memory_order_relaxed) >> bit % 64 & 1) != 0;
}

// Of the granule that the address lies in.
inline bool is_watched(uint64_t address) {
  const uint64_t page = watching::page_of(address);
  return page > watching::kWholePage ? watching::has_granule(page, address) : page != 0;
}

// The first byte in [at, end) that is watched, or is not; `end`: there is none.
uint64_t next_watched(uint64_t at, uint64_t end, bool wanted = true);
inline bool any_watched(uint64_t begin, uint64_t size) {
  return next_watched(begin, begin + size) != begin + size;
}

}  // namespace tsomon::probe
