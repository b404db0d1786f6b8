// How far the time-stamp counters of this machine's processors may differ, measured.
//
// Source      Theory: a message that is sent at stamp r on processor p and read at stamp s on q
//             proves that q's counter is ahead of p's by s - r at most. The method is that of NTP's
//             clock filter (Mills 1991), and of Ordo (Kashyap et al., EuroSys 2018), but that no
//             delay is assumed: the intersection of what all messages allow is the answer.
// Method      Two threads are pinned to a pair of processors and send one another their counters
//             through a cache line of its own for each direction. The first processor is one of
//             every pair (a star: N - 1 pairs). Each pair gives [low, high], which the offset of
//             the other processor's counter lies in.
// Margin      The largest distance of two counters that this allows: of the first processor and
//             another one max(-low, high), of two others high of one - low of the other. With one
//             processor 0. So there is a time common to all processors such that a stamp taken at
//             time t is a number from t to t + margin; of two events e happened before f for
//             certain when stamp(e) + margin < stamp(f).
// Trust       No margin where the offsets of a pair contradict each other (low > high), where a
//             processor cannot be pinned to, or where too few messages came through in time. What
//             LFENCE has to promise for this is in clock.h.
// Processors  All that this process may be pinned to, whatever the affinity of its threads is now:
//             they may change it at any time.
// Waiting     Messages go in bursts, before which both threads sleep. Who hears nothing for some 50
//             microseconds ends the burst and sleeps; each further burst waits twice as long, up to
//             some milliseconds, so that both run at once some time where all processors are busy.
//             Where the kernel allows it (real-time priority) both run at once from the start.
// Cost        Some 0.2 ms of two processors for each processor but the first (kExchanges), more
//             only where bursts are interrupted; then what was seen within `patience` counts.
//             Memory: 24 bytes a processor.
// Misses      Counters that change between two measurements and back.
// Thread-safety: one measurement at a time. No allocation, no C++ library at run time: it lives in
// monitored programs, and in tsomon itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <pthread.h>

#include "decoders/capture/clock_entry.h"

namespace tsomon::probe {

inline constexpr uint64_t kNoMargin = capture::kNoMargin;

struct ClockMeasurement {
  uint64_t since = 0;  // stamps at its beginning and end
  uint64_t until = 0;
  uint64_t margin = kNoMargin;    // cycles
  uint64_t early = 0;             // by which a message was read before it was sent, at most
  const char* problem = nullptr;  // why there is no margin
  bool is_contradiction = false;  // no margin holds; else it is only not known
  uint32_t processor = 0;         // the one with the problem
  uint32_t processors = 0;
  uint32_t exchanges = 0;  // of the pair with the fewest
};

// As captures have it, but for what stamps have shown.
inline capture::ClockEntry entry_of(const ClockMeasurement& measurement) {
  capture::ClockEntry entry;
  entry.since = measurement.since;
  entry.until = measurement.until;
  entry.margin = measurement.margin;
  entry.early = measurement.early;
  entry.processors = measurement.processors;
  entry.exchanges = measurement.exchanges;
  return entry;
}

class ClockMeter {
 public:
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  using Stamp = uint64_t (*)();

  // The counter of a processor relative to that of the first: within [low, high].
  struct Offset {
    uint32_t processor = 0;
    uint32_t exchanges = 0;
    int64_t low = 0;
    int64_t high = 0;
  };
  static constexpr uint32_t kMaxProcessors = 1024;
  static constexpr uint32_t kExchanges = 128;

  ClockMeter() = default;
  ClockMeter(const ClockMeter&) = delete;
  ClockMeter& operator=(const ClockMeter&) = delete;

  // Starts the second thread, which runs `begin` first and sleeps between measurements. Signals
  // are blocked on it. 0 or an errno value.
  int start(Create create, Stamp stamp, void (*begin)());
  // Ends it. Without this the meter must live for ever.
  void stop();
  bool started() const { return started_; }
  // After fork: the thread is gone.
  void forget_thread() { started_ = false; }

  // On the thread that calls, which is moved from processor to processor and back. A pair is asked
  // for longer, up to `patience` nanoseconds (all together up to four times that), while its margin
  // is above `wanted`.
  ClockMeasurement measure(uint64_t wanted, uint64_t patience);

  // As measure(), again after pauses, for up to half of `patience`, while the margin is above
  // `allowed` only because messages take long, which may pass. The narrowest of them; one that
  // contradicts itself, if any.
  ClockMeasurement confirm(uint64_t wanted, uint64_t allowed, uint64_t patience);

  // Of the last measurement; the first is the one that all are relative to.
  const Offset* offsets() const { return offsets_; }
  uint32_t processors() const { return processors_; }

  // The margin of these offsets, the first of which is of the processor of reference; kNoMargin: an
  // offset is contradictory.
  static uint64_t margin_of(const Offset* offsets, uint32_t count);

 private:
  struct Line {
    alignas(64) std::atomic<uint64_t> word{0};
  };

  static void* thread_main(void* meter);
  void serve();
  void answer_burst();
  bool burst(Offset* offset, uint64_t wanted, uint64_t until);
  const char* measure_pair(Offset* offset, uint64_t wanted, uint64_t patience);
  void wake();

  Create create_ = nullptr;
  Stamp stamp_ = nullptr;
  void (*begin_)() = nullptr;
  bool started_ = false;
  pthread_t thread_{};
  uint32_t processors_ = 0;
  Offset offsets_[kMaxProcessors];

  Line ping_;  // the last stamp sent to the second thread
  Line pong_;  // ... and back
  // Futex words: counts of bursts that are asked for, that the second thread is ready for, and that
  // it has ended.
  alignas(64) std::atomic<uint32_t> request_{0};
  std::atomic<uint32_t> ready_{0};
  std::atomic<uint32_t> answer_{0};
  bool ends_ = false;
  // Of the burst in hand; the last two are written by the second thread before `ready_`, `answer_`.
  uint32_t processor_ = 0;
  uint32_t looks_ = 0;
  bool pinned_ = false;
  int64_t high_ = 0;
};

}  // namespace tsomon::probe
