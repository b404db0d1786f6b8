// Generator of text traces with chosen properties, for measurements and tests.
//
// Purpose     Traces of any length whose verdict is known beforehand. Threads are interleaved event
//             by event at random; a thread that wants a lock that is taken waits.
// Units       A unit makes accesses to locations of its thread alone and, in one critical section
//             in between, to shared ones. Every shared location belongs to one lock. Some units
//             hold two locks, all taken before any is given back (two-phase locking), always in the
//             same order.
// Clean       Without `violations` and `buffered` the trace is serializable, SC-serializable and
//             robust, with and without a long unit: a shared location is accessed under its
//             lock only, and every unit is two-phase.
// Violations  A violating unit reads a location, gives the lock back, and writes the location in a
//             second critical section after another unit has written it: a lost update, definite
//             under every relation. One waits for its intruder at a time, so very large shares are
//             reached late or, with units that are short of threads, not quite. With `cancelled`
//             some or all of them are cancelled in the end and so violate nothing.
// Buffered    Stores and loads of a few locations without any lock: what they order is mostly open.
// Waits       A share of the units waits for a condition before its first critical section,
//             which splits it: what violates lies in the part that follows.
// Long unit   The first thread opens a unit that it leaves only at the end. With `shared` it first
//             writes one location under every lock, before any other unit begins: every other
//             unit comes after it, directly or not, and it after none.
// Same seed   The same options give the same text, on every machine, in one version of this file.
// Complexity  O(1) an event while most threads are not waiting; memory O(threads + locks).
// Misses      Byte ranges, intervals, values, reader locks, nested units and atomic sets.
// Thread-safety: one generator, one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tso/support/result.h"

namespace tsomon {

enum class LongUnit : uint8_t { kNone, kPrivate, kShared };

// Shares are from 0 to 1.
struct StdGeneratorOptions {
  uint64_t events = 1'000'000;  // lines of the trace, headers and comments not counted
  uint32_t threads = 8;
  uint32_t locations = 10'000;  // shared ones; each thread has 16 of its own, too
  uint32_t locks = 64;
  uint32_t unit_length = 10;  // accesses of a unit, on average
  double locked = 0.5;        // share of the accesses that are shared and under a lock
  double violations = 0;      // share of the units that violate
  double cancelled = 0;       // share of the violating units that are cancelled
  double rmw = 0;             // share of the accesses that are locked read-modify-writes
  double fences = 0.01;       // share of fences
  double buffered = 0;        // share of racing accesses among those that are not under a lock
  double waits = 0;           // share of the units with a condition wait
  LongUnit long_unit = LongUnit::kNone;
  uint64_t seed = 1;
};

class StdGenerator {
 public:
  // kUsage when the options contradict each other; the message says what is possible.
  static Result<StdGenerator> create(const StdGeneratorOptions& options);
  StdGenerator(StdGenerator&&) noexcept;
  StdGenerator& operator=(StdGenerator&&) noexcept;
  ~StdGenerator();

  // Replaces `text` by the next part of the trace, whole lines; false: there is no more.
  bool next(std::string& text);

  uint64_t units() const;  // begun so far
  // Of these, those whose second critical section has begun and that were not cancelled.
  uint64_t violating() const;

 private:
  class Impl;
  explicit StdGenerator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tsomon
