#include "tso/check/witness_values.h"

#include <algorithm>
#include <unordered_map>

#include "tso/support/work.h"

namespace tsomon {
namespace {

class WitnessValuesCheck {
 public:
  WitnessValuesCheck(const AnalysedTrace& in, const AccessIndex& accesses,
                     const RecordedValues& values, const Violation& found)
      : in_(in), accesses_(accesses), values_(values) {
    for (size_t i = 0; i < found.witness.size(); ++i) {
      const Step& step = found.witness[i];
      if (step.commit) {
        effect_[step.event] = i;
      } else {
        issue_[step.event] = i;
        if (!is(event(step.event), kinds::kBuffered)) {
          effect_[step.event] = i;
        }
      }
    }
  }

  bool allow() const {
    return std::all_of(issue_.begin(), issue_.end(),
                       [&](const auto& entry) { return may_find(entry.first, entry.second); });
  }

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFFU;

  const Event& event(uint32_t e) const { return in_.trace.events[e]; }
  bool stores(uint32_t e) const {
    return is(event(e), kind_mask(EventKind::kWrite) | kind_mask(EventKind::kReadModifyWrite));
  }

  bool may_find(uint32_t read, size_t at) const {
    const auto recorded = in_.trace.read_value(event(read));
    const LocationId location = in_.relation.locations().of_event(read);
    if (!recorded || location == LocationTable::kNone || !values_.usable(location)) {
      return true;
    }
    uint32_t last = kNone;
    for (const auto& [store, issued] : issue_) {
      spend(1);
      if (store == read || !stores(store) || !overlap(store, read)) {
        continue;
      }
      const auto effect = effect_.find(store);
      const bool waits = issued < at && (effect == effect_.end() || effect->second > at);
      if ((waits && event(store).thread == event(read).thread) ||
          in_.relation.locations().of_event(store) != location) {
        return true;  // it is forwarded, or there are different sizes
      }
      if (effect != effect_.end() && effect->second < at &&
          (last == kNone || effect_.at(last) < effect->second)) {
        last = store;
      }
    }
    if (last == kNone) {
      return true;
    }
    const auto found = in_.trace.write_value(event(last));
    // Nobody knows when the events in front of a slice took effect.
    return last < in_.trace.pending_prefix || !found || *found == *recorded ||
           any_between(last, read, *recorded);
  }

  // A store of the value may take effect between the two.
  bool any_between(uint32_t last, uint32_t read, uint64_t value) const {
    const LocationId location = in_.relation.locations().of_event(read);
    for (const LocationId other : in_.relation.locations().overlapping(location)) {
      for (const ThreadAccesses& theirs : accesses_.at(other)) {
        for (const uint32_t store : theirs.writes) {
          const auto written = stores(store) ? in_.trace.write_value(event(store)) : std::nullopt;
          const bool known = other == location && written && *written != value;
          if (!known && store != read && issue_.count(store) == 0 &&
              (store < in_.trace.pending_prefix || !is_kept_away(store, last, read))) {
            return true;
          }
        }
      }
    }
    return false;
  }

  // It comes before the one, or after the other, or so does what the witness has of them.
  bool is_kept_away(uint32_t store, uint32_t last, uint32_t read) const {
    const size_t begin = effect_.at(last);
    const size_t end = issue_.at(read);
    return std::any_of(effect_.begin(), effect_.end(), [&](const auto& entry) {
      spend(2);
      return (entry.second <= begin && in_.graph.order.reaches(store, entry.first)) ||
             (entry.second >= end && in_.graph.order.reaches(entry.first, store));
    });
  }

  bool overlap(uint32_t a, uint32_t b) const {
    return event(a).address < event(b).address + event(b).size &&
           event(b).address < event(a).address + event(a).size;
  }

  const AnalysedTrace& in_;
  const AccessIndex& accesses_;
  const RecordedValues& values_;
  std::unordered_map<uint32_t, size_t> issue_;
  std::unordered_map<uint32_t, size_t> effect_;
};

}  // namespace

bool values_allow(const AnalysedTrace& in, const AccessIndex& accesses,
                  const RecordedValues& values, const Violation& found) {
  return !in.trace.complete || in.trace.sampled ||
         WitnessValuesCheck(in, accesses, values, found).allow();
}

}  // namespace tsomon
