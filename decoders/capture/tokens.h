// Packed records: the payload of an events chunk. docs/formats/capture.md describes the bytes.
//
// Idea        Most accesses are cached: the same instructions follow one another, each with
//             its last address, the next of a sweep, or as far from another access as last time:
//             the fields of whatever object the thread is at. Writer and reader keep the same table
//             of sites (instruction, kind and size of an access). An access that hits this table (the site cache)
//             costs no byte: it only moves a counter of its site. Any other record becomes a token
//             that first says how far the cached accesses went, and then what came instead.
//             (Last-value and stride predictors for trace compression: Burtscher, "VPC3", 2004;
//             the successor of a site is a first-order context.)
// Bases       Two addresses from which others are cached: that of the last plain access, and of
//             the last one before it that lay elsewhere, so that a thread may go to and fro between
//             two objects. Accesses whose sites always have the same address, or sweep, leave them
//             as they are.
// Chunks      Every chunk begins with an empty table: it can be read without the others.
// Position    A place between two records is given by the bytes of the tokens before it, and by how
//             far the cached accesses after them went: the site that was executed last, and how
//             often since the last token that named it. That number stays below 128.
// Misses      Sites whose instructions are a multiple of 32 KiB apart share an entry of the table
//             and displace each other; it costs bytes, nothing else.
//
// Header only, no dependencies: it is compiled into monitored programs. Thread-safety: pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "decoders/capture/record.h"

namespace tsomon::capture {

// First bytes of a payload. The records of a signal handler interrupt another chunk of the thread.
struct ChunkStart {
  uint64_t interrupted = 0;  // 1 + sequence of the chunk that goes on after this one; 0: none
  uint32_t end = 0;          // Position where it was interrupted
  uint16_t slot = 0;
  uint16_t count = 0;
};
static_assert(sizeof(ChunkStart) == 16);

struct Position {
  uint32_t end = 0;    // bytes of tokens
  uint32_t slot = 0;   // entry of the site executed last
  uint32_t count = 0;  // cached executions of it; 0: none since the token before
};

// The table. An entry is found by the low bits of the instruction pointer.
inline constexpr uint32_t kSlots = 4096;
inline constexpr uint32_t kNoSlot = kSlots;  // before the first record of a chunk
inline constexpr uint32_t kMaxCount = 127;

// Key of a site. Plain accesses of 1, 2, 4 and 8 bytes: the instruction pointer times 8, and a
// code. Others: bit 63, and instruction pointer, type (five bits from bit 48, and its sixth at bit
// 47, which no instruction pointer of a program has) and size (from bit 53).
inline constexpr uint64_t kOtherKey = uint64_t{1} << 63;
inline constexpr uint64_t kPcMask = (uint64_t{1} << 47) - 1;

constexpr int plain_code(RecordType type, uint32_t size) {
  const int log = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : -1;
  return log < 0 ? -1 : type == RecordType::kRead ? log : type == RecordType::kWrite ? log + 4 : -1;
}
constexpr uint64_t other_key(RecordType type, uint32_t size, uint64_t pc) {
  const auto number = static_cast<uint64_t>(type);
  return kOtherKey | (static_cast<uint64_t>(size) << 53) | ((number & 31) << 48) |
         ((number >> 5 & 1) << 47) | (pc & kPcMask);
}
// size <= kMaxSize
constexpr uint64_t make_key(RecordType type, uint32_t size, uint64_t pc) {
  const int code = plain_code(type, size);
  return code < 0 ? other_key(type, size, pc) : pc * 8 + static_cast<uint64_t>(code);
}
constexpr RecordType key_type(uint64_t key) {
  return (key & kOtherKey) != 0 ? static_cast<RecordType>((key >> 48 & 31) | (key >> 47 & 1) << 5)
         : (key & 4) != 0       ? RecordType::kWrite
                                : RecordType::kRead;
}
constexpr uint32_t key_size(uint64_t key) {
  return (key & kOtherKey) != 0 ? static_cast<uint32_t>(key >> 53) & kMaxSize : 1U << (key & 3);
}
constexpr uint64_t key_pc(uint64_t key) {
  return (key & kOtherKey) != 0 ? key & kPcMask : key >> 3;
}
// Return addresses of two calls are at least 8 bytes apart.
constexpr uint32_t key_slot(uint64_t key) {
  const uint64_t pc = key_pc(key);
  const uint64_t mixed = (key & kOtherKey) != 0 ? pc + 0x248 * ((key >> 48) & 31) : pc;
  return static_cast<uint32_t>(mixed >> 3) % kSlots;
}

// What the cached address of a site is counted from.
enum class Base : uint32_t {
  kNone = 0,
  kRecent = 1,  // the last plain access (of 1, 2, 4 or 8 bytes) that was not cached from kNone
  kOther = 2,   // the last one of these before it at least kNearby bytes away from its successor
};
inline constexpr uint64_t kNearby = 4096;
struct Bases {
  uint64_t at[3] = {};  // at[0] stays 0

