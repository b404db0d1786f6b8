#include "monitor/predict/window_reader.h"

#include <algorithm>
#include <numeric>

#include "tso/support/work.h"

namespace tsomon {
namespace {

// That a semaphore has from the event on (offline/predict/semaphores.h).
uint32_t count_of(const predict::ValueOrder::Item& item) {
  return item.event.kind() == EventKind::kCount ? static_cast<uint32_t>(item.written.value_or(0))
                                                : 0;
}

}  // namespace

WindowReader::WindowReader(EventSource& source, bool values)
    : source_(source),
      asked_values_(values),
      idle_([this](uint64_t line, bool idle) {
        if (!idle) {
          failed_.erase(line);
        }
      }),
      places_([this](uint32_t location) { return source_.place_text(location, Symbols::kWithin); },
              [this](uint32_t location) { return source_.without_place(location); },
              [this](uint32_t location) { return source_.waits(location); }) {
  idle_.compare_places([this](uint32_t a, uint32_t b) { return places_.same(a, b); },
                       [this](uint32_t a, uint32_t b) { return places_.same_line(a, b); });
}

const predict::KnownValues& WindowReader::values() {
  values_.failed.assign(window_.events.size(), false);
  for (uint32_t event = 0; !failed_.empty() && event < window_.events.size(); ++event) {
    values_.failed[event] = failed_.count(line(event)) != 0;
  }
  return values_;
}

Result<void> WindowReader::next_block() {
  at_ = 0;
  const auto next = source_.next(block_);
  if (!next) {
    Error error = next.error();
    error.input = source_.input();
    block_.clear();
    return tl::unexpected<Error>(std::move(error));
  }
  if (!*next) {
    block_.clear();
    ended_ = true;
    idle_.finish();
  }
  const auto& lines = source_.origin().lines;
  for (size_t i = 0; i < block_.events.size(); ++i) {
    Event& event = block_.events[i];
    const uint64_t line_of = lines.empty() ? events_ + i : lines[i];
    const bool may_fail =
        asked_values_ && (places_.is_library_own(event) || idle_.add(block_, event, line_of));
    if (may_fail && !is(event, kinds::kLocks)) {  // locks are no accesses that a unit is torn by
      failed_.insert(line_of);
    }
    const bool waits = asked_values_ && places_.waits(event);
    places_.forget(event);
    if (waits) {
      values_.waiting.insert(event.location);
    }
  }
  waits_.add(block_, events_, source_.origin().lines);
  if (stop_asked()) {
    throw WorkEnded(WorkLimit::kStopped);
  }
  return {};
}

Result<bool> WindowReader::more() {
  while (at_ == block_.events.size() && order_.empty() && !ended_) {
    if (auto read = next_block(); !read) {
      return tl::unexpected<Error>(std::move(read.error()));
    }
  }
  return at_ < block_.events.size() || !order_.empty();
}

Result<void> WindowReader::fill(uint64_t events) {
  while (own() < events) {
    if (const auto item = order_.empty() ? std::nullopt : order_.next()) {
      put(*item);
    } else if (at_ < block_.events.size()) {
      take(at_++);
    } else if (!ended_) {
      if (auto read = next_block(); !read) {
        return read;
      }
    } else {
      order_.finish();
      if (order_.empty()) {
        break;
      }
    }
  }
  return {};
}

void WindowReader::take(size_t at) {
  const Event& event = block_.events[at];
  const auto& lines = source_.origin().lines;
  const uint64_t line_of = lines.empty() ? events_ : lines[at];
  ++events_;
  if (order_.empty() && event.span_or_extra == 0 && !event.has_extras() && event.lo != kTimeMax) {
    put({event, 0, {}, {}, line_of});  // most events of text traces
    return;
  }
  const predict::ValueOrder::Item item{event, block_.hi(event), block_.read_value(event),
                                       block_.write_value(event), line_of};
  if (unplaced(item)) {
    unplaced_ = item.line;
    ended_ = true;
    block_.clear();
    at_ = 0;
  } else if (order_.empty() && item.hi == event.lo) {
    put(item);
  } else {
    order_.add(item);
  }
}

// Locks, forks and joins of recordings have stamps of both sides, but for the last one of a
// thread, which may be unfinished. Where the clocks of the processors are not trusted they have
// none, and what they order would be lost.
bool WindowReader::unplaced(const predict::ValueOrder::Item& item) {
  if (item.hi != kTimeMax ||
      !is(item.event, kinds::kLocks | kinds::kDrains | kind_mask(EventKind::kJoin))) {
    return false;
  }
  if (item.event.thread >= unfinished_.size()) {
    unfinished_.resize(item.event.thread + 1);
  }
  const bool again = unfinished_[item.event.thread];
  unfinished_[item.event.thread] = true;
  return again || item.event.kind() == EventKind::kJoin;
}

void WindowReader::put(const predict::ValueOrder::Item& item) {
  const uint64_t line_of = item.line;
  const uint64_t number = read();
  if (lines_.empty() && line_of != number) {
    lines_.resize(own());
    std::iota(lines_.begin(), lines_.end(), start_.passed());
  }
  if (!lines_.empty() || line_of != number) {
    lines_.push_back(line_of);
  }
  // What lies on top of the events is not asked for any more.
  Event event = item.event;
  event.span_or_extra = count_of(item);
  event.has_hi = event.has_read_value = event.has_write_value = 0;
  names_.name(&event, item.written);
  if (item.written &&
      is(event, kind_mask(EventKind::kWrite) | kind_mask(EventKind::kReadModifyWrite))) {
    event.span_or_extra = predict::written_tag(*item.written);
  }
  all_.look(event, number);
  if (is(event, kAccesses)) {
    accessing_.insert(event.location);
  }
  window_.events.push_back(event);
  if (asked_values_) {
    values_.words.emplace_back(item.read, item.written);
  }
}

uint64_t WindowReader::line(uint32_t event) const {
  return event < carried() ? carried_[event].line
         : lines_.empty()  ? start_.passed() + event - carried()
                           : lines_[event - carried()];
}

uint64_t WindowReader::number(uint32_t event) const {
  return event < carried() ? carried_[event].number : start_.passed() + event - carried();
}

void WindowReader::advance(uint64_t overlap) {
  std::vector<Event>& events = window_.events;
  const uint64_t gone = own() - std::min(own(), overlap);
  const uint64_t passed = start_.passed();
  for (uint64_t i = 0; i < gone; ++i) {
    const uint64_t line_of = lines_.empty() ? passed + i : lines_[i];
    failed_.erase(line_of);
    start_.pass(events[carried() + i], line_of);
  }
  spend(gone);
  const size_t old = carried() + gone;
  events.erase(events.begin(), events.begin() + static_cast<ptrdiff_t>(old));
  lines_.erase(lines_.begin(), lines_.begin() + static_cast<ptrdiff_t>(lines_.empty() ? 0 : gone));
  carried_ = start_.carried();
  events.insert(events.begin(), carried_.size(), Event());
  if (asked_values_) {
    auto& words = values_.words;
    words.erase(words.begin(), words.begin() + static_cast<ptrdiff_t>(old));
    words.insert(words.begin(), carried_.size(), predict::WordValues());
  }
  std::transform(carried_.begin(), carried_.end(), events.begin(),
                 [](const auto& carried) { return carried.event; });
}

}  // namespace tsomon
