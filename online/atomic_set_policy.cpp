#include "online/atomic_set_policy.h"

#include <algorithm>

namespace tsomon {

AtomicSetPolicy::Thread& AtomicSetPolicy::thread(ThreadId id) {
  if (id >= threads_.size()) {
    threads_.resize(id + 1);
  }
  threads_[id].units.resize(std::max<size_t>(threads_[id].units.size(), sets()));
  return threads_[id];
}

// Whether units with this label are declared on the set; those that name no set are on all of them.
bool AtomicSetPolicy::declared(uint32_t label, uint32_t set) {
  if (label >= declared_.size()) {
    declared_.resize(label + 1);
  }
  auto& known = declared_[label];
  if (known.size() != sets()) {
    known.assign(sets(), true);
    const auto names = unit_sets(symbols_.labels.text(label));
    for (uint32_t i = 0; i < sets() && !names.empty(); ++i) {
      known[i] = !symbols_.sets.empty() &&
                 std::find(names.begin(), names.end(), symbols_.sets[i].name) != names.end();
    }
  }
  return known[set];
}

void AtomicSetPolicy::refresh_sets() {
  size_t members = 0;
  for (const AtomicSet& set : symbols_.sets) {
    members += set.members.size();
  }
  if (members == known_members_ && symbols_.sets.size() == known_sets_) {
    return;
  }
  known_members_ = members;
  known_sets_ = symbols_.sets.size();
  declared_.clear();
  for (LocationId id = 0; id < locations_.size(); ++id) {
    if (index_.contains(id)) {
      // What was accessed before is not known by the new sets.
      ++graph_.statistics().late_events;
      find_sets(id);
    }
  }
}

void AtomicSetPolicy::find_sets(LocationId id) {
  auto& accesses = locations_[id];
  const auto known = [&](uint32_t set) {
    return std::any_of(accesses.begin(), accesses.end(),
                       [&](const SetAccesses& one) { return one.set == set; });
  };
  if (symbols_.sets.empty()) {
    accesses.resize(1);
    return;
  }
  for (uint32_t set = 0; set < symbols_.sets.size(); ++set) {
    const auto& members = symbols_.sets[set].members;
    const bool member = std::any_of(members.begin(), members.end(), [&](const LocationKey& key) {
      return overlap(key, index_.key(id));
    });
    if (member && !known(set)) {
      accesses.emplace_back().set = set;
    }
  }
}

void AtomicSetPolicy::add(const EventBlock& block, uint64_t first_index) {
  refresh_sets();
  for (size_t i = 0; i < block.events.size(); ++i) {
    const Event& event = block.events[i];
    const uint64_t index = first_index + i;
    switch (event.kind()) {
      case EventKind::kUnitBegin:
        begin(thread(event.thread), event, index);
        break;
      case EventKind::kUnitEnd:
        end(thread(event.thread));
        break;
      case EventKind::kWait:
        wait(thread(event.thread), index);
        break;
      default:
        if (is(event, kinds::kAccesses) && !is(event, kinds::kLocks)) {
          access(block, event, index);
        }
        break;
    }
  }
}

void AtomicSetPolicy::begin(Thread& thread, const Event& event, uint64_t index) {
  const auto label = static_cast<uint32_t>(event.address);
  for (uint32_t set = 0; set < sets(); ++set) {
    OpenUnit& unit = thread.units[set];
    if (!unit.open && declared(label, set)) {
      unit = {true, thread.frames.size(), label, index, kNone};
    }
  }
  thread.frames.push_back(label);
}

void AtomicSetPolicy::finish(OpenUnit& unit) {
  if (unit.node != kNone) {
    graph_.unit(unit.node).finished = true;
    unit.node = kNone;
  }
}

void AtomicSetPolicy::end(Thread& thread) {
  if (thread.frames.empty()) {
    return;
  }
  thread.frames.pop_back();
  for (OpenUnit& unit : thread.units) {
    if (unit.open && unit.depth == thread.frames.size()) {
      finish(unit);
      unit.open = false;
    }
  }
}

void AtomicSetPolicy::wait(Thread& thread, uint64_t index) {
  for (OpenUnit& unit : thread.units) {
    if (unit.open) {
      finish(unit);
      unit.begin = index + 1;
    }
  }
}

void AtomicSetPolicy::lost(ThreadId id) {
  for (ThreadId t = 0; t < threads_.size(); ++t) {
    if (id == Detector::kNoThread || id == t) {
      for (OpenUnit& unit : threads_[t].units) {
        finish(unit);
        unit.open = false;
      }
      threads_[t].frames.clear();
    }
  }
}

AtomicSetPolicy::Node AtomicSetPolicy::unit_of(const Event& event, uint64_t index, uint32_t set) {
  OpenUnit& open = thread(event.thread).units[set];
  if (open.open && open.node != kNone) {
    graph_.unit(open.node).last = index;
    return open.node;
  }
  const uint32_t number = symbols_.sets.empty() ? Interner::kNone : set;
  const Node node = graph_.add_unit({event.thread, open.open ? open.label : Interner::kNone,
                                     open.open ? open.begin : index, index, !open.open, 0},
                                    number);
  if (open.open) {
    open.node = node;
  }
  return node;
}

void AtomicSetPolicy::link(const Point& from, const Event& event, uint64_t index, Node unit) {
  if (from.unit == kNone || from.unit == unit) {
    return;
  }
  if (from.thread != event.thread && from.hi >= event.lo) {
    ++graph_.statistics().uncertain;
  }
  graph_.add_directed(from.unit, unit, EdgeKind::kConflict,
                      [&](DetectedAccess& source, DetectedAccess& target) {
                        target = access_of(event, index);
                        source = target;
                        source.index = from.index;
                        source.location = from.location;
                        source.thread = from.thread;
                        source.kind = from.kind;
                      });
}

void AtomicSetPolicy::access(const EventBlock& block, const Event& event, uint64_t index) {
  bool is_new = false;
  const LocationId here = index_.find_or_add(event.address, event.size, &is_new);
  if (is_new) {
    if (here >= locations_.size()) {
      locations_.resize(here + 1);
    }
    locations_[here].clear();
    find_sets(here);
  }
  const bool writes = event.kind() != EventKind::kRead;
  for (SetAccesses& mine : locations_[here]) {
    const Node unit = unit_of(event, index, mine.set);
    const auto conflicts = [&](const SetAccesses& theirs) {
      link(theirs.write, event, index, unit);
      if (writes) {
        for (const Point& read : theirs.reads) {
          link(read, event, index, unit);
        }
      }
    };
    conflicts(mine);
    for (const LocationId other : index_.others(here)) {
      for (const SetAccesses& theirs : locations_[other]) {
        if (theirs.set == mine.set) {
          conflicts(theirs);
        }
      }
    }
    const Point point{unit, index, block.hi(event), event.location, event.thread, event.kind()};
    if (writes) {
      mine.write = point;
      mine.reads.clear();
    } else if (mine.reads.empty() || mine.reads.back().unit != unit) {
      mine.reads.push_back(point);
    }
  }
}

void AtomicSetPolicy::after_sweep() {
  const auto follow = [&](Node node) { return node == kNone ? kNone : graph_.moved_to(node); };
  for (Thread& thread : threads_) {
    for (OpenUnit& unit : thread.units) {
      unit.node = follow(unit.node);
    }
  }
  for (LocationId id = 0; id < locations_.size(); ++id) {
    if (!index_.contains(id)) {
      continue;
    }
    bool empty = true;
    for (SetAccesses& accesses : locations_[id]) {
      accesses.write.unit = follow(accesses.write.unit);
      // Units that were merged count once.
      size_t kept = 0;
      for (size_t i = 0; i < accesses.reads.size(); ++i) {
        Point read = accesses.reads[i];
        read.unit = follow(read.unit);
        const auto end = accesses.reads.begin() + static_cast<ptrdiff_t>(kept);
        if (read.unit != kNone &&
            std::none_of(accesses.reads.begin(), end,
                         [&](const Point& other) { return other.unit == read.unit; })) {
          accesses.reads[kept++] = read;
        }
      }
      accesses.reads.resize(kept);
      empty = empty && accesses.write.unit == kNone && accesses.reads.empty();
    }
    const LocationKey& key = index_.key(id);
    if (empty && (key.size != 0 || key.address >= LocationIndex::kMaxNamed)) {
      locations_[id].clear();
      index_.erase(id);
    }
  }
}

}  // namespace tsomon
