// Packs the records of one thread into the payload of a chunk (tokens.h).
//
// Cost        A cached access: some 20 instructions, no byte. Others: some 50 instructions and
//             typically 2 to 6 bytes.
// Memory      The table has 370 KB, of which the parts that are used are touched.
// Consistent  snapshot() gives a position up to which everything is readable at any time: in a
//             signal handler that interrupted any of these functions, and from another thread while
//             the owner goes on. Functions other than look_up_site() keep the position from before in
//             `before` while they change the rest.
// Few stores  A store of the program that waits for its cache line holds up all later ones. When
//             they fill the store buffer, the next load waits too, and the reordering that is
//             looked for disappears. So nothing is stored that did not change.
// Not thread-safe otherwise. No allocation, no lock, no system call.
//
// Header only, no dependencies, in one piece: it is compiled into monitored programs, and every hook inlines it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "decoders/capture/tokens.h"

namespace tsomon::capture {

// All zero: nothing is cached, and nothing can be recorded before start_chunk.
struct Encoder {
  static constexpr size_t kEntries = kSlots + 136;
  // Of a site; what a cached access needs lies in one cache line.
  struct Entry {
    uint64_t address;  // that is cached, and stride and base: learn() in tokens.h
    uint64_t stride;
    uint64_t next;   // key of the successor, masked; 0: none
    uint32_t count;  // kCountStep at the last token that named the site, and added each time
    Base base;
  };
  alignas(64) Entry entries[kEntries];

  uint32_t last;    // 8 * slot of the last record's site; what is cached is its successor
  uint32_t end;     // bytes of tokens
  uint64_t before;  // 0, or the position while the rest is being changed
  Bases bases;
  uint8_t* tokens;
  uint64_t stamp;     // the last one
  uint32_t capacity;  // of `tokens`
  bool pc_only;       // every access becomes a token
  // 0, or kFilterMask: look_up_site() then sees through nothing but a masked key, so that whoever calls
  // it can look at the access first.
  uint64_t filter_mask;

