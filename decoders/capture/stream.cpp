#include "decoders/capture/stream.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "decoders/capture/record_kinds.h"
#include "decoders/capture/repeated_loads.h"
#include "tso/model/cancelled_units.h"
#include "tso/model/waited.h"

namespace tsomon::capture {
namespace {

constexpr size_t kMaxWaiting = size_t{1} << 20;
constexpr uint32_t kWidest = 16;        // bytes, of an access that is no range
constexpr uint64_t kSmallestPiece = 8;  // of a range; ends may be smaller
constexpr uint64_t kLargestPiece = 4096;
constexpr uint64_t kPiecesPerRecord = 4;
constexpr size_t kMaxHeld = size_t{1} << 16;  // of handlers
constexpr size_t kMaxProblems = 8;            // of one thread; the rest is counted

uint64_t masked(uint64_t value, uint32_t size) {
  return size < 8 ? value & ((uint64_t{1} << (8 * size)) - 1) : value;
}

int64_t stamp_of(const Record& record, uint32_t index) {
  return static_cast<int64_t>(std::min(record.words[index], static_cast<uint64_t>(kTimeMax)));
}

// The value in a word of a record that has so many words.
std::optional<uint64_t> value_of(const Record& record, uint32_t index, uint32_t words) {
  if (record.count < words || record.size == 0) {
    return std::nullopt;
  }
  return masked(record.words[index], record.size);
}

// Of a block; 0: not known.
uint64_t block_bytes(const Record& record) {
  return record.size != 0 ? record.size : record.count >= 3 ? record.words[2] : 0;
}

}  // namespace

void ThreadStream::problem(std::string_view text) {
  if (problems_.size() < kMaxProblems) {
    problems_.push_back(fmt::format("chunk {}: {}", chunk_, text));
  } else if (problems_.size() == kMaxProblems) {
    problems_.emplace_back("and more problems like these");
  }
}

Event ThreadStream::make(EventKind kind, const Record& record) const {
  Event event;
  event.set_kind(kind);
  event.address = record.address;
  event.size = record.size & Event::kMaxSize;
  event.thread = thread_;
  event.location = names_->location(record.pc);
  if (is_atomic(record.type)) {
    event.set_atomic();
  }
  return event;
}

void ThreadStream::wait_for_stamp(const Event& event, std::optional<uint64_t> read,
                                  std::optional<uint64_t> write, int64_t since) {
  Event& access = events_.events.emplace_back(event);
  access.lo = since != kTimeMax ? std::min(from_, since) : std::min(from_, from_before_handler_);
  access.span_or_extra = static_cast<uint32_t>(records_);
  waiting_since_ = std::min(waiting_since_, access.lo);
  if (read || write) {
    access.has_hi = 1;
    specials_.push_back({events_.events.size() - 1, false, read, write});
  }
}

// The waiting events up to `end` become ready. `only_performed`: the intervals of those that may
// not have taken place yet stay open.
void ThreadStream::complete(size_t end, int64_t until, bool only_performed) {
  size_t specials = 0;
  for (size_t i = ready_; i != end; ++i) {
    Event& event = events_.events[i];
    const bool performed = !only_performed || records_since(event) >= 2;
    const int64_t hi = performed ? std::max(until, event.lo) : kTimeMax;
    const uint64_t span = static_cast<uint64_t>(hi) - static_cast<uint64_t>(event.lo);
    if (event.has_hi == 0 && span <= UINT32_MAX) {
      event.span_or_extra = static_cast<uint32_t>(span);
    } else if (event.has_hi == 0) {
      events_.complete(event, hi);
    } else {
      const Special& special = specials_[specials++];
      event.has_hi = 0;
      events_.complete(event, special.open ? kTimeMax : hi, special.read, special.write);
    }
  }
  ready_ = end;
  specials_.erase(specials_.begin(), specials_.begin() + static_cast<ptrdiff_t>(specials));
}

void ThreadStream::flush(int64_t until) {
  complete(events_.events.size(), until, false);
  waiting_since_ = kTimeMax;
}

// After what is ready; nothing is waiting.
void ThreadStream::add_ready(const Event& event, int64_t lo, int64_t hi,
                             std::optional<uint64_t> read, std::optional<uint64_t> write) {
  events_.add(event, lo, hi, read, write);
  ready_ = events_.events.size();
}

void ThreadStream::give(EventBlock& out) {
  out.clear();
  const size_t given = ready();
  if (given == 0) {
    return;
  }
  const auto end = events_.events.begin() + static_cast<ptrdiff_t>(given);
  if (given == ready_) {
    std::swap(out, events_);
    events_.events.assign(out.events.begin() + static_cast<ptrdiff_t>(given), out.events.end());
    out.events.resize(given);
  } else {
    // What is held back keeps its extras, by position.
    out.events.assign(events_.events.begin(), end);
    out.extras = events_.extras;
    events_.events.erase(events_.events.begin(), end);
  }
  for (Special& special : specials_) {
    special.event -= given;
  }
  interrupted_at_ -= std::min(interrupted_at_, given);
  ready_ -= given;
  held_ -= held_ == kNotHeld ? 0 : given;
  merge_repeated_loads(out);
}

size_t ThreadStream::take_cached(Decoder& decoder, size_t limit) {
  if (is_cut_) {
    return 0;
  }
  const size_t first = events_.events.size();
  const int64_t from_before = left_ && settled_ ? kTimeMax : from_before_handler_;
  Event event;
  event.thread = thread_;
  event.lo = std::min(from_, from_before);
  const size_t taken =
      decoder.take_cached(limit, [&](uint64_t key, uint64_t address, uint32_t& location) {
        if (location == Decoder::kUntagged) {
          location = names_->location(key_pc(key));
        }
        event.address = address;
        event.location = location;
        event.span_or_extra = static_cast<uint32_t>(++records_);
        event.size = key_size(key) & Event::kMaxSize;
        event.set_kind((key & 4) != 0 ? EventKind::kWrite : EventKind::kRead);
        events_.events.push_back(event);
        event.lo = from_;
      });
  if (taken != 0) {
    pieces_left_ += kPiecesPerRecord * taken;
    waiting_since_ = std::min({waiting_since_, from_, from_before});
    from_before_handler_ = kTimeMax;
    settle(first);
    flush_if_many();
  }
  return taken;
}

void ThreadStream::flush_if_many() {
  if (events_.events.size() - ready_ > kMaxWaiting) {
    flush(kTimeMax);
  }
  if (held_ != kNotHeld && events_.events.size() - held_ > kMaxHeld) {
    held_ = kNotHeld;
  }
}

void ThreadStream::add(const Record& record) {
  ++records_;
  pieces_left_ += kPiecesPerRecord;
  const size_t first = events_.events.size();
  if (left_ && settled_ && record.type != RecordType::kAtomicLoad) {
    from_before_handler_ = kTimeMax;
  }
  // Most records are such.
  const bool load = record.type == RecordType::kRead;
  if ((load || record.type == RecordType::kWrite) && record.size - 1 < kWidest) {
    wait_for_stamp(make(load ? EventKind::kRead : EventKind::kWrite, record));
    from_before_handler_ = kTimeMax;
    settle(first);
    return flush_if_many();
  }
  if (has_stamps(record.type) && record.count != 0 &&
      std::min(record.words[0], static_cast<uint64_t>(kTimeMax)) > static_cast<uint64_t>(cut_)) {
    is_cut_ = true;
  } else if (static_cast<int>(record.type) >= kRecordTypes) {
    problem(fmt::format("byte {}: record type {} is not known to this version", place_,
                        static_cast<int>(record.type)));
    ++lost_;
  } else if (!decode_record(record)) {
    problem(fmt::format("byte {}: a malformed record of type {}", place_,
                        static_cast<int>(record.type)));
    ++lost_;
  }
  if (has_stamps(record.type) && !distrusted_) {
    for (uint32_t i = 0; i < std::min(record.count, 2U); ++i) {
      latest_ = std::max(latest_, static_cast<int64_t>(
                                      std::min(record.words[i], static_cast<uint64_t>(kTimeMax))));
    }
  }
  from_before_handler_ = kTimeMax;
  settle(first);
  flush_if_many();
}

void ThreadStream::observe(int64_t since, int64_t until, int64_t patience) {
  if (records_ != records_observed_) {
    records_observed_ = records_;
    silent_since_ = until;
  }
  // A hook records up to two accesses before they are performed.
  const bool all = silent_since_ != kTimeMin && until - silent_since_ > patience;
  const std::vector<Event>& events = events_.events;
  size_t end = ready_;
  while (end != events.size() && (all || records_since(events[end]) >= 2)) {
    ++end;
  }
  complete(end, until, true);
  waiting_since_ = kTimeMax;
  for (size_t i = end; i != events.size(); ++i) {
    waiting_since_ = std::min(waiting_since_, events[i].lo);
  }
  from_ = std::max(from_, since);
  from_before_handler_ = std::max(from_before_handler_, since);
}

int64_t ThreadStream::promise() const {
  return std::min({from_, from_before_handler_, waiting_since_, held_since()});
}

void ThreadStream::gap() {
  had_gap_ = true;
  for (; open_units_ != 0; --open_units_) {
    wait_for_stamp(make(names_->may_cancel() ? kUnitCancel : EventKind::kUnitEnd, Record{}));
  }
}

void ThreadStream::finish() {
  flush(kTimeMax);
  held_ = kNotHeld;
}

void ThreadStream::distrust() {
  flush(kTimeMax);
  distrusted_ = true;
  cut_ = kTimeMax;
}

// Ends the intervals of what came before; `from_` moves on.
void ThreadStream::point(int64_t lo, int64_t hi, bool separates) {
  if (distrusted_) {
    return;
  }
  if (hi < from_) {
    // A signal handler can come between stamps and their records; its own records stand before them.
    if (stamped_in_chunk_) {
      problem(
          fmt::format("a time stamp lies {} cycles before an earlier one: the time-stamp "
                      "counters of this machine are not synchronised",
                      from_ - hi));
    }
    return;
  }
  stamped_in_chunk_ = true;
  // A lo that is the stamp of an earlier record says nothing about what was recorded since.
  flush(separates && lo > latest_ ? lo : hi);
  from_ = std::max(from_, separates ? hi : lo);
}

// Whether it drained the buffer is not known: what is left of it is its accesses.
void ThreadStream::add_unfinished(const Record& record) {
  begin_open(record);
  const RecordType type = record.type;
  const bool locked = type == RecordType::kAtomicReadModifyWrite;
  if (locked || type == RecordType::kAtomicLoad || type == RecordType::kFailedCompareExchange) {
    wait_for_stamp(make(EventKind::kRead, record));
  }
  if (locked || type == RecordType::kAtomicStore) {
    wait_for_stamp(make(EventKind::kWrite, record));
  }
}

// An atomic access or a fence that ends with the next stamp.
void ThreadStream::add_open_ended(const Record& record) {
  begin_open(record);
  switch (record.type) {
    case RecordType::kFence: {
      Event event = make(EventKind::kFence, record);
      event.address = 0;
      return wait_for_stamp(event);
    }
    case RecordType::kAtomicReadModifyWrite:
      return wait_for_stamp(make(EventKind::kReadModifyWrite, record), value_of(record, 2, 3),
                            value_of(record, 3, 4));
    case RecordType::kAtomicLoad:
      return wait_for_stamp(make(EventKind::kRead, record), value_of(record, 2, 3));
    default:
      return wait_for_stamp(make(EventKind::kWrite, record), {}, value_of(record, 2, 3));
  }
}

void ThreadStream::begin_open(const Record& record) {
  const int64_t begin = stamp_of(record, 0);
  if (is_new(begin)) {
    point(begin, begin, true);
  }
}

ThreadStream::Placed ThreadStream::place(const Record& record) {
  Placed placed;
  placed.has_stamp = record.count != 0 && !distrusted_;
  placed.waits = !placed.has_stamp;
  if (!placed.has_stamp) {
    return placed;
  }
  int64_t lo = stamp_of(record, 0);
  int64_t hi = record.count >= 2 ? stamp_of(record, 1) : lo;
  if (hi < lo) {
    problem(fmt::format("byte {}: an interval ends {} cycles before it begins", place_, lo - hi));
    std::swap(lo, hi);
  }
  // Program order sharpens the start. On a clock that goes backwards the interval gets longer.
  const bool backwards = hi < from_;
  placed.begin = backwards ? lo : std::max(lo, from_);
  placed.end = backwards ? from_ : hi;
  // Its stamp is older than what a handler recorded, some of which waits for its own: so does this.
  placed.waits = backwards && any_waiting();
  point(lo, hi, lo == hi || (record.flags & kSeparates) != 0);
  return placed;
}

void ThreadStream::add_placed(const Event& event, const Placed& placed,
                              std::optional<uint64_t> read, std::optional<uint64_t> write) {
  if (placed.waits) {
    wait_for_stamp(event, read, write, placed.has_stamp ? placed.begin : kTimeMax);
  } else {
    add_ready(event, placed.begin, placed.end, read, write);
  }
}

// Everything but plain accesses, ranges and bare stamps. Units and waits may come without a stamp.
void ThreadStream::add_ordered(const Record& record) {
  if ((record.flags & kUnfinished) != 0 && record.count != 0) {
    return add_unfinished(record);
  }
  if ((record.flags & kOpenEnd) != 0 && record.count != 0 && may_end_open(record.type)) {
    return add_open_ended(record);
  }
  const Placed placed = place(record);
  const auto add = [&](EventKind kind, std::optional<uint64_t> read = {},
                       std::optional<uint64_t> write = {}) {
    add_placed(make(kind, record), placed, read, write);
  };
  const auto add_bare = [&](EventKind kind, uint64_t address) {  // no bytes
    Event event = make(kind, record);
    event.address = address;
    event.size = 0;
    add_placed(event, placed);
  };
  const uint64_t address = record.address;

  switch (record.type) {
    case RecordType::kAtomicLoad:
      return add(EventKind::kRead, value_of(record, 2, 3));
    case RecordType::kAtomicStore:
      return add(EventKind::kWrite, {}, value_of(record, 2, 3));
    case RecordType::kAtomicReadModifyWrite:
      return add(EventKind::kReadModifyWrite, value_of(record, 2, 4), value_of(record, 3, 4));
    case RecordType::kFailedCompareExchange:
      add_bare(EventKind::kFence, 0);
      return add(EventKind::kRead, value_of(record, 2, 3));
    case RecordType::kFence:
      return add_bare(EventKind::kFence, address);
    case RecordType::kFork:
      return add_bare(EventKind::kFork, names_->thread(address));
    case RecordType::kJoin:
      return add_bare(EventKind::kJoin, names_->thread(address));
    case RecordType::kUnitBegin:
      ++open_units_;
      return add_bare(EventKind::kUnitBegin, names_->label(address));
    case RecordType::kUnitEnd:
    case RecordType::kUnitCancel:
      if (open_units_ != 0) {
        --open_units_;
        return add_bare(record.type == RecordType::kUnitEnd ? EventKind::kUnitEnd : kUnitCancel, 0);
      }
      if (!had_gap_) {
        stray_ends_.add({1, fmt::format("chunk {}: byte {}", chunk_, place_)});
      }
      return;
    case RecordType::kAllocate: {
      Event event = make(EventKind::kAllocate, record);
      event.size = static_cast<uint32_t>(record.words[2]) & Event::kMaxSize;
      return add_placed(event, placed);
    }
    case RecordType::kBlock:
    case RecordType::kBlockEnd: {
      Event event =
          make(record.type == RecordType::kBlock ? EventKind::kAllocate : EventKind::kFree, record);
      event.size = 0;
      const uint64_t bytes = block_bytes(record);
      return add_placed(event, placed, {}, bytes != 0 ? std::optional(bytes) : std::nullopt);
    }
    case RecordType::kCount: {
      Event event = make(EventKind::kCount, record);
      event.size = 0;
      return add_placed(event, placed, {}, record.words[2]);
    }
    case RecordType::kRequest: {
      Event event = make(EventKind::kRequest, record);
      event.size = 0;
      const uint64_t what = record.count >= 3 ? record.words[2] : 0;
      if (what == static_cast<uint64_t>(Waited::kThread)) {
        event.address = names_->thread(address);
      }
      return add_placed(event, placed, {}, what != 0 ? std::optional(what) : std::nullopt);
    }
    case RecordType::kThreadEnd:
      saw_end_ = true;
      return;
    default:
      if (const auto kind = kind_with_address(record.type)) {
        add_bare(*kind, address);
      }
      return;
  }
}

bool ThreadStream::add_range(const Record& record, uint64_t size, EventKind kind) {
  Event event = make(kind, record);
  uint64_t rest = size;
  // Past the budget the pieces are as large as they can be.
  const bool aligned = rest / kLargestPiece <= pieces_left_;
  if (aligned) {
    pieces_left_ -= rest / kLargestPiece;
  } else if (!names_->take_pieces(rest / Event::kMaxSize)) {
    return false;
  }
  while (rest != 0) {
    uint64_t piece = std::min<uint64_t>(rest, Event::kMaxSize);
    if (aligned) {
      const uint64_t before_granule = (-event.address) % kSmallestPiece;
      const uint64_t alignment = std::min(event.address & -event.address, kLargestPiece);
      piece = before_granule != 0     ? std::min(rest, before_granule)
              : rest < kSmallestPiece ? rest
              : event.address == 0    ? std::min(std::bit_floor(rest), kLargestPiece)
                                      : std::min(alignment, std::bit_floor(rest));
    }
    event.size = static_cast<uint32_t>(piece) & Event::kMaxSize;
    wait_for_stamp(event);
    event.address += piece;
    rest -= piece;
  }
  return true;
}

// False: the record is not what its type demands.
bool ThreadStream::decode_record(const Record& record) {
  const uint32_t size = record.size;
  const uint32_t aux = record.count;
  if (size != 0 && has_no_location(record.type)) {
    return false;
  }
  switch (record.type) {
    case RecordType::kRead:
    case RecordType::kWrite: {
      const EventKind kind =
          record.type == RecordType::kRead ? EventKind::kRead : EventKind::kWrite;
      return size > kWidest && add_range(record, size, kind);
    }
    case RecordType::kStamp: {
      const auto time =
          static_cast<int64_t>(std::min(record.words[0], static_cast<uint64_t>(kTimeMax)));
      point(time, time, true);
      return true;
    }
    case RecordType::kAtomicLoad:
    case RecordType::kAtomicStore:
    case RecordType::kAtomicReadModifyWrite:
    case RecordType::kFailedCompareExchange:
      if (aux < 2 || size == 0) {
        return false;
      }
      add_ordered(record);
      return true;
    case RecordType::kUnitBegin:
    case RecordType::kUnitEnd:
    case RecordType::kUnitCancel:
    case RecordType::kWait:
    case RecordType::kTry:
    case RecordType::kNotify:
    case RecordType::kSend:
    case RecordType::kReceive:
    case RecordType::kRequest:
      add_ordered(record);
      return true;
    case RecordType::kCount:
      if (aux < 3) {
        return false;
      }
      add_ordered(record);
      return true;
    case RecordType::kRangeRead:
    case RecordType::kRangeWrite:
      return aux >= 1 && add_range(record, record.words[0],
                                   record.type == RecordType::kRangeRead ? EventKind::kRead
                                                                         : EventKind::kWrite);
    case RecordType::kAllocate:
      if (aux < 3 || record.words[2] == 0 || record.words[2] > Event::kMaxSize ||
          record.address > ~record.words[2]) {
        return false;
      }
      add_ordered(record);
      return true;
    case RecordType::kBlock:
    case RecordType::kBlockEnd:
      if ((block_bytes(record) == 0 && record.type == RecordType::kBlock) ||
          record.address > ~block_bytes(record)) {
        return false;
      }
      add_ordered(record);
      return true;
    case RecordType::kLost:
      lost_ += aux >= 1 ? record.words[0] : 1;
      gap();
      return true;
    default:
      if (aux < 1) {
        return false;
      }
      add_ordered(record);
      return true;
  }
}

void ThreadStream::enter_chunk(uint64_t chunk) {
  chunk_ = chunk;
  stamped_in_chunk_ = false;
}

bool ThreadStream::take(Decoder& decoder, size_t limit) {
  Record record;
  for (; limit != 0 && !is_cut_; --limit) {
    limit -= take_cached(decoder, limit);
    if (limit == 0) {
      break;
    }
    place_ = decoder.place();
    switch (decoder.next(record)) {
      case Decoder::Step::kRecord:
        break;
      case Decoder::Step::kMalformed:
        problem(
            fmt::format("byte {}: no record; the rest of the chunk is skipped", decoder.place()));
        gap();
        return true;
      default:
        return false;
    }
    add(record);
  }
  if (distrusted_) {
    flush(kTimeMax);
  }
  return !is_cut_;
}

}  // namespace tsomon::capture
