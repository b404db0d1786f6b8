// The objects of a program: which bytes were allocated together, and are at this moment.
//
// Source      Theory section 7: the fields of one object as an atomic set. Bookkeeping of this
//             project's own.
// Purpose     Finds the object of an access, and says where that is not certain: the interval of an
//             access of another thread reaches over the object's beginning or its end, so that the
//             access may be to what lies at the same place afterwards or lay there before.
// Contract    Events come in the order of the start of their intervals. An object ends with its
//             kFree or with the next kAllocate on any of its bytes.
// Complexity  O(log objects); what lies in no object is one hash look-up.
// Memory      64 bytes for every live object. Cache lines that hold no object are remembered while
//             accesses to them may not be over: at most kMaxStrays.
// Misses      Allocations of more than Event::kMaxSize bytes are no events.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

#include <tsl/robin_map.h>

#include "tso/model/trace.h"

namespace tsomon {

// How far the intervals of accesses reach: the furthest, and the furthest of another thread.
struct Reach {
  int64_t hi = kTimeMin;
  int64_t hi_of_others = kTimeMin;
  ThreadId thread = 0;

  void add(ThreadId from, int64_t to) {
    if (from == thread) {
      hi = hi < to ? to : hi;
    } else if (to > hi) {
      hi_of_others = hi;
      hi = to;
      thread = from;
    } else if (to > hi_of_others) {
      hi_of_others = to;
    }
  }
  // Which thread the second one was is not known.
  void add(const Reach& more) {
    add(more.thread, more.hi);
    hi_of_others = hi_of_others < more.hi_of_others ? more.hi_of_others : hi_of_others;
  }
  // Of threads other than this one.
  int64_t of_others(ThreadId than) const { return than == thread ? hi_of_others : hi; }
};
class LiveObjects {
 public:
  using Slot = uint32_t;
  static constexpr Slot kNone = 0xFFFFFFFFU;

  // Ends `slot`; its number is given out again. `certain`: no access to it may have come later.
  struct Ended {
    Slot slot = kNone;
    bool certain = true;
  };

  // Appends the objects that this one takes the place of. False: an earlier access may have been to
  // it.
  bool allocate(const Event& event, int64_t hi, uint64_t index, std::vector<Ended>* ended);
  Ended free(const Event& event);

  // No object has a byte of the access, which is remembered. Cheap when that was so before.
  bool is_stray(const Event& event, int64_t hi);

  // Calls visit(slot) for every object with a byte of the range.
  template <typename Visit>
  void for_each_overlapping(const LocationKey& key, const Visit& visit) const {
    const uint64_t last = key.address + (key.size - 1);
    for (auto at = first_near(key.address); at != live_.end() && at->first <= last; ++at) {
      if (at->first + (objects_[at->second].size - 1) >= key.address) {
        visit(at->second);
      }
    }
  }

  // An access to the object. False: it may have come before the object began.
  bool note(Slot slot, const Event& event, int64_t hi) {
    Object& object = objects_[slot];
    object.accesses.add(event.thread, hi);
    return object.thread == event.thread || object.begin_hi < event.lo;
  }

  // When the accesses to it are over.
  int64_t latest(Slot slot) const { return objects_[slot].accesses.hi; }
  // Differs from that of every other object that had or will have the slot.
  uint32_t birth(Slot slot) const { return objects_[slot].birth; }
  LocationKey key(Slot slot) const { return {objects_[slot].address, objects_[slot].size}; }
  uint64_t begin(Slot slot) const { return objects_[slot].begin; }  // index of its allocation
  bool holds(Slot slot, const LocationKey& key) const {
    const Object& object = objects_[slot];
    return key.address >= object.address && key.address - object.address <= object.size &&
           object.size - (key.address - object.address) >= key.size;
  }
  size_t size() const { return live_.size(); }
  bool any() const { return any_; }  // there ever was one

 private:
  static constexpr uint64_t kLineShift = 6;
  static constexpr uint64_t kMaxLines = 64;  // of an access that is remembered by its lines
  static constexpr size_t kMaxStrays = size_t{1} << 16;

  struct Object {
    uint64_t address = 0;
    uint32_t size = 0;
    uint32_t birth = 0;
    ThreadId thread = 0;
    int64_t begin_hi = 0;
    uint64_t begin = 0;
    Reach accesses;
  };
  struct Stray {
    Reach accesses;
    bool empty_line = false;  // no object has a byte of the line
  };
  using Live = std::map<uint64_t, Slot>;

  Live::const_iterator first_near(uint64_t address) const {
    const auto at = live_.upper_bound(address);
    return at == live_.begin() ? at : std::prev(at);
  }
  bool overlaps_any(const LocationKey& key) const;
  Ended end(Live::const_iterator at, const Event& by);
  bool forget_strays(const Event& event, Reach* accesses);
  void remember_stray(const Event& event, int64_t hi);
  void drop_old_strays(int64_t now);

  std::vector<Object> objects_;
  std::vector<Slot> free_;
  Live live_;                               // by address
  tsl::robin_map<uint64_t, Stray> strays_;  // by line
  Reach everywhere_;                        // of strays whose lines are not remembered
  size_t drop_at_ = 4096;
  bool any_ = false;
};

}  // namespace tsomon
