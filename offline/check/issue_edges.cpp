#include "offline/check/issue_edges.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tso/support/none.h"
#include "tso/support/work.h"

namespace tsomon {
EffectNeighbours::EffectNeighbours(const Relation& relation)
    : before(relation.trace().events.size(), kNone), behind(before) {
  const auto takes_effect = [&](uint32_t e) {
    return is(relation.trace().events[e], kinds::kNodes) && !relation.is_store(e) &&
           relation.source(e) == Relation::kNever;
  };
  for (ThreadId thread = 0; thread < relation.threads(); ++thread) {
    const auto events = relation.of_thread(thread);
    spend(4 * events.size());
    uint32_t last = kNone;
    for (const uint32_t e : events) {
      last = takes_effect(e) ? e : last;
      before[e] = last;
    }
    uint32_t next = kNone;
    for (size_t at = events.size(); at-- > 0;) {
      behind[events[at]] = next;
      next = takes_effect(events[at]) ? events[at] : next;
    }
  }
}

void add_issue_edges(const Relation& relation, const AccessIndex& accesses,
                     const EffectNeighbours& neighbours, std::vector<Edge>* edges) {
  if (relation.options().order != TraceOrder::kIssue) {
    return;
  }
  std::vector<std::vector<int64_t>> issued(accesses.lists());
  for (uint32_t number = 0; number < issued.size(); ++number) {
    issued[number] =
        earliest_from(accesses.list(number), [&](uint32_t e) { return relation.hi(e); });
  }
  const auto n = static_cast<uint32_t>(relation.trace().events.size());
  for (uint32_t f = 0; f < n; ++f) {
    const bool later_effect = relation.is_store(f) || relation.source(f) != Relation::kNever;
    for_each_conflicting_list(relation, accesses, f, [&](uint32_t number, ThreadId) {
      const std::vector<int64_t>& times = issued[number];
      const auto after = std::lower_bound(times.begin(), times.end(), relation.lo(f));
      if (after == times.begin()) {
        return;
      }
      const uint32_t e = accesses.list(number)[static_cast<size_t>(after - times.begin()) - 1];
      const uint32_t from = neighbours.before[e];
      if (from == kNone) {
        return;
      }
      edges->push_back({from, f});
      if (later_effect && neighbours.behind[f] != kNone) {
        edges->push_back({from, neighbours.behind[f]});
      }
    });
  }
}

}  // namespace tsomon
