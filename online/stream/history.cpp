#include "online/stream/history.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "tso/model/location_table.h"
#include "tso/support/result.h"

namespace tsomon {
namespace {

// Stores before, by thread: where many events lie in front, most are to few places.
class StoresInFront {
 public:
  void add(const Event& store) {
    ranges_.insert({store.thread, store.address, store.size});
    uint32_t& longest = longest_[store.thread];
    longest = std::max<uint32_t>(longest, store.size);
  }

  // A load that overlaps a store of its thread without lying inside it cannot be forwarded and
  // drains the buffer up to that store.
  bool cover_in_part(const Event& load) const {
    const auto longest = longest_.find(load.thread);
    if (load.size == 0 || longest == longest_.end()) {
      return false;
    }
    const LocationKey here{load.address, load.size};
    const uint64_t first = load.address - std::min<uint64_t>(load.address, longest->second);
    for (auto at = ranges_.lower_bound({load.thread, first, 0}); at != ranges_.end(); ++at) {
      const auto& [thread, address, size] = *at;
      if (thread != load.thread ||
          (address > here.address && address - here.address >= here.size)) {
        return false;
      }
      const LocationKey there{address, size};
      if (overlap(there, here) && !contains(there, here)) {
        return true;
      }
    }
    return false;
  }

