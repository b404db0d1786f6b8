#include "online/detector/slice.h"

#include <algorithm>
#include <utility>

namespace tsomon {
namespace {

// How far back it is looked for what memory held.
constexpr uint64_t kLookBack = 1ULL << 17;

}  // namespace

DetectedSlice slice_of(const EventHistory& history, uint64_t end, uint64_t first, uint64_t last,
                       uint64_t around, bool all_behind) {
  first = std::max(first, history.oldest());
  const bool exactly = around == 0;
  const uint64_t from =
      std::min(first, std::max(first - std::min(first, around), history.oldest()));
  uint64_t to = last;
  if (!exactly && all_behind) {
    to = std::min(last + around, end - 1);
  } else if (!exactly) {
    to = history.overlapped(first, last, around);
  }
  EventHistory::Slice slice = history.slice(from, to);
  std::vector<InitialValue> initial;
  if (!exactly) {
    initial = history.initial_values(slice, kLookBack);
  }
  std::vector<LockWord> words = history.lock_words(slice);
  return {std::move(slice.events),
          std::move(slice.index),
          slice.pending_prefix,
          slice.all_stores,
          false,
          std::move(initial),
          std::move(words),
          std::move(slice.late_reads)};
}

}  // namespace tsomon
