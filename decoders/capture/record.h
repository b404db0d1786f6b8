// A record: one thing that a thread did, as the probe sees it and captures store it (packed, see
// tokens.h).
//
// Instruction  What __builtin_return_address(0) gives inside a compiler hook: the address *after*
// pointer      the call that precedes the access. Look up pc - 1.
// Stamps      Cycles of the time-stamp counter. A record with one stamp means the interval
//             [t, t], with two [lo, hi]; the record's own effect lies in that interval.
//             Accesses recorded before a record with stamps were performed (loads) or issued
//             (stores) at or before hi, accesses recorded after it at or after lo. With
//             kSeparates the writer promises more: before lo, and after hi. A point separates.
//             lo may be the last stamp of the record before it (a stamp is what costs time);
//             what was recorded in between is then only known to lie at or before hi.
//             Plain accesses have no stamps: they lie between the records with stamps around
//             them, and their value is not known.
// Handlers    What a signal handler records stands after the last record that was begun when it
//             interrupted the thread. The access of that record may have come after the handler,
//             and that of the first record after the handler's before it; so may its stamp.
// Values      Words after the stamps; exact. Left out together when they are not known or the
//             access is wider than 8 bytes.
// Extending   Add a type at the end of the list, raise kMinorVersion in format.h, describe it in
//             docs/formats/capture.md. A reader skips a type it does not know and reports the trace
//             as incomplete; it ignores words beyond those that it knows.
//
// Header only, no dependencies: it is compiled into monitored programs. Thread-safety: pure.
#pragma once

#include <cstdint>

namespace tsomon::capture {

// In the comments: address; words. [hi] may be missing.
enum class RecordType : uint8_t {
  kInvalid = 0,
  kRead = 1,                   // plain load of `size` bytes
  kWrite = 2,                  // plain store
  kStamp = 3,                  // the stamp
  kAtomicLoad = 4,             // lo, hi, [value]
  kAtomicStore = 5,            // a plain mov; lo, hi, [value]
  kAtomicReadModifyWrite = 6,  // locked; lo, hi, [value read, value written]
  kFailedCompareExchange = 7,  // locked, wrote nothing; lo, hi, [value read]
  kFence = 8,                  // 0, or kSleepingFence; lo, [hi]
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
  kAllocate = 23,              // where the object begins; lo, hi, its size in bytes
  kFree = 24,                  // where the object begins; lo, [hi]: before it ends
  kUnitCancel = 25,            // as kUnitEnd: the unit is none (tso/model/cancelled_units.h)
  kTry = 26,                   // the lock, or condition variable, that the thread's next record of
                               // it does not block on; [lo], [hi]
  kNotify = 27,                // the condition variable; [lo], [hi]
  kSend = 28,                  // a descriptor; [lo], [hi]: before the call that hands it over, or
                               // hands over through it
  kReceive = 29,               // likewise; [lo], [hi]: after the call that takes it over
  kRequest = 30,               // the lock or semaphore that the thread is about to wait for; [lo],
                               // [hi]: before it sleeps
  kPost = 31,                  // the semaphore; lo, [hi]: its count grew by one in between
  kTake = 32,                  // the semaphore; lo, [hi]: its count shrank by one in between
  kCount = 33,                 // the semaphore; lo, hi, count: it has this count from here on
  kDestroy = 34,               // the lock, barrier or condition variable; lo, [hi]: before it ends
  kBlock = 35,                 // a block of memory that the program gets: where it begins; `size`
                               // bytes, or 0: see the words; none, lo, or lo, hi, bytes
  kBlockEnd = 36,              // memory that is given back, before that: as kBlock, bytes may be 0:
                               // the block that begins there
};
inline constexpr int kRecordTypes = 37;
// The thread sleeps next until something happens, not for a while.
inline constexpr uint64_t kSleepingFence = 1;

inline constexpr uint32_t kMaxWords = 4;
inline constexpr uint32_t kMaxSize = 1023;  // longer accesses are ranges

// Flags.
inline constexpr uint32_t kSeparates = 1;   // see Stamps above
inline constexpr uint32_t kUnfinished = 2;  // the process ended while the operation was under way:
                                            // hi and the values are not known (the words are 0),
                                            // and it may or may not have taken place
inline constexpr uint32_t kOpenEnd = 4;  // hi is not known (the word is 0): the next stamp of the
                                         // thread ends the interval, as that of a plain access

// The first two words are stamps; other records have none.
constexpr bool has_stamps(RecordType type) {
  return type != RecordType::kRead && type != RecordType::kWrite &&
         type != RecordType::kRangeRead && type != RecordType::kRangeWrite &&
         type != RecordType::kLost;
}

struct Record {
  RecordType type = RecordType::kInvalid;
  uint32_t size = 0;  // bytes
  uint32_t flags = 0;
  uint32_t count = 0;  // of words
  uint64_t address = 0;
  uint64_t pc = 0;  // 0: none
  uint64_t words[kMaxWords] = {};
};

}  // namespace tsomon::capture
