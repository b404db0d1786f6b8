// Plain accesses that no table foresaw, ranges of them, and which of them are recorded.
#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/record_stamps.h"
#include "monitor/probe/slices.h"
#include "monitor/probe/watched_memory.h"

namespace tsomon::probe {
namespace {

// The watched parts of one or two ranges. They are recorded before any of them is accessed, so
// neither a stamp nor a chunk's end comes between.
class WatchedParts {
 public:
  void add(RecordType type, uint64_t begin, uint64_t size) {
    const RecordType range = type == RecordType::kRead || type == RecordType::kRangeRead
                                 ? RecordType::kRangeRead
                                 : RecordType::kRangeWrite;
    const uint64_t end = begin + size;
    for (uint64_t at = next_watched(begin, end); at < end; at = next_watched(at, end)) {
      if (count_ == kMost) {
        ++missed_;
        return;
      }
      const uint64_t part = at;
      at = next_watched(at, end, false);
      parts_[count_++] = {range, part, at - part};
    }
  }
  void put(uint64_t pc) const {
    if (count_ == 0) {
      return;
    }
    Context* const context =
        capture::has_room(local.context->encoder, count_ + 1) ? local.context : writable_slow();
    for (uint32_t i = 0; i < missed_; ++i) {
      count_lost();
    }
    if (context == nullptr) {
      return;
    }
    if (context->encoder.end == context->begun) {
      look_at_clock(*context);
    }
    context->since += count_;
    for (uint32_t i = 0; i < count_; ++i) {
      capture::put_record(context->encoder,
                          {parts_[i].type, 0, 0, 1, parts_[i].begin, pc, {parts_[i].size}});
    }
  }

