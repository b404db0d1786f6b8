// The probes of a plan, set group by group.
//
// Contract    All that it is made of lives on, and the probes go with it. The plan may grow.
// Misses      Accesses that the kernel does not probe: the plan says so in its notes.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "monitor/attach/hits_to_events.h"
#include "monitor/attach/plan.h"
#include "monitor/attach/uprobes.h"
#include "monitor/process/target.h"
#include "tso/support/result.h"

namespace tsomon::attach {

class SetProbes {
 public:
  SetProbes(const Target& target, Plan& plan, Uprobes& probes, HitsToEvents& events)
      : target_(target), plan_(plan), probes_(probes), events_(events) {}

  // Sets those of the groups from `first` on, and tells `events` since when they are live.
  Result<void> set_from(size_t first);
  bool has(uint32_t group) const { return held_[group] != nullptr; }
  void remove(uint32_t group) { held_[group] = nullptr; }
  void remove_all() { held_.clear(); }

 private:
  Result<void> set(uint32_t group);
  Result<void> leave_out_refused(uint32_t group, const std::string& file,
                                 std::vector<ProbePlace>* places);

  const Target& target_;
  Plan& plan_;
  Uprobes& probes_;
  HitsToEvents& events_;
  std::vector<ProbeHold> held_;  // by group
};

}  // namespace tsomon::attach
