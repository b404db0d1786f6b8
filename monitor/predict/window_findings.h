// What was predicted in the windows of an input, as one prediction.
//
// Purpose     The events of a window are gone when the next one is looked at. Those that a finding
//             names are kept, with their numbers, so that it is reported as any other.
// Witnesses   In short (offline/predict/witness.h): the last event of each thread before the
//             reordered part, which may be before the window, and that part.
// Dropped     What events outside of the window rule out (offline/predict/outside_events.h), and what an earlier window had.
// Memory      40 bytes for each event that a finding names.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "monitor/predict/predict.h"
#include "monitor/predict/prediction_part.h"
#include "monitor/predict/window_reader.h"

namespace tsomon {

class WindowFindings {
 public:
  // Of each kind what was asked about; finish() counts it.
  AskedOfKinds& asked() { return asked_; }

  // What is asked about from now on belongs to the window of that number.
  void begin_window(uint64_t number);
  // `part` was predicted from the window that the reader has.
  void add(Prediction part, const WindowReader& reader);
  // Writes everything into `whole`, whose trace gets the events that are named.
  void finish(const predict::OutsideEvents& all, bool knows_atomics, Prediction* whole);

 private:
  uint32_t keep(uint64_t number, const Event& event, uint64_t line);

  AskedOfKinds asked_;
  uint64_t window_ = 0;
  Prediction found_;
  std::map<uint64_t, uint64_t> ends_;  // by window: the number after its last event
  std::vector<uint64_t> numbers_;      // of the events that are kept, in the order of the run
  std::unordered_map<uint64_t, uint32_t> kept_;  // by number
};

}  // namespace tsomon
