// Where the events of a stream stood in the input, before they were put in the order of their time.
//
// Purpose     Reports count the lines of the input; and an analysis of the whole takes the events as they were given.
// Complexity  O(1) for an event, in memory only for what was moved (monitor/events/event_lines.h).
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "monitor/events/event_lines.h"
#include "monitor/events/event_source.h"
#include "tso/model/trace.h"
#include "tso/support/result.h"

namespace tsomon {

class InputOrder {
 public:
  // What was done to the events from `first` on. `keep_times`: restore() may be asked for. kEnvironment when the
  // numbers of the lines could not be kept.
  Result<bool> add(uint64_t first, const BlockOrigin& origin, bool keep_times);
  bool changed() const { return changed_; }  // something was moved
  uint64_t line(uint64_t position) const { return lines_.line(position); }
  void forget_times() { raised_.clear(); }

  // The events as they were in the input. `place`: for each of them, where it is in `ordered`. Empty: the numbers of
  // the lines cannot be read.
  std::optional<Trace> restore(const Trace& ordered, std::vector<uint64_t>* place) const;

 private:
  EventLines lines_;
  bool changed_ = false;
  // Events that begin later in the stream than in the input, and when they begin there.
  std::vector<std::pair<uint64_t, int64_t>> raised_;
};

}  // namespace tsomon
