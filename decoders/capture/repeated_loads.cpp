#include "decoders/capture/repeated_loads.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace tsomon::capture {
namespace {

// Shorter ones stay as they are.
constexpr size_t kShortest = 4;

class Merging {
 public:
  explicit Merging(EventBlock& block) : block_(block) {}

  void run() {
    const std::vector<Event>& events = block_.events;
    for (size_t i = 0; i != events.size();) {
      const bool pair = events[i].kind() == EventKind::kFence;
      if (pair || events[i].kind() == EventKind::kRead) {
        const size_t period = pair ? 2 : 1;
        if (const size_t end = end_of_run(i, period); end != i) {
          merge(i, end, period);
          i = end;
          continue;
        }
      }
      ++i;
    }
    if (kept_up_to_ != 0) {
      keep(events.size());
      std::swap(block_, merged_);
    }
  }

 private:
  // Nothing but the interval differs.
  bool equal(const Event& a, const Event& b) const {
    return a.address == b.address && a.kind_bits == b.kind_bits && a.location == b.location &&
           a.size == b.size && block_.read_value(a) == block_.read_value(b);
  }

  // Of periods from `begin` on that are equal; `begin`: none.
  size_t end_of_run(size_t begin, size_t period) const {
    const std::vector<Event>& events = block_.events;
    const size_t load = begin + period - 1;
    if (events.size() - begin < kShortest * period || events[load].has_read_value == 0 ||
        events[load].kind() != EventKind::kRead) {
      return begin;
    }
    size_t end = begin + period;
    while (end + period <= events.size() && equal(events[end], events[begin]) &&
           equal(events[end + period - 1], events[load])) {
      end += period;
    }
    return (end - begin) / period >= kShortest ? end : begin;
  }

  void keep(size_t end) {
    merged_.append(block_, kept_up_to_, end);
    kept_up_to_ = end;
  }

  void merge(size_t begin, size_t end, size_t period) {
    keep(begin + period);
    Event middle = block_.events[begin + 2 * period - 1];
    const auto value = block_.read_value(middle);
    middle.has_hi = middle.has_read_value = 0;
    int64_t hi = middle.lo;
    for (size_t i = begin + 2 * period - 1; i < end - period; i += period) {
      hi = std::max(hi, block_.hi(block_.events[i]));
    }
    merged_.add(middle, middle.lo, hi, value);
    kept_up_to_ = end - period;
  }

  EventBlock& block_;
  EventBlock merged_;
  size_t kept_up_to_ = 0;  // of block_ what is in merged_, or stands in it for more
};

}  // namespace

void merge_repeated_loads(EventBlock& block) { Merging(block).run(); }

}  // namespace tsomon::capture
