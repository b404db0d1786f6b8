#include "offline/explain/segments.h"

#include <algorithm>

#include "tso/support/work.h"

namespace tsomon::explain {

bool below(const SegmentSet& lower, const SegmentSet& upper) {
  spend(1 + lower.size() * upper.size());
  return std::all_of(lower.begin(), lower.end(), [&](const Segment& inner) {
    return std::any_of(upper.begin(), upper.end(),
                       [&](const Segment& outer) { return outer.contains(inner); });
  });
}

SegmentSet merged(const SegmentSet& a, const SegmentSet& b) {
  SegmentSet all = a;
  all.insert(all.end(), b.begin(), b.end());
  std::sort(all.begin(), all.end());
  SegmentSet result;
  for (const Segment& next : all) {
    if (!result.empty() && result.back().operation == next.operation &&
        next.first <= result.back().last) {
      result.back().last = std::max(result.back().last, next.last);
    } else {
      result.push_back(next);
    }
  }
  return result;
}

bool MinimalSets::covers(const SegmentSet& set) const {
  return std::any_of(sets_.begin(), sets_.end(),
                     [&](const SegmentSet& known) { return below(known, set); });
}

bool MinimalSets::add(const SegmentSet& set) {
  if (covers(set)) {
    return false;
  }
  sets_.erase(std::remove_if(sets_.begin(), sets_.end(),
                             [&](const SegmentSet& known) { return below(set, known); }),
              sets_.end());
  sets_.push_back(set);
  return true;
}

std::vector<SegmentSet> common_repairs(const std::vector<std::vector<SegmentSet>>& lists,
                                       size_t max_sets, bool* complete) {
  std::vector<SegmentSet> common = {{}};
  for (const std::vector<SegmentSet>& list : lists) {
    MinimalSets next;
    for (const SegmentSet& so_far : common) {
      for (const SegmentSet& more : list) {
        if (next.sets().size() < max_sets) {
          next.add(merged(so_far, more));
        } else {
          *complete = false;
        }
      }
    }
    common = next.sets();
  }
  return lists.empty() ? std::vector<SegmentSet>() : common;
}

}  // namespace tsomon::explain