 private:
  // Of a range with more holes the rest is lost. So many records fit into any new chunk.
  static constexpr uint32_t kMost = 64;
  struct Part {
    RecordType type;
    uint64_t begin;
    uint64_t size;
  };
  Part parts_[kMost];
  uint32_t count_ = 0;
  uint32_t missed_ = 0;
};

// outside=stores leaves out plain loads here. Of loads any part may be left out: they hide no store
// and no order that a report relies on. So those that are cached need no look.
bool leaves_out_loads() { return options.stores_outside && local.units == 0; }

// What was not cached.
__attribute__((noinline)) void record_access(uint64_t address, uint64_t key) {
  Context* const context = writable();
  if (context == nullptr) {
    return;
  }
  if (TSOMON_UNLIKELY(context->encoder.end == context->begun)) {
    look_at_clock(*context);
  } else if (stamp_due(*context)) {
    put_stamp(*context);
  }
  ++context->since;
  capture::put_access(context->encoder, address, key);
}

inline __attribute__((always_inline)) void record_chosen(uint64_t address, uint64_t key) {
  capture::Encoder& encoder = local.context->encoder;
  switch (capture::look_up_site(encoder, address, key ^ encoder.filter_mask,
                                8 * capture::key_slot(key))) {
    case capture::SiteCache::kHit:
      return;
    case capture::SiteCache::kMiss:
      return record_access(address, key);
    case capture::SiteCache::kExpired:
      return access_expired();
  }
}

// accesses=sets: an access to several granules, which lies in two pages at most.
__attribute__((noinline)) void select_wide(uint64_t address, uint64_t key) {
  const uint64_t end = address + capture::key_size(key);
  if (!may_be_watched(address) && !may_be_watched(end - 1)) {
    return;
  }
  if (is_watched(address) && next_watched(address, end, false) == end) {
    return record_chosen(address, key);
  }
  WatchedParts parts;
  parts.add(capture::key_type(key), address, end - address);
  parts.put(capture::key_pc(key));
}

}  // namespace

__attribute__((noinline)) void access_slow(uint64_t address, uint64_t key) {
  if (TSOMON_LIKELY(!selective)) {
    return record_access(address, key);
  }
  if (capture::key_type(key) == RecordType::kRead && leaves_out_loads()) {
    return;
  }
  if (options.only_sets) {
    if (TSOMON_UNLIKELY((address ^ (address + capture::key_size(key) - 1)) >= kGranule)) {
      return select_wide(address, key);
    }
    if (!may_be_watched(address) || !is_watched(address)) {
      return;
    }
  }
  record_chosen(address, key);
}

__attribute__((noinline)) void access_unrecorded(uint64_t address, uint64_t key) {
  if (may_begin_slice(capture::key_pc(key)) && join_slice()) {
    access_slow(address, key);
  }
}

bool would_be_recorded(uint64_t address, uint64_t size, bool store) {
  if (local.thread == nullptr || (!store && leaves_out_loads())) {
    return false;
  }
  return !options.only_sets || any_watched(address, size);
}

void access_always(RecordType type, const volatile void* pointer, uint32_t size, uint64_t pc) {
  if (!selective) {
    return access(type, pointer, size, pc);
  }
  if (local.thread != nullptr) {
    record_access(reinterpret_cast<uint64_t>(pointer), capture::make_key(type, size, pc));
  }
}

// The access is recorded, its instruction has run 127 times since the last token that named it.
__attribute__((noinline)) void access_expired() {
  Context* const context = local.context;
  context->since += capture::kMaxCount;
  if (!capture::has_room(context->encoder)) {
    // Not a new chunk: it begins with a stamp, and this access is still to come. The next one
    // begins it.
    capture::put_nothing(context->encoder);
    capture::expect_nothing(context->encoder);
  } else if (stamp_due(*context)) {
    capture::put_stamp_before(context->encoder, new_stamp(*context));
  } else {
    capture::put_nothing(context->encoder);
  }
}

void put_range(RecordType type, const volatile void* address, size_t size, uint64_t pc) {
  if (TSOMON_UNLIKELY(explore::active)) {
    explore::range(type == RecordType::kWrite, address, size, pc);
    return;
  }
  if (size == 0) {
    return;
  }
  if (size <= capture::kMaxSize) {
    access(type, address, static_cast<uint32_t>(size), pc);
    return;
  }
  if (TSOMON_UNLIKELY(selective) && type == RecordType::kRead && leaves_out_loads()) {
    return;
  }
  if (TSOMON_UNLIKELY(options.only_sets)) {
    if (local.thread != nullptr) {
      WatchedParts parts;
      parts.add(type, reinterpret_cast<uint64_t>(address), size);
      parts.put(pc);
    }
    return;
  }
  const RecordType range =
      type == RecordType::kRead ? RecordType::kRangeRead : RecordType::kRangeWrite;
  if (Context* const context = writable()) {
    if (context->encoder.end == context->begun) {
      look_at_clock(*context);
    }
    ++context->since;
    capture::put_record(context->encoder,
                        {range, 0, 0, 1, reinterpret_cast<uint64_t>(address), pc, {size}});
  }
}

// Both are recorded before either is performed: neither a stamp nor a chunk's end may come between.
void put_copy(const volatile void* to, const volatile void* from, size_t size, uint64_t pc) {
  if (TSOMON_UNLIKELY(explore::active)) {
    // Others may come between the steps, but not between the copy's load and its store.
    const bool loads = explore::range(false, from, size, pc);
    if (explore::range(true, to, size, pc) && loads) {
      explore::note_unsaid();
    }
    return;
  }
  if (TSOMON_UNLIKELY(options.only_sets)) {
    if (local.thread != nullptr) {
      WatchedParts parts;
      if (!leaves_out_loads()) {
        parts.add(RecordType::kRead, reinterpret_cast<uint64_t>(from), size);
      }
      parts.add(RecordType::kWrite, reinterpret_cast<uint64_t>(to), size);
      parts.put(pc);
    }
    return;
  }
  Context* context = local.context;
  if (!capture::has_room(context->encoder, 4)) {
    context = writable_slow();
  }
  put_range(RecordType::kRead, from, size, pc);
  const uint64_t since = context != nullptr ? context->since : 0;
  if (context != nullptr) {
    context->since = 0;
  }
  put_range(RecordType::kWrite, to, size, pc);
  if (context != nullptr) {
    context->since += since;
  }
}

}  // namespace tsomon::probe
