// The records of a perf.data in the order of their time.
//
// Order       perf writes the buffers of the CPUs one after another, round by round; FINISHED_ROUND
//             ends one. What is older than the newest record of the round before cannot be
//             preceded by anything that still comes, and is given out (as perf itself does it).
//             Records of the same time stay in the order of the file. Records of the tool, and
//             those without a time, are given out at once, where they stand in the file.
// Memory      Bounded: with more than kMaxHeld records at hand the older half is given out. What
//             then comes too late is given out late, and counted.
// Complexity  O(log held) for each record.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "decoders/perf/reader.h"

namespace tsomon::perf {

class OrderedReader {
 public:
  static constexpr size_t kMaxHeld = size_t{1} << 19;

  explicit OrderedReader(Reader reader, size_t max_held = kMaxHeld)
      : reader_(std::move(reader)), max_held_(max_held) {}

  // Replaces `record`; false at the end.
  bool next(Record& record);

  const Reader& reader() const { return reader_; }
  uint64_t late() const { return late_; }  // records given out after newer ones

 private:
  struct Held {
    Record record;
    uint64_t number = 0;
  };
  static bool is_later(const Held& left, const Held& right);
  uint64_t oldest() const { return held_.front().record.sample_id.time; }
  void hold(Record&& record);
  void take_oldest(Record& record);

  Reader reader_;
  size_t max_held_;
  std::vector<Held> held_;  // a heap, the oldest first
  uint64_t numbers_ = 0;
  uint64_t newest_ = 0;      // time that was read
  uint64_t give_until_ = 0;  // everything held up to this time is due
  uint64_t next_round_ = 0;  // what the next FINISHED_ROUND makes due
  uint64_t given_ = 0;       // time that was given out last
  uint64_t late_ = 0;
  bool ended_ = false;
};

}  // namespace tsomon::perf
