// Inputs of any length as blocks of events in the order of `lo`: text traces and captures, from
// files, pipes and standard input.
//
// Contract    next() until it gives false. Indices of events count the events in the order in which
//             they are given out; for captures that is the order of load_trace(), for text traces
//             that of the lines unless their intervals say otherwise.
// Text        Lines that carry intervals may be out of the order of `lo`: up to kReorder events
//             are held back and sorted, each thread staying in program order (an event that begins
//             before its predecessor is taken to begin with it). An event that comes later than
//             that is late: the detector counts it. From a pipe without any intervals everything
//             is given out as soon as the writer pauses.
// Captures    Of a regular file one chunk for each thread is unpacked at a time. A capture in a
// pipe
//             is read whole, packed, first.
// Memory      Bounded by the threads and the names, not by the length; see Captures for pipes.
// Errors      As load_trace(). The events before a malformed line have been given out.
// Thread-safety: none; distinct sources are independent.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "decoders/capture/reader.h"
#include "monitor/load.h"
#include "tso/result.h"
#include "tso/trace.h"

namespace tsomon {

class EventSource {
 public:
  static constexpr size_t kReorder = 4096;

  // `path` "-" is standard input.
  static Result<std::unique_ptr<EventSource>> open(const std::string& path,
                                                   InputFormat format = InputFormat::kAuto);
  EventSource() = default;
  EventSource(const EventSource&) = delete;
  EventSource& operator=(const EventSource&) = delete;
  virtual ~EventSource() = default;

  // Replaces the contents of `block`; false at the end.
  virtual Result<bool> next(EventBlock& block) = 0;

  // Grow while reading. Source locations of captures are instruction pointers.
  virtual const Symbols& symbols() const = 0;
  virtual const std::vector<capture::Module>& modules() const = 0;
  // What is missing or damaged, one line each; complete at the end.
  virtual std::vector<std::string> warnings() const = 0;
  virtual bool complete() const = 0;
  virtual uint64_t lost_events() const = 0;
  const std::string& input() const { return input_; }

 protected:
  std::string input_;
};

}  // namespace tsomon
