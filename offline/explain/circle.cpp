#include "offline/explain/circle.h"

#include <algorithm>
#include <optional>

#include "tso/support/work.h"

namespace tsomon::explain {
namespace {

struct CircleProblem {
  RootCauseProblem problem;
  std::vector<uint32_t> events;  // by access
  bool complete = true;
};

void add_accesses(const OrderedTrace& ordered, const std::vector<UnitId>& circle,
                  const std::vector<std::vector<uint32_t>>& events, CircleProblem* made) {
  const Relation& relation = ordered.relation();
  const bool tso = relation.options().model == MemoryModel::kTso;
  std::map<ThreadId, uint32_t> threads;
  for (uint32_t operation = 0; operation < circle.size(); ++operation) {
    for (const uint32_t e : events[circle[operation]]) {
      spend(4);
      if (!ordered.counts(e)) {
        continue;
      }
      const Event& event = ordered.trace().events[e];
      const auto thread =
          threads.try_emplace(event.thread, static_cast<uint32_t>(threads.size())).first->second;
      const bool store = relation.is_store(e);
      const bool loads_memory = relation.source(e) == Relation::kNever;
      made->problem.accesses.push_back({thread, operation, relation.position(e),
                                        !tso || (!store && loads_memory),
                                        !tso || store || relation.drains(e)});
      made->events.push_back(e);
    }
  }
}

void add_conflicts(const OrderedTrace& ordered, CircleProblem* made) {
  const LocationTable& locations = ordered.relation().locations();
  std::map<LocationId, std::vector<uint32_t>> at;  // accesses
  for (uint32_t i = 0; i < made->events.size(); ++i) {
    at[locations.of_event(made->events[i])].push_back(i);
  }
  for (uint32_t i = 0; i < made->events.size(); ++i) {
    for (const LocationId other : locations.overlapping(locations.of_event(made->events[i]))) {
      const auto list = at.find(other);
      if (list == at.end()) {
        continue;
      }
      for (const uint32_t j : list->second) {
        spend(4);
        if (ordered.relation().conflict(made->events[i], made->events[j]) &&
            ordered.place(made->events[i]) < ordered.place(made->events[j])) {
          if (made->problem.conflicts.size() >= kMaxConflicts) {
            made->complete = false;
            return;
          }
          made->problem.conflicts.push_back({i, j});
        }
      }
    }
  }
}

}  // namespace

CircleCauses causes_of(const OrderedTrace& ordered, const std::vector<UnitId>& circle,
                       const std::vector<std::vector<uint32_t>>& events, const CodeMap& code,
                       const RootCauseBounds& bounds) {
  CircleProblem made;
  add_accesses(ordered, circle, events, &made);
  add_conflicts(ordered, &made);
  made.problem.ordered = [&](uint32_t a, uint32_t b) {
    return ordered.certainly_before(made.events[a], made.events[b]);
  };
  const RootCauses causes = find_root_causes(made.problem, bounds);
  CircleCauses result;
  result.complete = made.complete && causes.complete;

  const Trace& trace = ordered.trace();
  const auto index_of = [&](const std::vector<uint32_t>& unit, uint32_t position) {
    return static_cast<size_t>(std::partition_point(unit.begin(), unit.end(),
                                                    [&](uint32_t e) {
                                                      return ordered.relation().position(e) <
                                                             position;
                                                    }) -
                               unit.begin());
  };
  MinimalSets minimal;
  std::map<SegmentSet, std::vector<Occurrence>> all;
  for (const SegmentSet& set : causes.minimal) {
    SegmentSet blocks;
    std::vector<Occurrence> found;
    bool has_code = true;
    for (const Segment& segment : set) {
      const UnitId unit = circle[segment.operation];
      const uint32_t method = code.method(trace, ordered.units()[unit], events[unit]);
      const size_t first = index_of(events[unit], segment.first);
      const size_t last = index_of(events[unit], segment.last);
      has_code = has_code && method != CodeMap::kNone;
      if (has_code) {
        const Segment block = code.block_of(method, trace, events[unit], first, last);
        blocks = merged(blocks, {block});
        found.push_back({block, unit, events[unit][first], events[unit][last]});
      }
    }
    if (!has_code) {
      ++result.without_code;
    } else if (minimal.add(blocks)) {
      all.try_emplace(blocks, std::move(found));
    }
  }
  for (const SegmentSet& blocks : minimal.sets()) {
    result.sets[blocks] = all[blocks];
  }
  return result;
}

}  // namespace tsomon::explain
