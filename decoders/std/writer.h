// Writer of text traces: what the reader (reader.h) reads back as an equivalent trace.
//
// Contract    Reading the text gives the same events in the same order, with the same kinds,
//             threads, byte ranges, values, intervals, unit labels, sets and initial values; only
//             ids may be numbered differently. The interval is written when it is not simply the
//             event's place in the text.
// Names       Names of threads, locations and sets may hold characters that the format cannot:
//             those are written as %HH, and so is '%' itself, which keeps distinct names distinct.
//             Labels, texts and source locations hold everything except '|' and what a terminal
//             would not show as text (tso/support/printable.h), and only these are written as %HH.
// Misses      Values of accesses longer than 8 bytes, and an empty source location's difference
//             from none: events cannot have the first, and nothing tells the second apart.
// Complexity  O(bytes written). Thread-safety: one writer, one thread; Symbols are only read.
#pragma once

#include <cstdint>
#include <string>

#include "tso/model/damage.h"
#include "tso/model/trace.h"

namespace tsomon {

class StdWriter {
 public:
  // `symbols` must stay alive; it may grow between calls of write().
  explicit StdWriter(const Symbols& symbols) : symbols_(symbols) {}

  // All append to `out`.
  void write_headers(std::string& out) const;  // sets and initial values
  void write(const EventBlock& block, std::string& out);
  static void write_lost(uint64_t events, std::string& out);  // 0: an unknown number
  // The events are of a program, not made up. Without write_whole() at the end some are missing.
  static void write_recorded_until_whole(std::string& out);
  static void write_until_whole(std::string& out);  // the latter alone
  static void write_whole(std::string& out);
  // `orders`: what orders the threads is missing. Nothing where there is no damage.
  static void write_damage(Damage damage, bool orders, std::string& out);
  static void write_atomics(std::string& out);     // loads and stores with values are atomic ones
  static void write_may_cancel(std::string& out);  // units
  // What a trace says about its completeness; nothing for one that is whole.
  static void write_loss(const Trace& trace, std::string& out);

 private:
  void write_event(const EventBlock& block, const Event& event, std::string& out);

  const Symbols& symbols_;
  int64_t place_ = 0;
};

std::string write_std(const Trace& trace);

}  // namespace tsomon
