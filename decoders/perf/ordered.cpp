#include "decoders/perf/ordered.h"

#include <algorithm>
#include <utility>

namespace tsomon::perf {

bool OrderedReader::is_later(const Held& left, const Held& right) {
  const uint64_t a = left.record.sample_id.time;
  const uint64_t b = right.record.sample_id.time;
  return a != b ? a > b : left.number > right.number;
}

void OrderedReader::hold(Record&& record) {
  newest_ = std::max(newest_, record.sample_id.time);
  held_.push_back({std::move(record), numbers_++});
  std::push_heap(held_.begin(), held_.end(), is_later);
  if (held_.size() >= max_held_) {
    give_until_ = std::max(give_until_, oldest() + (newest_ - oldest()) / 2);
  }
}

void OrderedReader::take_oldest(Record& record) {
  std::pop_heap(held_.begin(), held_.end(), is_later);
  record = std::move(held_.back().record);
  held_.pop_back();
  late_ += record.sample_id.time < given_ ? 1 : 0;
  given_ = std::max(given_, record.sample_id.time);
}

bool OrderedReader::next(Record& record) {
  for (;;) {
    if (!held_.empty() && (ended_ || oldest() <= give_until_)) {
      take_oldest(record);
      return true;
    }
    if (ended_ || !reader_.next(record)) {
      ended_ = true;
      if (held_.empty()) {
        return false;
      }
      continue;
    }
    if (record.type == RecordType::kFinishedRound) {
      give_until_ = std::max(give_until_, next_round_);
      next_round_ = newest_;
      return true;
    }
    const uint64_t time = record.sample_id.time;
    if (record.of_tool() || !record.has_time() || time == 0 || time == UINT64_MAX) {
      return true;
    }
    hold(std::move(record));
  }
}

}  // namespace tsomon::perf