  // Not needed for cached accesses.
  uint64_t key[kEntries];
  struct Details {
    uint64_t delta;
    uint64_t behind;
    uint64_t other;
    uint64_t value;
  } details[kEntries];
};

// By which the keys of successors differ from those that their instructions have: no type, and no
// address of a program, has these bits.
inline constexpr uint64_t kFilterMask = uint64_t{31} << 48;

inline constexpr uint32_t kCountStep = 1U << 25;  // the 127th execution makes the count overflow

namespace encoding {

inline void barrier() { asm volatile("" : : : "memory"); }

template <typename T>
T& at(T* array, uint64_t offset) {
  return *reinterpret_cast<T*>(reinterpret_cast<char*>(array) + offset);
}
// By 8 * slot.
inline Encoder::Entry& entry(Encoder& e, uint64_t offset) {
  return at(e.entries, sizeof(Encoder::Entry) / 8 * offset);
}
inline Encoder::Details& details(Encoder& e, uint32_t offset) { return e.details[offset / 8]; }

inline uint32_t executions(uint32_t count) { return ((count >> 25) + kMaxCount) & kMaxCount; }

// Position and the highest bit in one word.
inline uint64_t pack(uint64_t end, uint64_t slot, uint64_t count) {
  return uint64_t{1} << 63 | count << 48 | slot << 32 | end;
}
inline Position unpack(uint64_t packed) {
  return {static_cast<uint32_t>(packed), static_cast<uint32_t>(packed >> 32) & 0xFFFF,
          static_cast<uint32_t>(packed >> 48) & kMaxCount};
}

// Brackets a change.
class Change {
 public:
  explicit Change(Encoder& e) : e_(e) {
    e.before = pack(e.end, e.last / 8, executions(entry(e, e.last).count));
    barrier();
  }
  ~Change() {
    barrier();
    e_.before = 0;
  }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  Encoder& e_;
};

template <typename T>
void update(T& place, T value) {
  if (place != value) {
    place = value;
  }
}

// Not memset: in a monitored program that may be recorded itself.
inline void clear(uint64_t* words, size_t count) {
  asm volatile("rep stosq" : "+D"(words), "+c"(count) : "a"(0) : "memory");
}

template <typename T>
uint8_t* put(uint8_t* to, T value) {
  std::memcpy(to, &value, sizeof value);
  return to + sizeof value;
}

// The run before a token that begins at `first`; its bits go into `head`.
inline __attribute__((always_inline)) uint8_t* put_run(Encoder& e, uint8_t* first, uint32_t* head) {
  uint32_t& count = entry(e, e.last).count;
  const uint32_t executed = executions(count);
  *head = 0;
  if (executed == 0) {
    return first + 1;
  }
  count = kCountStep;
  const uint32_t word = (e.last / 8) | (executed << 12);
  *head = static_cast<uint32_t>(executed < 16 ? Run::kShort : Run::kLong);
  std::memcpy(first + 1, &word, 4);
  return first + (executed < 16 ? 3 : 4);
}

template <typename T>
bool fits(uint64_t difference) {
  return static_cast<uint64_t>(static_cast<int64_t>(static_cast<T>(difference))) == difference;
}

// The site and the address of a token whose site or address was not cached; returns the bits of
// its first byte.
inline uint32_t put_miss(Encoder& e, uint32_t slot, uint64_t key, uint64_t address,
                         bool was_counted, uint8_t** place) {
  uint8_t* to = *place;
  uint64_t& successor = entry(e, e.last).next;
  const bool known = at(e.key, slot) == key;
  Encoder::Entry& mine = entry(e, slot);
  Encoder::Details& more = details(e, slot);
  Site site = Site::kCached;
  if (successor != (key ^ e.filter_mask)) {
    if (known) {
      site = Site::kKnown;
      to = put(to, static_cast<uint16_t>(slot / 8));
    } else {
      site = Site::kNew;
      to = put(to, key);
    }
    if (!e.pc_only) {
      successor = key ^ e.filter_mask;
    }
  }
  if (!known) {
    at(e.key, slot) = key;
    mine.address = 0;
    mine.stride = 0;
    mine.next = 0;
    mine.base = Base::kNone;
    more.delta = 0;
    more.behind = kNoOffset;
    more.other = kNoOffset;
    more.value = 0;
  }
  Form form = Form::kCached;
  if (cached_address(mine, e.bases) == address) {
    advance(mine, e.bases, address);
  } else {
    const uint64_t delta = address - last_address(mine);
    const uint64_t behind = address - e.bases.recent();
    if (behind == more.behind) {
      form = Form::kBehind;
    } else if (fits<int8_t>(delta)) {
      form = Form::kLast8;
      to = put(to, static_cast<uint8_t>(delta));
    } else if (fits<int16_t>(delta)) {
      form = Form::kLast16;
      to = put(to, static_cast<uint16_t>(delta));
    } else if (fits<int16_t>(behind)) {
      form = Form::kBehind16;
      to = put(to, static_cast<uint16_t>(behind));
    } else if (fits<int32_t>(delta)) {
      form = Form::kLast32;
      to = put(to, static_cast<uint32_t>(delta));
    } else if (fits<int32_t>(behind)) {
      form = Form::kBehind32;
      to = put(to, static_cast<uint32_t>(behind));
    } else {
      form = Form::kWhole;
      to = put(to, address);
    }
    learn(mine, more, e.bases, address, (key & kOtherKey) == 0, was_counted);
  }
  *place = to;
  return (static_cast<uint32_t>(site) << kSiteShift) | (static_cast<uint32_t>(form) << kFormShift);
}

// The run, the site and the address of a token; the site becomes the last one. `head`: bits of the
// first byte.
inline __attribute__((always_inline)) uint8_t* put_site(Encoder& e, uint64_t key, uint64_t address,
                                                        uint32_t head) {
  const uint32_t slot = 8 * key_slot(key);
  Encoder::Entry& mine = entry(e, slot);
  const bool was_counted = executions(mine.count) != 0;
  uint8_t* const first = e.tokens + e.end;
  uint32_t run = 0;
  uint8_t* to = put_run(e, first, &run);
  if (__builtin_expect((entry(e, e.last).next ^ e.filter_mask) == key &&
                           cached_address(mine, e.bases) == address && at(e.key, slot) == key,
                       1)) {
    advance(mine, e.bases, address);
  } else {
    head |= put_miss(e, slot, key, address, was_counted, &to);
  }
  update(mine.count, kCountStep);
  update(e.last, slot);
  *first = static_cast<uint8_t>(head | run);
  return to;
}

// One word as a difference; its width goes into `widths`.
inline uint8_t* put_word(uint8_t* to, uint64_t difference, uint32_t index, uint32_t* widths) {
  std::memcpy(to, &difference, 8);
  const uint32_t width = difference == 0             ? 0
                         : fits<int16_t>(difference) ? 1
                         : fits<int32_t>(difference) ? 2
                                                     : 3;
  *widths |= width << (2 * index);
  return to + (width == 0 ? 0 : 1U << width);
}

inline uint8_t* put_control(Encoder& e, Control control) {
  uint8_t* const first = e.tokens + e.end;
  uint32_t run = 0;
  uint8_t* const to = put_run(e, first, &run);
  *first = static_cast<uint8_t>(run | (static_cast<uint32_t>(Site::kControl) << kSiteShift) |
                                (static_cast<uint32_t>(control) << kFormShift));
  return to;
}

inline uint8_t* put_stamp_control(Encoder& e, Control control16, uint64_t stamp) {
  const uint64_t delta = stamp - e.stamp;
  const uint32_t size = delta < 0x10000 ? 0 : delta < 0x100000000 ? 1 : 2;
  uint8_t* const to = put_control(e, static_cast<Control>(static_cast<uint32_t>(control16) + size));
  const uint64_t word = size == 2 ? stamp : delta;
  std::memcpy(to, &word, 8);
  e.stamp = stamp;
  return to + (2U << size);
}

inline void publish(Encoder& e, const uint8_t* to) { e.end = static_cast<uint32_t>(to - e.tokens); }

}  // namespace encoding

// Begins a chunk with an empty table in `tokens`, which has kMaxToken bytes more than `capacity`.
// Not to be interrupted.
inline void start_chunk(Encoder& e, uint8_t* tokens, uint32_t capacity) {
  e.last = 8 * kNoSlot;
  e.end = 0;
  e.before = 0;
  e.bases = {};
  e.tokens = tokens;
  e.capacity = capacity;
  e.stamp = 0;
  encoding::clear(e.key, sizeof e.key / 8);
  e.entries[kNoSlot].address = 0;
  e.entries[kNoSlot].stride = 0;
  e.entries[kNoSlot].next = 0;
  e.entries[kNoSlot].count = kCountStep;
  e.entries[kNoSlot].base = Base::kNone;
}

// Whether so many more tokens fit.
inline bool has_room(const Encoder& e, uint32_t tokens = 2) {
  return e.end + tokens * kMaxToken <= e.capacity;
}

enum class SiteCache : uint8_t {
  kMiss,     // record it with put_access
  kHit,      // recorded
  kExpired,  // recorded; put_nothing or put_stamp_before is now due
};

// A plain access, if it is cached. `key`: make_key of it, with the encoder's filter_mask; `slot`:
// key_slot of it, without, times 8.
inline __attribute__((always_inline)) SiteCache look_up_site(Encoder& e, uint64_t address,
                                                             uint64_t key, uint64_t slot) {
  using encoding::entry;
  Encoder::Entry& mine = entry(e, slot);
  if (__builtin_expect(entry(e, e.last).next != key, 0) ||
      __builtin_expect(cached_address(mine, e.bases) != address, 0)) {
    return SiteCache::kMiss;
  }
  if (mine.base == Base::kNone) {
    mine.address = address + mine.stride;
  } else {
    e.bases.move(address);
  }
  // The position follows from both: the count first.
  asm goto(
      "addl %[step], %[count]\n\t"
      "movl %k[slot], %[last]\n\t"
      "jc %l[expired]"
      :
      : [count] "m"(mine.count), [last] "m"(e.last), [slot] "r"(slot), [step] "i"(kCountStep)
      : "memory", "cc"
      : expired);
  return SiteCache::kHit;
expired:
  return SiteCache::kExpired;
}

inline __attribute__((always_inline)) void put_access(Encoder& e, uint64_t address, uint64_t key) {
  const encoding::Change change(e);
  encoding::publish(e, encoding::put_site(e, key, address, 0));
}

// tsc must not be less than the last stamp of the chunk.
inline void put_stamp(Encoder& e, uint64_t tsc) {
  const encoding::Change change(e);
  encoding::publish(e, encoding::put_stamp_control(e, Control::kStamp16, tsc));
}

// A stamp that was taken after the last access was recorded and before it took place. There is one,
// and it was cached.
inline void put_stamp_before(Encoder& e, uint64_t tsc) {
  const encoding::Change change(e);
  encoding::publish(e, encoding::put_stamp_control(e, Control::kBefore16, tsc));
}

// Whether accesses were cached since the last token: put_nothing must end the chunk then.
inline bool has_run(const Encoder& e) {
  return encoding::executions(e.entries[e.last / 8].count) != 0;
}

// Says where the cached accesses end.
inline void put_nothing(Encoder& e) {
  const encoding::Change change(e);
  encoding::publish(e, encoding::put_control(e, Control::kNothing));
}

// Whether an access may come next that was cached.
inline bool expects_access(const Encoder& e) {
  const uint64_t next = e.entries[e.last / 8].next;
  return next != 0 && (next & kOtherKey) == 0;
}

// The next access is for put_access, wherever it is; its site will be named.
inline void expect_nothing(Encoder& e) { encoding::entry(e, e.last).next = 0; }

inline void put_lost(Encoder& e, uint64_t count) {
  const encoding::Change change(e);
  encoding::publish(e, encoding::put(encoding::put_control(e, Control::kLost), count));
}

// A record without stamps and words: not of a plain access.
inline __attribute__((always_inline)) void put_bare(Encoder& e, RecordType type, uint64_t address,
                                                    uint64_t pc, uint32_t size = 0) {
  const encoding::Change change(e);
  uint8_t* const to = encoding::put_site(e, other_key(type, size, pc), address, kExtras);
  *to = 0;
  encoding::publish(e, to + 1);
}

// A record with one stamp, which separates.
inline __attribute__((always_inline)) void put_point(Encoder& e, RecordType type, uint64_t address,
                                                     uint64_t pc, uint64_t tsc) {
  using namespace encoding;
  const Change change(e);
  uint8_t* const to = put_site(e, other_key(type, 0, pc), address, kExtras);
  const uint64_t later = tsc - e.stamp;
  e.stamp = tsc;
  if (__builtin_expect(later < 0x10000, 1)) {
    const uint32_t both = kShortPoint | static_cast<uint32_t>(later << 8);
    std::memcpy(to, &both, sizeof both);
    return publish(e, to + 3);
  }
  uint32_t widths = 0;
  uint8_t* const end = put_word(to + 2, later, 0, &widths);
  put(to, static_cast<uint16_t>(1 | kFlagSeparates | (widths << 8)));
  publish(e, end);
}

// A fence from the last stamp, which the record before has, to the next one; at the place of that
// record. Nothing was recorded since.
inline void put_drain(Encoder& e) {
  const encoding::Change change(e);
  encoding::publish(e, encoding::put_control(e, Control::kDrain));
}

// A load or store by a mov with its value, from the last stamp to the next one.
inline __attribute__((always_inline)) void put_open(Encoder& e, uint64_t key, uint64_t address,
                                                    uint64_t value) {
  using namespace encoding;
  const Change change(e);
  uint8_t* const to = put_site(e, key, address, kExtras);
  uint32_t widths = 0;
  uint64_t& last_value = details(e, e.last).value;
  uint8_t* const end = put_word(to + 2, value - last_value, 2, &widths);
  put(to, static_cast<uint16_t>(3 | kFlagSeparates | kFlagOpen | (widths << 8)));
  update(last_value, value);
  publish(e, end);
}

// The same tokens in as few stores as can be ("Few stores" above), where little is new. False: nothing was done.
namespace encoding {

// A token of at most eight bytes, and the run before it: one store.
inline __attribute__((always_inline)) void put_short(Encoder& e, uint32_t head, uint64_t rest,
                                                     uint32_t size) {
  Encoder::Entry& previous = entry(e, e.last);
  const uint32_t executed = executions(previous.count);
  const uint32_t run = executed == 0 ? 0 : executed < 16 ? 2 : 3;  // bytes
  const Run form = executed == 0 ? Run::kNone : executed < 16 ? Run::kShort : Run::kLong;
  const uint64_t counted = executed == 0 ? 0 : (e.last / 8) | (executed << 12);
  const uint64_t token = head | static_cast<uint32_t>(form) | counted << 8 | rest << (8 + 8 * run);
  std::memcpy(e.tokens + e.end, &token, sizeof token);
  update(previous.count, kCountStep);
  e.end += 1 + run + size;
}

// The site and its address are cached, so a token does not name them.
inline __attribute__((always_inline)) bool is_cached(Encoder& e, uint32_t slot, uint64_t key,
                                                     uint64_t address) {
  return (entry(e, e.last).next ^ e.filter_mask) == key &&
         cached_address(entry(e, slot), e.bases) == address && at(e.key, slot) == key;
}

inline __attribute__((always_inline)) void go_to(Encoder& e, uint32_t slot, uint64_t address) {
  Encoder::Entry& mine = entry(e, slot);
  advance(mine, e.bases, address);
  update(mine.count, kCountStep);
  update(e.last, slot);
}

}  // namespace encoding

// put_open() with a value near the last one.
inline __attribute__((always_inline)) bool put_open_cached(Encoder& e, uint64_t key,
                                                           uint64_t address, uint64_t value) {
  using namespace encoding;
  const uint32_t slot = 8 * key_slot(key);
  uint64_t& last_value = details(e, slot).value;
  const uint64_t difference = value - last_value;
  if (!is_cached(e, slot, key, address) || !fits<int16_t>(difference)) {
    return false;
  }
  const uint64_t width = difference == 0 ? 0 : 1;
  const uint64_t flags = 3 | kFlagSeparates | kFlagOpen | width << (8 + 2 * 2);
  const Change change(e);
  put_short(e, kExtras, flags | (difference & 0xFFFF) << 16, 2 + 2 * static_cast<uint32_t>(width));
  go_to(e, slot, address);
  update(last_value, value);
  return true;
}

// put_bare().
inline __attribute__((always_inline)) bool put_bare_cached(Encoder& e, RecordType type,
                                                           uint64_t address, uint64_t pc,
                                                           uint32_t size = 0) {
  using namespace encoding;
  const uint64_t key = other_key(type, size, pc);
  const uint32_t slot = 8 * key_slot(key);
  if (!is_cached(e, slot, key, address)) {
    return false;
  }
  const Change change(e);
  put_short(e, kExtras, 0, 1);
  go_to(e, slot, address);
  return true;
}

// put_stamp() soon after the last one.
inline __attribute__((always_inline)) bool put_stamp_soon(Encoder& e, uint64_t tsc) {
  using namespace encoding;
  const uint64_t delta = tsc - e.stamp;
  if (delta >= 0x10000) {
    return false;
  }
  const Change change(e);
  put_short(e,
            (static_cast<uint32_t>(Site::kControl) << kSiteShift) |
                (static_cast<uint32_t>(Control::kStamp16) << kFormShift),
            delta, 2);
  e.stamp = tsc;
  return true;
}

// Whether the token from there to the end is one of put_open of which everything was cached: the
// same instruction, address and value as the token before it had. Then all further ones that
// follow at once are the same bytes, with stamps between or not, and whatever was recorded before.
inline constexpr uint32_t kCachedOpen = 3;  // its size
inline uint8_t* put_cached_open(uint8_t* to) {
  constexpr uint16_t kFlags = 3 | kFlagSeparates | kFlagOpen;
  *to = kExtras;
  return encoding::put(to + 1, kFlags);
}
inline bool is_cached_open(const Encoder& e, uint32_t begin) {
  uint8_t token[kCachedOpen];
  put_cached_open(token);
  return e.end == begin + kCachedOpen && std::memcmp(e.tokens + begin, token, sizeof token) == 0;
}
// A stamp, whatever the last one was.
inline uint8_t* put_whole_stamp(uint8_t* to, uint64_t stamp) {
  *to = static_cast<uint8_t>((static_cast<uint32_t>(Site::kControl) << kSiteShift) |
                             (static_cast<uint32_t>(Control::kStamp64) << kFormShift));
  return encoding::put(to + 1, stamp);
}

// A fence from a stamp that was recorded to the next one.
inline __attribute__((always_inline)) void put_open_fence(Encoder& e, uint64_t pc, uint64_t since) {
  using namespace encoding;
  const Change change(e);
  uint8_t* const to = put_site(e, other_key(RecordType::kFence, 0, pc), 0, kExtras);
  uint32_t widths = 0;
  uint8_t* const end = put_word(to + 2, since - e.stamp, 0, &widths);
  put(to, static_cast<uint16_t>(2 | kFlagSeparates | kFlagOpen | (widths << 8)));
  update(e.stamp, since);
  publish(e, end);
}

// Any other record. Its first two words are stamps if has_stamps(type).
inline void put_record(Encoder& e, const Record& record) {
  using namespace encoding;
  const Change change(e);
  uint8_t* to =
      put_site(e, other_key(record.type, record.size, record.pc), record.address, kExtras);
  const bool open = (record.flags & kOpenEnd) != 0;
  *to++ =
      static_cast<uint8_t>(record.count | ((record.flags & kSeparates) != 0 ? kFlagSeparates : 0) |
                           (open ? kFlagOpen : 0));
  if (record.count != 0) {
    uint8_t* const width_byte = to++;
    uint32_t widths = 0;
    uint64_t& value = details(e, e.last).value;
    for (uint32_t i = 0; i < record.count; ++i) {
      const uint64_t word = record.words[i];
      if (has_stamps(record.type) && i < 2) {
        const bool missing = open && i == 1;
        to = put_word(to, missing ? 0 : word - e.stamp, i, &widths);
        e.stamp = missing ? e.stamp : word;
      } else {
        to = put_word(to, word - value, i, &widths);
        value = word;
      }
    }
    *width_byte = static_cast<uint8_t>(widths);
  }
  publish(e, to);
}

// A record around an operation: before it with the stamp lo, then after it with the rest.
inline void begin_record(Encoder& e, RecordType type, uint64_t address, uint32_t size, uint64_t pc,
                         uint64_t lo) {
  using namespace encoding;
  const Change change(e);
  uint8_t* const to = put_site(e, other_key(type, size, pc), address, kExtras);
  uint32_t widths = 0;
  uint8_t* const end = put_word(to + 2, lo - e.stamp, 0, &widths);
  put(to, static_cast<uint16_t>(1 | kTwoParts | (widths << 8)));
  update(e.stamp, lo);
  publish(e, end);
}
// No other record may come between. hi is ignored with Ending::kOpen. values: at most 2.
inline void end_record(Encoder& e, Ending ending, bool separates, uint64_t hi, uint32_t values,
                       uint64_t first_value, uint64_t second_value) {
  using namespace encoding;
  const Change change(e);
  uint8_t* to = e.tokens + e.end;
  *to++ = static_cast<uint8_t>(static_cast<uint32_t>(ending) | (values << 3) |
                               (separates ? 0 : kInterrupted));
  uint8_t* const width_byte = to++;
  uint32_t widths = 0;
  if (ending != Ending::kOpen) {
    to = put_word(to, hi - e.stamp, 0, &widths);
    e.stamp = hi;
  }
  if (values != 0) {
    uint64_t& value = details(e, e.last).value;
    to = put_word(to, first_value - value, 1, &widths);
    value = first_value;
    if (values == 2) {
      to = put_word(to, second_value - first_value, 2, &widths);
      value = second_value;
    }
  }
  *width_byte = static_cast<uint8_t>(widths);
  publish(e, to);
}

// The position after everything that is recorded. False: the owner, another thread, never rested.
inline bool snapshot(const Encoder& encoder, Position* position) {
  const volatile Encoder& e = encoder;
  for (int tries = 0; tries < 1000000; ++tries) {
    const uint64_t before = e.before;
    if (before != 0) {
      *position = encoding::unpack(before);
      if (e.before == before) {
        return true;
      }
      continue;
    }
    const uint32_t end = e.end;
    const uint32_t last = e.last;
    const uint32_t count = e.entries[last / 8].count;
    *position = {end, last / 8, encoding::executions(count)};
    if (e.last == last && e.entries[last / 8].count == count && e.before == 0 && e.end == end) {
      return true;
    }
  }
  return false;
}

// The token that ends a payload at a position whose count is not 0; returns its size, at most 4.
inline uint32_t put_end(uint8_t* to, const Position& position) {
  const uint32_t word = position.slot | (position.count << 12);
  to[0] = static_cast<uint8_t>(static_cast<uint32_t>(Run::kLong) |
                               (static_cast<uint32_t>(Site::kControl) << kSiteShift));
  std::memcpy(to + 1, &word, 3);
  return 4;
}

}  // namespace tsomon::capture
