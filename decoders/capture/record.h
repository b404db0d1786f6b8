// The record stream of one thread: what the probe writes into its buffers and captures store.
//
// Layout      A record is two 64-bit words, followed by `aux` more words:
//               word a: bits 0..47 address, bits 48..53 type, bits 54..63 aux
//               word b: bits 0..47 instruction pointer, bits 48..59 size, bits 60..63 flags
//             The instruction pointer is what __builtin_return_address(0) gives inside a compiler
//             hook: the address *after* the call that precedes the access. Look up pc - 1.
//             A stamp record keeps its 64-bit time stamp in word b.
// Stamps      Cycles of the time-stamp counter. A record with one stamp means the interval
//             [t, t], with two [lo, hi]; the record's own effect lies in that interval.
//             Accesses recorded before a record with stamps were performed (loads) or issued
//             (stores) at or before hi, accesses recorded after it at or after lo. With
//             kSeparates the writer promises more: before lo, and after hi. A point separates.
//             lo may be the last stamp of the record before it (a stamp is what costs time);
//             what was recorded in between is then only known to lie at or before hi.
//             Plain accesses have no stamps: they lie between the records with stamps around
//             them, and their value is not known.
// Values      Words after the stamps; exact. Left out together when they are not known or the
//             access is wider than 8 bytes.
// Extending   Add a type at the end of the list, raise kMinorVersion in format.h, describe it in
//             docs/formats.md. A reader skips a type it does not know with the help of aux and
//             reports the trace as incomplete; it ignores words beyond those that it knows.
//
// Header only, no dependencies: it is compiled into monitored programs. Thread-safety: pure.
#pragma once

#include <cstdint>

namespace tsomon::capture {

// In the comments: address; words after b. [hi] may be missing.
enum class RecordType : uint8_t {
  kInvalid = 0,                // zeroed memory is not a record
  kRead = 1,                   // plain load of `size` bytes
  kWrite = 2,                  // plain store
  kStamp = 3,                  // address 0; word b is the stamp
  kAtomicLoad = 4,             // lo, hi, [value]
  kAtomicStore = 5,            // a plain mov; lo, hi, [value]
  kAtomicReadModifyWrite = 6,  // locked; lo, hi, [value read, value written]
  kFailedCompareExchange = 7,  // locked, wrote nothing; lo, hi, [value read]
  kFence = 8,                  // address 0; lo, [hi]
  kAcquire = 9,                // the lock; lo, [hi]: stamp after the lock is held
  kRelease = 10,               // the lock; lo, [hi]: stamp before it is released; not a drain
  kAcquireShared = 11,         // as kAcquire, by a reader
  kReleaseShared = 12,         // as kRelease, by a reader
  kFork = 13,                  // number of the child thread; lo, [hi]: before it can run
  kThreadBegin = 14,           // address 0; lo, [hi]: first record of a thread
  kThreadEnd = 15,             // address 0; lo, [hi]: last record of a thread
  kJoin = 16,                  // number of the ended thread; lo, [hi]: after it has ended
  kUnitBegin = 17,             // id of the label; [lo], [hi]
  kUnitEnd = 18,               // address 0; [lo], [hi]
  kWait = 19,                  // the condition variable; [lo], [hi]. The mutex's release comes
                               // before it, its acquire after it, as records of their own.
  kRangeRead = 20,             // length in bytes (memcpy, strlen, ...); size 0
  kRangeWrite = 21,            // length in bytes (memcpy, memset, ...); size 0
  kLost = 22,                  // address 0; number of records that could not be stored here
};
inline constexpr int kRecordTypes = 23;

inline constexpr uint64_t kAddressMask = (uint64_t{1} << 48) - 1;
inline constexpr uint32_t kMaxAux = 1023;
inline constexpr uint32_t kMaxSize = 4095;  // of word b; longer accesses are ranges

// Flags of word b.
inline constexpr uint32_t kSeparates = 1;   // see Stamps above
inline constexpr uint32_t kUnfinished = 2;  // the process ended while the operation was under way:
                                            // hi and the values are not known (the words are 0),
                                            // and it may or may not have taken place
inline constexpr uint32_t kOpenEnd = 4;  // hi is not known (the word is 0): the next stamp of the
                                         // thread ends the interval, as that of a plain access

struct Words {
  uint64_t a = 0;
  uint64_t b = 0;
};

constexpr uint64_t make_a(RecordType type, uint64_t address, uint32_t aux = 0) {
  return (address & kAddressMask) | (static_cast<uint64_t>(type) << 48) |
         (static_cast<uint64_t>(aux) << 54);
}
constexpr uint64_t make_b(uint64_t pc, uint32_t size, uint32_t flags = 0) {
  return (pc & kAddressMask) | (static_cast<uint64_t>(size) << 48) |
         (static_cast<uint64_t>(flags) << 60);
}

constexpr RecordType type_of(uint64_t a) { return static_cast<RecordType>((a >> 48) & 63); }
constexpr uint32_t aux_of(uint64_t a) { return static_cast<uint32_t>(a >> 54); }
constexpr uint64_t address_of(uint64_t a) { return a & kAddressMask; }
constexpr uint64_t pc_of(uint64_t b) { return b & kAddressMask; }
constexpr uint32_t size_of(uint64_t b) { return static_cast<uint32_t>(b >> 48) & kMaxSize; }
constexpr uint32_t flags_of(uint64_t b) { return static_cast<uint32_t>(b >> 60); }

// The put_ functions store a record at `at` and return the place after it. The caller has checked
// that there is room: 2 words and those named.

// Two 8-byte stores. size <= kMaxSize.
constexpr uint64_t* put_access(uint64_t* at, RecordType read_or_write, uint64_t address,
                               uint32_t size, uint64_t pc) {
  at[0] = make_a(read_or_write, address);
  at[1] = make_b(pc, size);
  return at + 2;
}

constexpr uint64_t* put_stamp(uint64_t* at, uint64_t tsc) {
  at[0] = make_a(RecordType::kStamp, 0);
  at[1] = tsc;
  return at + 2;
}

// Any other record: the further words are stamps, then values or a length.
template <typename... Word>
constexpr uint64_t* put(uint64_t* at, RecordType type, uint64_t address, uint64_t pc, uint32_t size,
                        uint32_t flags, Word... words) {
  static_assert(sizeof...(words) <= kMaxAux);
  at[0] = make_a(type, address, static_cast<uint32_t>(sizeof...(words)));
  at[1] = make_b(pc, size, flags);
  at += 2;
  ((*at++ = static_cast<uint64_t>(words)), ...);
  return at;
}

}  // namespace tsomon::capture
