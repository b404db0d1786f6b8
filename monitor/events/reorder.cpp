#include "monitor/events/reorder.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tsomon {

// Takes the events into account; true when none begins before any other.
bool Reorder::in_order(const EventBlock& block) {
  bool sorted = true;
  int64_t high = high_;
  uint64_t line = count_;
  for (const Event& event : block.events) {
    if (event.thread >= latest_.size()) {
      latest_.resize(event.thread + 1, kTimeMin);
    }
    plain_ &= event.lo == static_cast<int64_t>(line++) && event.has_hi == 0 &&
              (event.has_extras() || event.span_or_extra == 0);
    sorted &= event.lo >= high;
    high = std::max(high, event.lo);
  }
  return sorted;
}

bool Reorder::add(EventBlock& block, EventBlock& out, BlockOrigin& origin) {
  const size_t size = block.events.size();
  if (!in_order(block)) {
    append_raised(block);
  } else {
    for (const Event& event : block.events) {
      latest_[event.thread] = event.lo;
    }
    high_ = size == 0 ? high_ : block.events.back().lo;
    if (moved_) {
      for (size_t i = 0; i < size; ++i) {
        lines_.push_back(count_ + i);
      }
    }
    count_ += size;
    if (sorted_ && !moved_ && size >= EventSource::kReorder) {
      out.clear();
      origin = {};
      std::swap(out, held_);
      std::swap(held_, block);
      return !out.events.empty();
    }
    held_.append(block);
  }
  return held_.events.size() >= 2 * EventSource::kReorder &&
         give(EventSource::kReorder, out, origin);
}

void Reorder::append_raised(const EventBlock& block) {
  if (!moved_) {
    moved_ = true;
    lines_.resize(held_.events.size());
    std::iota(lines_.begin(), lines_.end(), count_ - lines_.size());
  }
  sorted_ = false;
  for (const Event& event : block.events) {
    int64_t& latest = latest_[event.thread];
    if (event.lo < latest) {
      raised_.emplace(count_, event.lo);
    }
    latest = std::max(latest, event.lo);
    high_ = std::max(high_, latest);
    Event own = event;
    own.has_hi = own.has_read_value = own.has_write_value = 0;
    held_.add(own, latest, std::max(block.hi(event), latest), block.read_value(event),
              block.write_value(event));
    lines_.push_back(count_++);
  }
}

bool Reorder::give(size_t keep, EventBlock& out, BlockOrigin& origin) {
  const size_t size = held_.events.size();
  const size_t end = size - std::min(keep, size);
  origin = {};
  if (moved_) {
    sort(end, out, origin);
  } else {
    out.append(held_, 0, end);
    rest_.append(held_, end, size);
  }
  std::swap(held_, rest_);
  rest_.clear();
  return end != 0;
}

void Reorder::sort(size_t end, EventBlock& out, BlockOrigin& origin) {
  std::vector<uint32_t> order(held_.events.size());
  std::iota(order.begin(), order.end(), 0U);
  if (!sorted_) {
    std::stable_sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
      return held_.events[a].lo < held_.events[b].lo;
    });
    sorted_ = true;
  }
  std::vector<uint64_t> rest;
  for (size_t i = 0; i < order.size(); ++i) {
    const uint64_t line = lines_[order[i]];
    (i < end ? out : rest_).append(held_, order[i], order[i] + 1);
    (i < end ? origin.lines : rest).push_back(line);
    const auto raised = i < end && !raised_.empty() ? raised_.find(line) : raised_.end();
    if (raised != raised_.end()) {
      origin.raised.push_back({static_cast<uint32_t>(i), raised->second});
      raised_.erase(raised);
    }
  }
  lines_ = std::move(rest);
  // Nothing is out of place any more.
  if (raised_.empty() && std::is_sorted(lines_.begin(), lines_.end()) &&
      (lines_.empty() || lines_.front() + lines_.size() == count_)) {
    lines_.clear();
    moved_ = false;
  }
}

}  // namespace tsomon
