// Atomic sets that are objects: allocated, accessed, given back.
#include <utility>
#include <vector>

#include "online/set_policy/atomic_set_policy.h"

namespace tsomon {

void AtomicSetPolicy::allocate(const EventBlock& block, const Event& event, uint64_t index) {
  if (mode_ != Mode::kObjects) {
    if (choice_ != SetChoice::kAuto || mode_ == Mode::kDeclared) {
      return;
    }
    restart(Mode::kObjects);
  }
  ++graph_.statistics().objects;
  ended_.clear();
  if (!objects_.allocate(event, block.hi(event), index, &ended_)) {
    ++graph_.statistics().uncertain;
  }
  for (const LiveObjects::Ended& ended : ended_) {
    end_object(ended);
  }
}

void AtomicSetPolicy::end_object(const LiveObjects::Ended& ended) {
  if (ended.slot == LiveObjects::kNone) {
    return;
  }
  for (OpenUnits& thread : threads_) {
    thread.end_object(ended.slot, [this](Node node) { finish_unit(node); });
  }
  graph_.statistics().uncertain += ended.certain ? 0 : 1;
  std::erase_if(held_, [&](Held& held) {
    if (held.object != ended.slot) {
      return false;
    }
    for (DetectedStep& step : held.cycle.steps) {
      step.kind = ended.certain ? step.kind : EdgeKind::kOverlap;
    }
    tell(held.cycle, held.repeated);
    return true;
  });
}

void AtomicSetPolicy::access_object(const EventBlock& block, const Event& event, uint64_t index) {
  Current now{&event, index, block.hi(event), kNone, event.kind() != EventKind::kRead};
  ++accesses_;
  if (!held_.empty()) {
    report_held(event.lo);
  }
  if (event.size == 0 || objects_.is_stray(event, now.hi)) {
    return;
  }
  const LocationId here = find_location(event);
  const LocationKey& key = index_.key(here);
  const auto ended = [&](const CellInfo& info) { return info.birth != objects_.birth(info.set); };
  // One cell whose object has all of the location needs no further look.
  const CellInfo& first = infos_[here];
  if (!first.used || first.next != kNoCell || ended(first) || !objects_.holds(first.set, key)) {
    bool any_live = false;
    for (CellId at = here; at != kNoCell && info(at).used; at = info(at).next) {
      any_live = any_live || !ended(info(at));
    }
    if (!any_live) {
      drop_cells(here);
    }
    objects_.for_each_overlapping(key, [&](LiveObjects::Slot slot) {
      bool known = false;
      for (CellId at = here; at != kNoCell && info(at).used; at = info(at).next) {
        known = known || (info(at).set == slot && info(at).birth == objects_.birth(slot));
      }
      if (!known) {
        add_cell(here, slot, objects_.birth(slot));
      }
    });
  }
  for (CellId at = here; at != kNoCell && info(at).used; at = info(at).next) {
    if (ended(info(at))) {
      continue;
    }
    object_ = now.set = info(at).set;
    now.shaky = !objects_.note(object_, event, now.hi);
    graph_.statistics().uncertain += now.shaky ? 1 : 0;
    now.unit = unit_of(event, index, object_);
    access_cell(now, at, here);
    object_ = LiveObjects::kNone;
  }
}

void AtomicSetPolicy::on_cycle(const DetectedCycle& found, bool repeated) {
  DetectedCycle cycle = found;
  // That merged units cannot be told apart holds for all edges together, overlapping ones included.
  for (DetectedStep& step : cycle.steps) {
    if (step.unit.merged > 0 && graph_.statistics().uncertain > 0) {
      step.kind = EdgeKind::kOverlap;
    }
  }
  if (object_ == LiveObjects::kNone || !cycle.certain()) {
    tell(cycle, repeated);
  } else {
    held_.push_back({std::move(cycle), object_, objects_.latest(object_), repeated});
  }
}

// What began before `now` is known.
void AtomicSetPolicy::report_held(int64_t now) {
  std::erase_if(held_, [&](const Held& held) {
    if (held.until >= now) {
      return false;
    }
    tell(held.cycle, held.repeated);
    return true;
  });
}

void AtomicSetPolicy::finish() {
  for (const Held& held : held_) {
    tell(held.cycle, held.repeated);
  }
  held_.clear();
  while (!open_pairs_.empty()) {  // units that never ended
    const auto& sides = open_pairs_.front().sides;
    settle(sides[0].node != kNone ? sides[0].node : sides[1].node);
  }
}

}  // namespace tsomon
