// A record around an operation that the runtime performs or calls: begun, with its first stamp,
// before the operation and completed after it.
#pragma once

#include "monitor/probe/noise.h"
#include "monitor/probe/runtime.h"
#include "monitor/probe/watched_memory.h"

namespace tsomon::probe {

// Cycles; what happens between two locked operations that follow one another closely is nothing.
inline constexpr uint64_t kLockedShare = 400;

// Whether there is more to record of an atomic than the fence that it may be.
inline bool is_chosen_atomic(const volatile void* address, uint32_t size = 1) {
  return TSOMON_LIKELY(!options.only_sets) ||
         any_watched(reinterpret_cast<uint64_t>(address), size);
}

// A record around the access. `values` follow its two stamps; of more than 8 bytes they are digests, the same for the same contents.
class Operation {
 public:
  // `recent`: how many cycles old the last stamp may be to be the first of the two.
  Operation(RecordType type, const volatile void* address, uint32_t size, uint32_t values,
            uint64_t pc, uint64_t recent)
      : values_(values) {
    noise();
    begin(type, address, size, pc, recent);
  }
  // Of an atomic of the program. On memory that is not watched what is locked becomes a fence, and
  // nothing else is recorded.
  Operation(RecordType type, const volatile void* address, uint32_t size, uint32_t values,
            uint64_t pc)
      : values_(values) {
    noise();
    const bool move = type == RecordType::kAtomicLoad || type == RecordType::kAtomicStore;
    if (type == RecordType::kFence || is_chosen_atomic(address, size)) {
      begin(type, address, size, pc, move ? options.stamp_max_age : kLockedShare);
    } else if (!move) {
      is_fence_ = true;
      values_ = 0;
      begin(RecordType::kFence, nullptr, 0, pc, kLockedShare);
    }
  }
  // `locked`: the access was a locked instruction or mfence.
  void done(bool locked, uint64_t first = 0, uint64_t second = 0) {
    finish(capture::Ending::kDone, locked, values_, first, second);
  }
  // Of a locked instruction or MFENCE. Threads that ask for one another exchange a flag and then
  // load another one, and a stamp between the two makes the gap between them some ten times longer:
  // what other threads hold in their store buffers has drained when the load comes. So where an
  // atomic load came next the last time, the stamp is left to what comes next: an atomic load has
  // it behind it, and it ends the intervals of both; anything else is preceded by it. (Elsewhere
  // it is taken here: the next record may be long in coming, and until then the operation would
  // not have ended.) A plain access that is cached would not be preceded by it, so then it is
  // taken here, too. It is a stamp after the operation also where nothing lies between but
  // the return from the hook: that is a load, which is performed after the locked instruction is
  // visible.
  void done_locked(uint64_t first = 0, uint64_t second = 0) {
    if (context_ == nullptr) {
      return;
    }
    bool& load_follows = context_->load_follows[slot_];
    const bool left = load_follows && options.stamp_max_age != 0 && !interrupted() &&
                      !capture::expects_access(context_->encoder);
    load_follows = false;  // until it does again (begin_open)
    context_->locked_slot = slot_;
    if (!left) {
      done(true, first, second);
      context_->locked = context_->encoder.end;
      return;
    }
    capture::end_record(context_->encoder, capture::Ending::kOpen, true, 0, values_, first, second);
    context_->stamped = kNowhere;
    context_->begun = context_->encoder.end;
    context_->owed = context_->encoder.end;
    context_->locked = context_->encoder.end;
  }
  // Without a stamp: the thread's next one ends the interval.
  void done_openly(uint64_t value) {
    if (context_ == nullptr) {
      return;
    }
    if (interrupted()) {
      return done(false, value);
    }
    capture::end_record(context_->encoder, capture::Ending::kOpen, true, 0, 1, value, 0);
  }
  // It turned out to have been a load without effect; the value is not known.
  void was_load() { finish(capture::Ending::kWasLoad, false, 0, 0, 0); }
  // A compare-exchange that failed.
  void failed(uint64_t seen) {
    finish(is_fence_ ? capture::Ending::kDone : capture::Ending::kFailed, true,
           values_ < 1 ? values_ : 1, seen, 0);
  }

 private:
  void begin(RecordType type, const volatile void* address, uint32_t size, uint64_t pc,
             uint64_t recent) {
    context_ = writable();
    slot_ = slot_of(pc);
    if (context_ == nullptr) {
      return;
    }
    interruptions_ = *const_cast<volatile uint32_t*>(&local.interruptions);
    const uint64_t lo = recent_stamp(*context_, recent);
    capture::begin_record(context_->encoder, type, reinterpret_cast<uint64_t>(address), size, pc,
                          lo);
  }
  void finish(capture::Ending ending, bool locked, uint32_t values, uint64_t first,
              uint64_t second) {
    if (context_ == nullptr) {
      return;
    }
    const uint64_t now = stamp_in_order(*context_, locked);
    // What a handler recorded meanwhile stands behind this record and lies before its second stamp.
    const bool alone = !interrupted();
    capture::end_record(context_->encoder, ending, alone, now, values, first, second);
    context_->since = 0;
    context_->stamped = alone ? context_->encoder.end : kNowhere;
  }
  bool interrupted() const {
    return *const_cast<volatile uint32_t*>(&local.interruptions) != interruptions_;
  }

  Context* context_ = nullptr;
  uint32_t values_;
  uint32_t slot_ = 0;      // in Context::load_follows
  bool is_fence_ = false;  // all that is recorded of it
  uint32_t interruptions_ = 0;
};

}  // namespace tsomon::probe
