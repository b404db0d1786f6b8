// What events outside of a window rule out of what is found in it.
//
// Purpose     Two rules are about the whole run. A notification is lost only if none comes later
//             (deadlocks.h). And where an input does not say which loads and stores are atomic (those
//             of a processor or of breakpoints do not), memory that is accessed with atomic
//             read-modify-writes is taken to be atomic altogether. So what is found in a window is
//             put to all events of the input in the end.
// Complexity  O(log(places)) for an exchange or a notification, nothing for other events.
// Memory      By ranges that are exchanged, and condition variables with their threads.
// Thread-safety: const access is safe.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "tso/model/event.h"

namespace tsomon::predict {

class OutsideEvents {
 public:
  // Any event of the input; `number`: its place in the order of the run.
  void look(const Event& event, uint64_t number) {
    if (is(event, kind_mask(EventKind::kReadModifyWrite) | kind_mask(EventKind::kNotify))) {
      add(event, number);
    }
  }

  // The first bytes that two accesses have in common are exchanged somewhere.
  bool exchanged(const Event& a, const Event& b) const;
  // Another thread notifies the condition variable of the wait, at this number or later.
  bool notified(const Event& wait, uint64_t from) const;

 private:
  void add(const Event& event, uint64_t number);

  std::map<uint64_t, uint32_t> exchanges_;  // sizes, by address; named locations have none
  std::set<uint64_t> named_;
  uint32_t longest_ = 0;
  std::map<std::tuple<uint64_t, uint32_t, ThreadId>, uint64_t> notifications_;  // the last
};

// Of an input that does not say what is atomic: accesses to bytes that are exchanged in the trace
// become atomic ones. O(n log(places)).
void take_exchanged_for_atomic(std::vector<Event>& events);

}  // namespace tsomon::predict