 private:
  std::set<std::tuple<ThreadId, uint64_t, uint32_t>> ranges_;
  std::unordered_map<ThreadId, uint32_t> longest_;
};

constexpr uint32_t kWrites = kinds::kStores | kind_mask(EventKind::kReadModifyWrite);

bool in_buffer(const EventHistory::Slice& at, const LocationKey& range,
               std::optional<ThreadId> but) {
  return std::any_of(at.events.events.begin(), at.events.events.begin() + at.pending_prefix,
                     [&](const Event& event) {
                       return event.thread != but && is(event, kWrites) &&
                              overlap(range, {event.address, event.size});
                     });
}

// All ids are below.
ThreadId threads_in(std::span<const Event> events) {
  ThreadId last = 0;
  for (const Event& event : events) {
    last = std::max(last, event.thread);
  }
  return events.empty() ? 0 : last + 1;
}

}  // namespace

Event* EventHistory::Memory::take() {
  if (used_ == size_) {
    size_ = chunks_.empty() ? kBlockEvents : std::min(2 * size_, kHugePage / sizeof(Event));
    used_ = 0;
    chunks_.emplace_back(HugePageAllocator<Event>().allocate(size_), Free{size_});
  }
  Event* const memory = chunks_.back().get() + used_;
  used_ += kBlockEvents;
  return memory;
}

void EventHistory::start_block(uint64_t first_index, int64_t time) {
  if (!blocks_.empty() && !too_many_) {
    follow_buffers(blocks_.back(), time);
    if (followed_.size() > kMaxFollowed) {
      too_many_ = true;
      followed_.clear();
    }
  }
  Block block;
  if (blocks_.size() > 1 && size_ - blocks_.front().size >= capacity_) {
    size_ -= blocks_.front().size;
    block = std::move(blocks_.front());  // its memory serves again
    blocks_.pop_front();
    block.size = 0;
    block.extras.clear();
    from_start_ = false;
  } else {
    block.memory = memory_.take();
  }
  block.first = first_index;
  units_.start_block(first_index, blocks_.empty() ? first_index : blocks_.front().first);
  block.pending.clear();
  block.overflow.clear();
  block.unknown = too_many_;
  for (const auto& [id, thread] : followed_) {
    if (thread.overflow >= time) {
      block.overflow.push_back(id);
    }
    block.pending.insert(block.pending.end(), thread.pending.begin(), thread.pending.end());
    if (block.pending.size() > kMaxInAll) {
      block.unknown = true;
      block.pending.clear();
      block.overflow.clear();
      break;
    }
  }
  blocks_.push_back(std::move(block));
}

// What the events of the block leave in the buffers at `time`, which is not before any of them:
// backwards, so that whatever comes before a drain that was over then is not looked at.
void EventHistory::follow_buffers(const Block& block, int64_t time) {
  drained_.resize(std::max<size_t>(drained_.size(), threads_in(block.events())));
  ++round_;
  const auto drained_by = [this](uint64_t id) -> int64_t& {
    Drained& drained = drained_[id];
    if (std::exchange(drained.round, round_) != round_) {
      drained.hi = kTimeMax;
    }
    return drained.hi;
  };
  const size_t threads = drained_.size();
  size_t waiting = threads;  // whose drain was not seen yet
  for (size_t i = block.size; i-- > 0 && waiting > 0;) {
    const Event& event = block.memory[i];
    const bool joins = event.kind() == EventKind::kJoin;
    const uint64_t id = joins ? event.address : event.thread;
    // The join may be of a thread that did nothing.
    if (id >= threads || drained_by(id) < time) {
      continue;
    }
    int64_t& drained = drained_by(id);
    const bool drains = joins || is(event, drains_);
    if (!drains && !is(event, kinds::kStores)) {
      continue;
    }
    const int64_t hi = block.extras.hi(event);
    if (drains) {
      drained = std::min(drained, hi);
      waiting -= drained < time ? 1 : 0;
    }
    if (joins || drained < time) {
      continue;
    }
    Thread& thread = followed_[static_cast<ThreadId>(id)];
    if (thread.latest.size() == kMaxPending) {
      thread.dropped = std::max(thread.dropped, drained);
    } else {
      thread.latest.push_back(
          {block.first + i, event, hi, block.extras.write_value(event), drained});
    }
  }
  // Most threads of a program that starts many have ended.
  for (auto& [id, thread] : followed_) {
    std::vector<Pending>& pending = thread.pending;
    const int64_t drained = drained_by(id);
    thread.overflow = std::min(thread.overflow, drained);
    for (Pending& one : pending) {
      one.over = std::min(one.over, drained);
    }
    std::erase_if(pending, [time](const Pending& one) { return one.over < time; });
    if (const size_t size = pending.size() + thread.latest.size(); size > kMaxPending) {
      // Of earlier ones the buffer is empty earlier.
      const auto kept = pending.begin() + static_cast<ptrdiff_t>(size - kMaxPending);
      thread.dropped = std::max(thread.dropped, std::prev(kept)->over);
      pending.erase(pending.begin(), kept);
    }
    thread.overflow = std::max(thread.overflow, std::exchange(thread.dropped, kTimeMin));
    pending.insert(pending.end(), thread.latest.rbegin(), thread.latest.rend());
    thread.latest.clear();
  }
  std::erase_if(followed_, [time](const auto& followed) {
    return followed.second.pending.empty() && followed.second.overflow < time;
  });
}

void EventHistory::append(const EventBlock& from, size_t begin, size_t end, Block* to) {
  const Event* const first = from.events.data() + begin;
  Event* const place = to->memory + to->size;
  if (from.extras.empty()) {
    std::memcpy(static_cast<void*>(place), first, (end - begin) * sizeof(Event));
  } else {
    std::transform(first, first + (end - begin), place,
                   [&](const Event& event) { return to->extras.with_extras(from, event); });
  }
  to->size += end - begin;
}

// Slices need not begin where the semaphore does.
void EventHistory::note_count(const EventBlock& from, const Event& event, Event* kept,
                              Block* block) {
  const auto left = counts_.add(from, event);
  if (left && event.kind() == EventKind::kTake && event.has_read_value == 0) {
    const int64_t hi = from.hi(event);
    const auto written = from.write_value(event);
    kept->has_hi = kept->has_write_value = 0;
    kept->span_or_extra = 0;
    block->extras.complete(*kept, hi, left, written);
  }
}

void EventHistory::add(const EventBlock& block, uint64_t first_index) {
  if (capacity_ == 0) {
    return;
  }
  words_.add(block);
  for (size_t i = 0; i < block.events.size();) {
    if (blocks_.empty() || blocks_.back().size == kBlockEvents ||
        blocks_.back().first + blocks_.back().size != first_index + i) {
      start_block(first_index + i, block.events[i].lo);
    }
    const size_t count = std::min(kBlockEvents - blocks_.back().size, block.events.size() - i);
    append(block, i, i + count, &blocks_.back());
    for (size_t each = i; each < i + count; ++each) {
      const Event& event = block.events[each];
      units_.add(event, first_index + each);
      if (is(event, SemaphoreCounts::kKinds)) {
        Block& last = blocks_.back();
        note_count(block, event, last.memory + last.size - (i + count - each), &last);
      }
    }
    i += count;
    size_ += count;
  }
}

size_t EventHistory::block_of(uint64_t index) const {
  const auto after =
      std::upper_bound(blocks_.begin(), blocks_.end(), index,
                       [](uint64_t at, const Block& block) { return at < block.first; });
  return static_cast<size_t>(after - blocks_.begin()) - 1;
}

template <typename Function>
void EventHistory::for_each_from(uint64_t first, const Function& function) const {
  for (size_t b = block_of(first); b < blocks_.size(); ++b) {
    const Block& block = blocks_[b];
    for (uint64_t i = first - std::min(first, block.first); i < block.size; ++i) {
      if (!function(block, i)) {
        return;
      }
    }
  }
}

uint64_t EventHistory::in_buffers() const {
  return std::accumulate(
      blocks_.begin(), blocks_.end(), uint64_t{0},
      [](uint64_t sum, const Block& block) { return sum + block.pending.size(); });
}

uint64_t EventHistory::overlapped(uint64_t first, uint64_t last, uint64_t events) const {
  TSOMON_CHECK(contains(first), "a slice that has left the history");
  int64_t over = kTimeMin;
  uint64_t result = last;
  for_each_from(first, [&](const Block& block, size_t i) {
    const Event& event = block.memory[i];
    const uint64_t index = block.first + i;
    if (index <= last) {
      over = std::max(over, block.extras.hi(event));
      return true;
    }
    if (event.lo > over || index - last > events) {
      return false;
    }
    result = index;
    return true;
  });
  return result;
}

// The stores after event `index` that begin up to a time, and until when these are all.
EventHistory::Later EventHistory::later_stores(uint64_t index, int64_t time) const {
  constexpr uint64_t kMostEvents = 4096;
  constexpr size_t kMostStores = 256;
  Later later;
  uint64_t looked_at = 0;
  bool all = true;
  for_each_from(index + 1, [&](const Block& block, size_t i) {
    const Event& event = block.memory[i];
    later.known_until = event.lo;
    all = event.lo <= time && ++looked_at <= kMostEvents && later.stores.size() < kMostStores;
    if (all && is(event, kWrites)) {
      later.stores.push_back({block.first + i, event, block.extras.hi(event),
                              block.extras.write_value(event), kTimeMax});
    }
    return all;
  });
  if (!all) {
    return later;
  }
  if (finished_) {
    later.known_until.reset();
  } else {
    later.known_until = blocks_.back().events().back().lo;
  }
  return later;
}

// When at the earliest a load of a slice read a store after it, if it may have.
std::optional<int64_t> EventHistory::may_read(const Event& load, int64_t hi, uint64_t value,
                                              const Later& later) {
  std::optional<int64_t> earliest;
  const auto from = [&](int64_t time) {
    if (time <= hi) {
      earliest = std::min(earliest.value_or(kTimeMax), std::max(time, load.lo));
    }
  };
  if (later.known_until) {
    from(*later.known_until);
  }
  for (const Pending& store : later.stores) {
    const LocationKey here{load.address, load.size};
    const LocationKey there{store.event.address, store.event.size};
    if (store.event.thread != load.thread && overlap(here, there) &&
        !(here == there && store.value && *store.value != value)) {
      from(store.event.lo);
    }
  }
  return earliest;
}

// Both by their indices.
void EventHistory::add_pending_prefix(std::vector<Pending> pending,
                                      const std::vector<UnitStacks::Boundary>& open,
                                      Slice* slice) const {
  for (const UnitStacks::Boundary& boundary : open) {
    pending.push_back({boundary.index, boundary.event, boundary.event.lo, {}, kTimeMax});
  }
  std::sort(pending.begin(), pending.end(),
            [](const Pending& a, const Pending& b) { return a.index < b.index; });
  StoresInFront stores;
  for (const Pending& one : pending) {
    if (is(one.event, kinds::kStores)) {
      stores.add(one.event);
    }
    if (one.event.kind() != EventKind::kRead || stores.cover_in_part(one.event)) {
      slice->events.add(one.event, one.event.lo, one.hi, std::nullopt, one.value);
      slice->index.push_back(one.index);
    }
  }
  slice->pending_prefix = static_cast<uint32_t>(slice->index.size());
}

// What buffers may have held when the event `first` was issued: backwards from it, the accesses of each thread since its
// last drain that was over, until every thread has one or a block says what was in its buffer.
class EventHistory::LookBack {
 public:
  LookBack(const EventHistory& history, size_t begin, uint64_t first, int64_t time)
      : history_(history), time_(time) {
    bool waiting = true;
    for (size_t b = begin + 1; b-- > 0 && waiting && !stopped_;) {
      const Block& block = history_.blocks_[b];
      const size_t size = block.events().size();
      look_through(b, b == begin ? std::min<size_t>(first - block.first, size) : size);
      waiting = block.unknown || take_from_buffers(block);
    }
    all_stores_ = !stopped_ && (!waiting || history_.from_start_);
  }