  uint64_t recent() const { return at[1]; }
  uint64_t other() const { return at[2]; }
  void move(uint64_t address) {
    if (address - at[1] + (kNearby - 1) > 2 * (kNearby - 1)) {
      at[2] = at[1];
    }
    at[1] = address;
  }
};

// The rules by which writer and reader expect addresses. An Entry has
//   address  that is cached, less the base
//   stride   with kNone; else the address in the last token
//   base     only plain accesses have one
// and Details, of the last token whose address was not cached,
//   delta            to the address before
//   behind, other    how far from the two bases
inline constexpr uint64_t kNoOffset = uint64_t{1} << 63;  // of no two addresses of a program

template <typename Entry>
uint64_t cached_address(const Entry& entry, const Bases& bases) {
  return entry.address + bases.at[static_cast<uint32_t>(entry.base)];
}
template <typename Entry>
uint64_t last_address(const Entry& entry) {
  return entry.base == Base::kNone ? entry.address - entry.stride : entry.stride;
}
// The address was as cached.
template <typename Entry>
void advance(Entry& entry, Bases& bases, uint64_t address) {
  if (entry.base != Base::kNone) {
    bases.move(address);
  } else if (entry.stride != 0) {
    entry.address += entry.stride;
  }
}
// It was not. `was_counted`: cached accesses came since the last token that named the site.
template <typename Entry, typename Details>
void learn(Entry& entry, Details& details, Bases& bases, uint64_t address, bool plain,
           bool was_counted) {
  const uint64_t delta = address - last_address(entry);
  const uint64_t behind = address - bases.recent();
  const uint64_t other = address - bases.other();
  if (delta == details.delta && !was_counted) {
    // A stride is believed when it comes twice.
    entry.base = Base::kNone;
    entry.stride = delta;
    entry.address = address + delta;
  } else if (plain && behind == details.behind) {
    entry.base = Base::kRecent;
    entry.stride = address;
    entry.address = behind;
  } else if (plain && other == details.other) {
    entry.base = Base::kOther;
    entry.stride = address;
    entry.address = other;
  } else if (entry.base == Base::kNone) {
    entry.address = address + entry.stride;
  } else {
    entry.stride = address;  // once more as before
  }
  details.delta = delta;
  details.behind = behind;
  details.other = other;
  if (plain) {
    bases.move(address);
  }
}

// First byte of a token: how far the cached accesses went, what comes, its address, extras.
enum class Run : uint8_t {
  kNone = 0,   // nothing cached since the token before
  kShort = 1,  // 16 bits: slot, count (4 bits)
  kLong = 2,   // 24 bits: slot, count
};
enum class Site : uint8_t {
  kCached = 0,   // the successor of the last one
  kKnown = 1,    // 16 bits: slot
  kNew = 2,      // 64 bits: key
  kControl = 3,  // no site: bits 4 to 7 are a Control
};
enum class Form : uint8_t {
  kCached = 0,  // the address that was cached
  kLast8 = 1,   // difference to the site's last address, signed
  kLast16 = 2,
  kLast32 = 3,
  kWhole = 4,     // 64 bits
  kBehind = 5,    // as far from Base::kRecent as in the last token
  kBehind16 = 6,  // difference to Base::kRecent
  kBehind32 = 7,
};
enum class Control : uint8_t {
  kNothing = 0,
  kStamp16 = 1,  // difference to the last stamp, not negative
  kStamp32 = 2,
  kStamp64 = 3,   // the stamp
  kBefore16 = 4,  // as above; it stands before the last cached access
  kBefore32 = 5,
  kBefore64 = 6,
  kLost = 7,  // 64 bits: how many
  // A fence from the last stamp to the next one, by the instruction of the last record.
  kDrain = 8,
};
inline constexpr uint32_t kSiteShift = 2;
inline constexpr uint32_t kFormShift = 4;
inline constexpr uint32_t kExtras = 0x80;

// Extras: a byte with the number of words (3 bits), flags and kTwoParts; if there are words, a byte
// with the width of each (2 bits: 0, 2, 4 or 8 bytes, a signed difference), then the words. A stamp
// is the difference to the last stamp; the first value to the site's last value, a second one to
// the first. With kTwoParts the one word is lo, and what follows is the second part: a byte with
// Ending and the number of values (from bit 3) and kInterrupted, a byte with the widths, hi (not if
// open) and the values. A payload that ends before it holds an unfinished operation.
// kShortPoint is all of that byte: one word, separating, and no byte of widths; 16 bits
// follow, by how much the stamp is later than the last one.
inline constexpr uint32_t kShortPoint = 64;
inline constexpr uint32_t kFlagSeparates = 8;
inline constexpr uint32_t kFlagOpen = 16;
inline constexpr uint32_t kTwoParts = 32;
enum class Ending : uint8_t {
  kDone = 0,
  kFailed = 1,   // a compare-exchange that wrote nothing
  kWasLoad = 2,  // it was no more than a load
  kOpen = 3,     // without hi
};
inline constexpr uint32_t kInterrupted = 32;  // not separating

// Of the first chunk of a signal handler: what the thread records next after it, but for a load of an
// atomic, it had not done, nor stamped, when the handler came. Said by a first token that says
// nothing else.
inline bool says_settled(std::string_view tokens) {
  constexpr uint32_t kSays = static_cast<uint32_t>(Site::kControl) << kSiteShift |
                             static_cast<uint32_t>(Control::kNothing) << kFormShift;
  return !tokens.empty() && static_cast<uint8_t>(tokens.front()) == kSays;
}

// No token is longer.
inline constexpr uint32_t kMaxToken = 3 + 1 + 8 + 8 + 2 + 8 * kMaxWords;

}  // namespace tsomon::capture
