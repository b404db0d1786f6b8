#include "decoders/capture/decoder.h"

#include <cstring>

namespace tsomon::capture {
namespace {

template <typename T>
uint64_t extended(T value) {
  return static_cast<uint64_t>(static_cast<int64_t>(value));
}

void set_site(Record& record, uint64_t key, uint64_t address) {
  record = Record();
  record.type = key_type(key);
  record.size = key_size(key);
  record.pc = key_pc(key);
  record.address = address;
}

bool is_plain(RecordType type) { return type == RecordType::kRead || type == RecordType::kWrite; }

}  // namespace

Decoder::Decoder() : entries_(kSlots + 1), details_(kSlots + 1) {}

void Decoder::start(std::string_view tokens) {
  tokens_ = tokens;
  cursor_ = 0;
  phase_ = Phase::kToken;
  last_ = kNoSlot;
  stamp_ = 0;
  bases_ = {};
  stops_ = false;
  has_queued_ = false;
  for (const uint32_t slot : used_) {
    entries_[slot] = Entry();
    details_[slot] = Details();
  }
  used_.clear();
  entries_[kNoSlot] = Entry();
}

void Decoder::stop_at(const Position& position) {
  stops_ = true;
  stop_ = position;
}

template <typename T>
bool Decoder::take(T& value) {
  if (tokens_.size() - cursor_ < sizeof value) {
    return false;
  }
  std::memcpy(&value, tokens_.data() + cursor_, sizeof value);
  cursor_ += sizeof value;
  return true;
}

Decoder::Step Decoder::malformed() {
  cursor_ = token_;
  tokens_ = tokens_.substr(0, cursor_);
  phase_ = Phase::kToken;
  return Step::kMalformed;
}

bool Decoder::begin_token() {
  token_ = cursor_;
  if (!take(first_)) {
    return false;
  }
  switch (static_cast<Run>(first_ & 3)) {
    case Run::kNone:
      phase_ = Phase::kRest;
      return true;
    case Run::kShort: {
      uint16_t word = 0;
      phase_ = Phase::kRun;
      const bool whole = take(word);
      target_.slot = word % kSlots;
      target_.count = word / kSlots;
      return whole && target_.count != 0;
    }
    case Run::kLong: {
      uint16_t low = 0;
      uint8_t high = 0;
      phase_ = Phase::kRun;
      const bool whole = take(low) && take(high);
      target_.slot = low % kSlots;
      target_.count = low / kSlots + 16U * high;
      return whole && target_.count != 0 && target_.count <= kMaxCount;
    }
    default:
      return false;
  }
}

bool Decoder::stamp_before() const {
  const auto control = static_cast<Control>(first_ >> kFormShift);
  return static_cast<Site>((first_ >> kSiteShift) & 3) == Site::kControl &&
         control >= Control::kBefore16 && control <= Control::kBefore64;
}

bool Decoder::is_nothing() const {
  return static_cast<Site>((first_ >> kSiteShift) & 3) == Site::kControl &&
         static_cast<Control>(first_ >> kFormShift) == Control::kNothing;
}

bool Decoder::stops_in_run() const {
  return stops_ && token_ == stop_.end && last_ == stop_.slot &&
         entries_[last_].count == stop_.count;
}

Decoder::Step Decoder::next(Record& record) {
  for (;;) {
    if (has_queued_) {
      has_queued_ = false;
      record = queued_;
      return Step::kRecord;
    }
    switch (phase_) {
      case Phase::kToken:
        // After the position: the token there was an operation under way.
        if (stops_ && (cursor_ == tokens_.size() || cursor_ > stop_.end ||
                       (cursor_ == stop_.end && stop_.count == 0))) {
          stops_ = false;
          return Step::kStop;
        }
        if (cursor_ == tokens_.size()) {
          return Step::kEnd;
        }
        if (!begin_token()) {
          return malformed();
        }
        break;
      case Phase::kRun:
        if (stops_in_run()) {
          stops_ = false;
          return Step::kStop;
        }
        if (at_target()) {
          phase_ = Phase::kRest;
          break;
        }
        return step(record);
      case Phase::kRest:
        phase_ = Phase::kToken;
        if (is_nothing()) {
          entries_[last_].count = 0;
          break;
        }
        return rest(record);
    }
  }
}

// The next cached access.
Decoder::Step Decoder::step(Record& record) {
  const uint64_t key = entries_[last_].next;
  const uint32_t slot = key_slot(key);
  Entry& entry = entries_[slot];
  if (key == 0 || entry.count == kMaxCount || !is_plain(key_type(key))) {
    return malformed();
  }
  const bool reached = slot == target_.slot && entry.count + 1 == target_.count;
  if (reached && stamp_before() && stops_ && token_ == stop_.end && slot == stop_.slot &&
      stop_.count == target_.count) {
    stops_ = false;
    return Step::kStop;
  }
  const uint64_t address = cached_address(entry, bases_);
  set_site(record, key, address);
  advance(entry, bases_, address);
  ++entry.count;
  last_ = slot;
  if (reached && stamp_before()) {
    queued_ = record;
    phase_ = Phase::kToken;
    const Step stamp = rest(record);
    has_queued_ = stamp == Step::kRecord;
    return stamp;
  }
  return Step::kRecord;
}

bool Decoder::control(Record& record) {
  record = Record();
  record.type = RecordType::kStamp;
  record.count = 1;
  switch (static_cast<Control>(first_ >> kFormShift)) {
    case Control::kStamp16:
    case Control::kBefore16: {
      uint16_t delta = 0;
      const bool whole = take(delta);
      stamp_ += delta;
      record.words[0] = stamp_;
      return whole;
    }
    case Control::kStamp32:
    case Control::kBefore32: {
      uint32_t delta = 0;
      const bool whole = take(delta);
      stamp_ += delta;
      record.words[0] = stamp_;
      return whole;
    }
    case Control::kStamp64:
    case Control::kBefore64: {
      const bool whole = take(stamp_);
      record.words[0] = stamp_;
      return whole;
    }
    case Control::kLost:
      record.type = RecordType::kLost;
      return take(record.words[0]);
    case Control::kDrain:
      record.type = RecordType::kFence;
      record.flags = kSeparates | kOpenEnd;
      record.count = 2;
      record.words[0] = stamp_;
      record.pc = key_pc(entries_[last_].key);
      return entries_[last_].key != 0;
    default:
      return false;
  }
}

// What stands after the run.
Decoder::Step Decoder::rest(Record& record) {
  const auto site = static_cast<Site>((first_ >> kSiteShift) & 3);
  if (site == Site::kControl) {
    const bool has_run = static_cast<Run>(first_ & 3) != Run::kNone;
    if (stamp_before() && !has_run) {
      return malformed();
    }
    entries_[last_].count = has_run ? 0 : entries_[last_].count;
    return control(record) ? Step::kRecord : malformed();
  }
  uint64_t key = entries_[last_].next;
  if (site == Site::kKnown) {
    uint16_t slot = 0;
    if (!take(slot) || slot >= kSlots) {
      return malformed();
    }
    key = entries_[slot].key;
  } else if (site == Site::kNew && !take(key)) {
    return malformed();
  }
  if (key == 0) {
    return malformed();
  }
  const uint32_t slot = key_slot(key);
  Entry& previous = entries_[last_];
  Entry& entry = entries_[slot];
  Details& details = details_[slot];
  const bool was_counted = entry.count != 0;
  previous.count = 0;
  previous.next = key;
  if (entry.key != key) {
    if (entry.key == 0) {
      used_.push_back(slot);
    }
    const uint32_t count = entry.count;
    entry = Entry();
    entry.key = key;
    entry.count = count;
    details = Details();
  }
  const uint64_t cached = cached_address(entry, bases_);
  const uint64_t last = last_address(entry);
  const uint64_t recent = bases_.recent();
  uint64_t address = cached;
  bool whole = true;
  switch (static_cast<Form>((first_ >> kFormShift) & 7)) {
    case Form::kCached:
      break;
    case Form::kLast8: {
      int8_t delta = 0;
      whole = take(delta);
      address = last + extended(delta);
      break;
    }
    case Form::kLast16: {
      int16_t delta = 0;
      whole = take(delta);
      address = last + extended(delta);
      break;
    }
    case Form::kLast32: {
      int32_t delta = 0;
      whole = take(delta);
      address = last + extended(delta);
      break;
    }
    case Form::kWhole:
      whole = take(address);
      break;
    case Form::kBehind:
      address = recent + details.behind;
      break;
    case Form::kBehind16: {
      int16_t delta = 0;
      whole = take(delta);
      address = recent + extended(delta);
      break;
    }
    case Form::kBehind32: {
      int32_t delta = 0;
      whole = take(delta);
      address = recent + extended(delta);
      break;
    }
  }
  if (!whole) {
    return malformed();
  }
  if (address == cached) {
    advance(entry, bases_, address);
  } else {
    learn(entry, details, bases_, address, (key & kOtherKey) == 0, was_counted);
  }
  entry.count = 0;
  last_ = slot;
  set_site(record, key, address);
  if ((first_ & kExtras) != 0 && !extras(record)) {
    return malformed();
  }
  return Step::kRecord;
}

bool Decoder::word(uint32_t width, uint64_t& difference) {
  difference = 0;
  switch (width & 3) {
    case 1: {
      int16_t value = 0;
      const bool whole = take(value);
      difference = extended(value);
      return whole;
    }
    case 2: {
      int32_t value = 0;
      const bool whole = take(value);
      difference = extended(value);
      return whole;
    }
    case 3:
      return take(difference);
    default:
      return true;
  }
}

bool Decoder::extras(Record& record) {
  uint8_t head = 0;
  uint8_t widths = 0;
  if (!take(head)) {
    return false;
  }
  if (head == kShortPoint) {
    uint16_t later = 0;
    const bool whole = take(later);
    stamp_ += later;
    record.count = 1;
    record.flags = kSeparates;
    record.words[0] = stamp_;
    return whole && has_stamps(record.type);
  }
  record.count = head & 7;
  if (record.count > kMaxWords || (record.count != 0 && !take(widths))) {
    return false;
  }
  const bool open = (head & kFlagOpen) != 0;
  record.flags = ((head & kFlagSeparates) != 0 ? kSeparates : 0) | (open ? kOpenEnd : 0);
  const bool stamps = has_stamps(record.type);
  uint64_t& value = details_[last_].value;
  for (uint32_t i = 0; i < record.count; ++i) {
    uint64_t difference = 0;
    if (!word(widths >> (2 * i), difference)) {
      return false;
    }
    if (stamps && i < 2) {
      if (!(open && i == 1)) {
        stamp_ += difference;
        record.words[i] = stamp_;
      }
    } else {
      value += difference;
      record.words[i] = value;
    }
  }
  return (head & kTwoParts) == 0 || (stamps && record.count == 1 && second_part(record));
}

bool Decoder::second_part(Record& record) {
  record.count = 2;
  record.flags = kSeparates;
  if (cursor_ == tokens_.size()) {
    record.flags |= kUnfinished;
    return true;
  }
  uint8_t head = 0;
  uint8_t widths = 0;
  if (!take(head) || !take(widths)) {
    return false;
  }
  const auto ending = static_cast<Ending>(head & 3);
  const uint32_t values = (head >> 3) & 3;
  if (values > 2) {
    return false;
  }
  if ((head & kInterrupted) != 0) {
    record.flags = 0;
  }
  uint64_t difference = 0;
  if (ending == Ending::kOpen) {
    record.flags |= kOpenEnd;
  } else {
    if (!word(widths, difference)) {
      return false;
    }
    stamp_ += difference;
    record.words[1] = stamp_;
  }
  if (ending == Ending::kFailed) {
    record.type = RecordType::kFailedCompareExchange;
  } else if (ending == Ending::kWasLoad) {
    record.type = RecordType::kAtomicLoad;
  }
  uint64_t& value = details_[last_].value;
  for (uint32_t i = 0; i < values; ++i) {
    if (!word(widths >> (2 + 2 * i), difference)) {
      return false;
    }
    value += difference;
    record.words[record.count++] = value;
  }
  return true;
}

}  // namespace tsomon::capture