  // Every store that could have been in a buffer is there.
  bool all_stores() const { return all_stores_; }

  std::vector<Pending> take() {
    for (size_t i = accesses_.size(); i-- > 0;) {
      const Block& block = history_.blocks_[accesses_[i].block];
      const Event& event = block.memory[accesses_[i].event];
      pending_.push_back({block.first + accesses_[i].event, event, block.extras.hi(event),
                          block.extras.write_value(event), kTimeMax});
    }
    return std::move(pending_);
  }

 private:
  struct Place {
    size_t block;
    size_t event;
  };

  // The buffer of the thread is known to have been empty.
  bool is_empty(ThreadId thread) const {
    const auto found = empty_.find(thread);
    return found == empty_.end() ? others_empty_ : found->second;
  }

  void look_through(size_t number, size_t end) {
    const Block& block = history_.blocks_[number];
    const auto events = block.events();
    for (size_t i = end; i-- > 0;) {
      if (++steps_ > kMaxLookBack) {
        stopped_ = true;
        break;
      }
      const Event& event = events[i];
      const bool over = block.extras.hi(event) < time_;
      if (event.kind() == EventKind::kJoin && over) {
        empty_[static_cast<ThreadId>(event.address)] = true;
      }
      if (is_empty(event.thread)) {
        continue;
      }
      const bool drains = is(event, history_.drains_);
      if (drains && over) {
        empty_[event.thread] = true;
      } else if (drains || is(event, kinds::kStores) || event.kind() == EventKind::kRead) {
        accesses_.push_back({number, i});
      }
    }
  }

