// Which objects a trace has, and who accessed them.
//
// Source      Theory section 7.
// Purpose     An object is what was allocated together; it ends where it is given back, or something else begins in its
//             place. With overlapping intervals it may not be certain to which of two an access was: it is `shaky`.
// Complexity  O(events) times the logarithm of the objects that live at once. Thread-safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

#include "tso/model/location_table.h"
#include "tso/model/trace.h"
#include "tso/support/none.h"
#include "tso/support/work.h"

namespace tsomon {

inline bool is_data(const Event& event) {
  return is(event, kinds::kAccesses) && !is(event, kinds::kLocks);
}

// Blocks of memory that are no sets have no size (decoders/capture/record.h).
inline bool begins_object(const Event& event) {
  return event.kind() == EventKind::kAllocate && event.size != 0;
}

// An access to a set. `shaky`: it may belong to another object.
struct SetAccess {
  uint32_t event = 0;
  bool shaky = false;
};

struct Object {
  uint32_t begin = 0;    // its kAllocate
  uint32_t end = kNone;  // the event that ends it
  std::vector<SetAccess> accesses;
};

// Which objects there were, and who accessed them.
class Objects {
 public:
  explicit Objects(const Trace& trace) : trace_(trace) {
    for (uint32_t e = 0; e < trace.events.size(); ++e) {
      const Event& event = trace.events[e];
      if (begins_object(event)) {
        allocate(e);
      } else if (event.kind() == EventKind::kFree) {
        if (const auto found = live_.find(event.address); found != live_.end()) {
          end(found, e);
        }
      } else if (is_data(event) && event.size != 0) {
        access(e);
      }
    }
  }

  const std::vector<Object>& all() const { return objects_; }
  bool certain() const { return certain_; }  // nothing shaky

 private:
  using Live = std::map<uint64_t, uint32_t>;  // by address
  struct Stray {
    LocationKey key;
    ThreadId thread;
    int64_t hi;
  };

  LocationKey key(uint32_t object) const {
    const Event& begin = trace_.events[objects_[object].begin];
    return {begin.address, begin.size};
  }
  bool concurrent(uint32_t e, uint32_t f) const {
    return trace_.events[e].thread != trace_.events[f].thread &&
           trace_.hi(trace_.events[e]) >= trace_.events[f].lo;
  }

  void end(Live::iterator at, uint32_t e) {
    Object& object = objects_[at->second];
    object.end = e;
    for (SetAccess& access : object.accesses) {
      access.shaky = access.shaky || concurrent(access.event, e);
      certain_ = certain_ && !access.shaky;
    }
    live_.erase(at);
  }

  // The first live object that may overlap with what begins at `address`.
  Live::iterator first_near(uint64_t address) {
    auto at = live_.upper_bound(address);
    return at == live_.begin() ? at : std::prev(at);
  }

  void allocate(uint32_t e) {
    const Event& event = trace_.events[e];
    const LocationKey mine{event.address, event.size};
    for (auto at = first_near(mine.address);
         at != live_.end() && at->first < mine.address + mine.size;) {
      const auto next = std::next(at);
      if (overlap(key(at->second), mine)) {
        end(at, e);
      }
      at = next;
    }
    live_[mine.address] = static_cast<uint32_t>(objects_.size());
    objects_.push_back({e, kNone, {}});
    // An access of another thread that begins earlier may be to this object all the same.
    size_t kept = 0;
    spend(strays_.size());
    for (const Stray& stray : strays_) {
      if (stray.hi < event.lo) {
        continue;
      }
      strays_[kept++] = stray;
      certain_ = certain_ && (stray.thread == event.thread || !overlap(stray.key, mine));
    }
    strays_.resize(kept);
  }

  void access(uint32_t e) {
    const Event& event = trace_.events[e];
    const LocationKey mine{event.address, event.size};
    bool owned = false;
    for (auto at = first_near(mine.address);
         at != live_.end() && at->first < mine.address + mine.size; ++at) {
      if (!overlap(key(at->second), mine)) {
        continue;
      }
      Object& object = objects_[at->second];
      spend(1);
      object.accesses.push_back({e, concurrent(object.begin, e)});
      certain_ = certain_ && !object.accesses.back().shaky;
      owned = true;
    }
    if (!owned) {
      strays_.push_back({mine, event.thread, trace_.hi(event)});
      if (strays_.size() >= strays_checked_at_) {
        std::erase_if(strays_, [&](const Stray& stray) { return stray.hi < event.lo; });
        strays_checked_at_ = 2 * strays_.size() + 1024;
      }
    }
  }

  const Trace& trace_;
  std::vector<Object> objects_;
  Live live_;
  std::vector<Stray> strays_;  // accesses to no object that may not be over
  size_t strays_checked_at_ = 1024;
  bool certain_ = true;
};

}  // namespace tsomon
