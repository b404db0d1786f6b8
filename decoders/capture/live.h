// A live capture, read while it is written.
//
// Purpose     A live capture (kFileLive) says again and again what each thread has recorded so far
//             and up to when all is there (kOpen, kRound in format.h). feed() takes its bytes as
//             they come; after every round each thread has new events and a time before which it
//             has none any more.
// Soundness   What is promised rests on the writer's observations: the probe's observer makes every
//             thread pass a barrier (membarrier(2)) between its time stamp and its look.
// Waiting     Accesses at the end of what a thread recorded may not have been performed yet. When
//             the thread stays silent for a quarter of a second, they are given with open
//             intervals.
// Clock       Events are given before it is known what later measurements of the processors'
//             counters say. So their intervals are wider than the first measurement asks for
//             (ClockMargin::allowed()); when a later one contradicts that, or the last one does
//             not show it, clock_moved() says so, and orders that were certain in what was given
//             may not be.
// Errors      feed() fails on what is not a live capture and on damage, and then takes nothing
//             more; what came before is delivered. Missing chunks, records dropped while recording
//             and a missing end are in problems().
// Laziness    Chunks stay packed until the events of their thread are asked for, so that a reader
//             that takes them in portions finds them in the cache.
// Memory      The chunks of one round and those not asked for; 300 KB for each thread, and for each
//             depth of signal handlers.
// Complexity  Linear, but that the unfinished chunk of a thread is decoded anew in each round.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decoders/capture/clock_entry.h"
#include "decoders/capture/reader.h"
#include "tso/model/trace.h"
#include "tso/support/result.h"

namespace tsomon::capture {

class LiveReader {
 public:
  // Of a small input that holds very many events the first ones are given, and the rest is a
  // problem.
  explicit LiveReader(uint64_t max_events = UINT64_MAX);
  LiveReader(const LiveReader&) = delete;
  LiveReader& operator=(const LiveReader&) = delete;
  ~LiveReader();

  Result<bool> feed(std::string_view bytes);
  // The input has ended. `measure`: of this machine's clock once more, for what the program's last measurement left open
  // (clock_margin.h, Live), with what is allowed for; nothing: it cannot be.
  using MeasureClock = std::function<std::optional<ClockEntry>(int64_t allowed)>;
  void finish(const MeasureClock& measure = {});

  // What is new since the last call, thread by thread in program order. `promise`: no later event
  // of the thread begins earlier. `ended`: there are no later ones.
  struct News {
    uint32_t thread = 0;
    EventBlock* events = nullptr;  // to be taken
    int64_t promise = kTimeMin;
    bool ended = false;
  };
  void take(const std::function<void(const News&)>& receive);
  // The same for one thread, and some `events` of them at most; then `promise` is no more than what
  // was given out allows. False: there was nothing new.
  bool take(uint32_t thread, size_t events, const std::function<void(const News&)>& receive);
  // Threads that there are, each named once; again where one goes on after its end.
  void new_threads(const std::function<void(uint32_t)>& receive);
  size_t backlog() const;  // bytes of chunks that were not looked into yet
  // Threads that had no news yet have no event that begins earlier.
  int64_t round() const;
  bool any_header() const;  // something was received

  const Symbols& symbols() const;
  const std::vector<Module>& modules() const;
  // Of what was read so far: as Capture::not_understood; what was given before counts.
  bool not_understood() const;
  // Other processes may write memory of this one: nothing is clean. One of the notes says why.
  bool has_other_writers() const;
  const std::vector<std::string>& problems() const;  // all of them after finish()
  const std::vector<std::string>& notes() const;     // as Capture::notes
  Selection selection() const;                       // known after the header
  bool may_cancel() const;                           // likewise: units (kFileCancels)
  uint64_t lost_events() const;
  bool clock_moved() const;  // a problem says by how much
  // Measurements so far that kept within what was allowed for, before one that contradicts it: what
  // was received before the last of them was ordered by a clock that could be trusted.
  uint64_t clock_checks() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tsomon::capture