  // Where the block begins it is known what a buffer may hold, unless that is too much: of such threads the blocks before
  // are asked. False: there are none.
  bool take_from_buffers(const Block& block) {
    std::vector<ThreadId> more;
    std::copy_if(block.overflow.begin(), block.overflow.end(), std::back_inserter(more),
                 [&](ThreadId thread) { return !is_empty(thread); });
    std::copy_if(block.pending.begin(), block.pending.end(), std::back_inserter(pending_),
                 [&](const Pending& one) {
                   const ThreadId thread = one.event.thread;
                   return one.over >= time_ && !is_empty(thread) &&
                          std::find(more.begin(), more.end(), thread) == more.end();
                 });
    empty_.clear();
    for (const ThreadId thread : more) {
      empty_[thread] = false;
    }
    others_empty_ = true;
    return !more.empty();
  }

  const EventHistory& history_;
  int64_t time_;  // when `first` was issued at the earliest
  std::unordered_map<ThreadId, bool> empty_;
  bool others_empty_ = false;  // of threads that are not in it
  std::vector<Place> accesses_;
  std::vector<Pending> pending_;  // from before the blocks that were looked through
  uint64_t steps_ = 0;
  bool stopped_ = false;
  bool all_stores_ = false;
};

EventHistory::Slice EventHistory::slice(uint64_t first, uint64_t last) const {
  TSOMON_CHECK(contains(first), "a slice that has left the history");
  Slice slice;
  const size_t begin = block_of(first);
  const auto at_first = blocks_[begin].events();
  const uint64_t place = first - blocks_[begin].first;
  const int64_t time = place < at_first.size()      ? at_first[place].lo
                       : begin + 1 < blocks_.size() ? blocks_[begin + 1].events().front().lo
                                                    : kTimeMax;
  LookBack back(*this, begin, first, time);
  slice.all_stores = back.all_stores();

  const auto for_each_in = [&](const auto& function) {
    for_each_from(first, [&](const Block& block, size_t i) {
      if (block.first + i > last) {
        return false;
      }
      function(block.memory[i], block.extras, block.first + i);
      return true;
    });
  };
  int64_t newest = kTimeMin;
  std::unordered_set<ThreadId> threads;
  for_each_in([&](const Event& event, const EventBlock& extras, uint64_t) {
    threads.insert(event.thread);
    if (event.has_read_value != 0) {
      newest = std::max(newest, extras.hi(event));
    }
  });
  const auto before = at_first.first(std::min<size_t>(place, at_first.size()));
  add_pending_prefix(back.take(), units_.open_at(threads, blocks_[begin].first, before), &slice);
  const Later later = later_stores(last, newest);
  for_each_in([&](const Event& event, const EventBlock& extras, uint64_t index) {
    const auto value = extras.read_value(event);
    const auto when =
        value ? may_read(event, extras.hi(event), *value, later) : std::optional<int64_t>();
    if (when) {
      slice.late_reads.push_back(
          {static_cast<uint32_t>(slice.events.events.size()), *value, *when});
      slice.events.add(event, event.lo, extras.hi(event), std::nullopt, extras.write_value(event));
    } else {
      slice.events.events.push_back(slice.events.with_extras(extras, event));
    }
    slice.index.push_back(index);
  });
  return slice;
}

std::vector<InitialValue> EventHistory::initial_values(const Slice& slice, uint64_t events) const {
  constexpr size_t kMostRanges = 256;
  std::vector<InitialValue> known;
  if (!slice.all_stores || slice.index.size() == slice.pending_prefix) {
    return known;
  }
  // By eight bytes of memory, or by a name.
  std::unordered_multimap<uint64_t, LocationKey> open;
  const auto for_each_component = [](const LocationKey& range, const auto& function) {
    if (range.size == 0) {
      return function(~range.address);
    }
    for (uint64_t part = range.address / 8; part <= (range.address + range.size - 1) / 8; ++part) {
      function(part);
    }
  };
  const auto forget = [&](const LocationKey& range) {
    for_each_component(range, [&](uint64_t part) {
      const auto [begin, end] = open.equal_range(part);
      const auto at =
          std::find_if(begin, end, [&](const auto& one) { return one.second == range; });
      if (at != end) {
        open.erase(at);
      }
    });
  };
  for (size_t e = slice.pending_prefix; e < slice.index.size() && open.size() < kMostRanges; ++e) {
    const Event& event = slice.events.events[e];
    const LocationKey range{event.address, event.size};
    if (event.has_read_value != 0 && range.size <= 8 && !in_buffer(slice, range, std::nullopt)) {
      forget(range);  // it may be there already
      for_each_component(range, [&](uint64_t part) { open.emplace(part, range); });
    }
  }
  const auto ask = [&](const Event& store, std::optional<uint64_t> value, uint64_t index) {
    const LocationKey range{store.address, store.size};
    std::vector<LocationKey> met;
    for_each_component(range, [&](uint64_t part) {
      const auto [begin, end] = open.equal_range(part);
      for (auto at = begin; at != end; ++at) {
        if (overlap(at->second, range)) {
          met.push_back(at->second);
        }
      }
    });
    std::for_each(met.begin(), met.end(), forget);
    if (value && std::find(met.begin(), met.end(), range) != met.end()) {
      const Slice then = this->slice(index, index);
      if (then.all_stores && !in_buffer(then, range, store.thread)) {
        known.push_back({range, *value});
      }
    }
  };
  const uint64_t first = slice.index[slice.pending_prefix];
  for (size_t b = block_of(first) + 1; b-- > 0;) {
    const Block& block = blocks_[b];
    for (size_t i = std::min<uint64_t>(block.size, first - block.first); i-- > 0;) {
      if (open.empty() || events-- == 0) {
        return known;
      }
      if (is(block.memory[i], kWrites)) {
        ask(block.memory[i], block.extras.write_value(block.memory[i]), block.first + i);
      }
    }
  }
  return known;
}

}  // namespace tsomon
