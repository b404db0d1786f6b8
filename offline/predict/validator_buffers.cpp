// The validator's machine with store buffers.
#include <algorithm>

#include <fmt/format.h>

#include "offline/predict/validator.h"
#include "offline/predict/witness.h"

namespace tsomon::predict {

bool Validator::entry_exists(uint32_t entry) const {
  const uint32_t event = entry & ~kCommit;
  return event < size() && (entry == event || buffers_);
}

// Nothing of it waits in the buffer of its thread.
bool Validator::committed(uint32_t event) const {
  const auto& mine = buffer_[thread_of(event)];
  return std::find(mine.begin(), mine.end(), event) == mine.end();
}

std::string Validator::commit(uint32_t i) {
  std::deque<uint32_t>& mine = buffer_[thread_of(i)];
  if (mine.empty() || mine.front() != i) {
    return fmt::format("event {} commits out of its turn", i);
  }
  mine.pop_front();
  return step(i, false);
}

std::string Validator::buffered_load(uint32_t i, bool bound) {
  const std::deque<uint32_t>& mine = buffer_[thread_of(i)];
  const CellSpan span = cells_.of_event(i);
  const auto in_span = [&](uint32_t store) {
    const CellSpan theirs = cells_.of_event(store);
    return trace_.events[store].kind() == EventKind::kWrite &&
           theirs.first < span.first + span.count && span.first < theirs.first + theirs.count;
  };
  const auto youngest = std::find_if(mine.rbegin(), mine.rend(), in_span);
  if (youngest == mine.rend()) {
    return step(i, bound);
  }
  const CellSpan theirs = cells_.of_event(*youngest);
  if (theirs.first > span.first || theirs.first + theirs.count < span.first + span.count) {
    return fmt::format("event {} needs event {}, a part of what it loads, in memory", i, *youngest);
  }
  if (uint32_t from = 0; !hard_edges_kept(i, &from)) {
    return fmt::format("event {} comes before event {}, which starts, ends or hands over", i, from);
  }
  forwarded_.push_back(i);
  for (uint32_t at = 0; bound && at < span.count; ++at) {
    if (source(i, span.first + at) != *youngest) {
      return fmt::format("event {} is forwarded another write than it saw", i);
    }
  }
  return {};
}

std::string Validator::buffered_step(uint32_t entry, bool bound) {
  const uint32_t i = entry & ~kCommit;
  const Event& event = trace_.events[i];
  std::deque<uint32_t>& mine = buffer_[thread_of(i)];
  if (entry != i) {
    return commit(i);
  }
  if (is(event, kEmptiesBuffer) && !mine.empty()) {
    return fmt::format("event {} comes before the commit of event {}", i, mine.front());
  }
  if (event.kind() == EventKind::kJoin && event.address < buffer_.size() &&
      !buffer_[event.address].empty()) {
    return fmt::format("event {} comes before the commit of event {}", i,
                       buffer_[event.address].front());
  }
  if (is(event, kinds::kStores)) {
    uint32_t from = 0;
    if (!hard_edges_kept(i, &from)) {
      return fmt::format("event {} comes before event {}, which starts, ends or hands over", i,
                         from);
    }
    mine.push_back(i);
    return {};
  }
  return event.kind() == EventKind::kRead ? buffered_load(i, bound) : step(i, bound);
}

// In each buffer up to the last one: nothing keeps them there.
void Validator::commit_releases() {
  for (const ThreadId thread : used_threads_) {
    for (const uint32_t store : buffer_[thread]) {
      if (trace_.events[store].kind() == EventKind::kRelease) {
        release(lock_now(cells_.lock_of(store)), trace_.events[store]);
      }
    }
  }
}

}  // namespace tsomon::predict
