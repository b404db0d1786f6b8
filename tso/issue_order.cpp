#include "tso/issue_order.h"

#include "tso/refinement.h"

namespace tsomon {

bool has_values(const Trace& trace) { return trace.complete && trace.has_read_values(); }

std::vector<Edge> issue_order_from_values(const Relation& issues, const AccessIndex& accesses,
                                          uint64_t max_undirected) {
  RelationOptions options = issues.options();
  options.model = MemoryModel::kTso;
  const Relation effects(issues.trace(), issues.locations(), options);
  const auto refined = refine(effects, AccessIndex(effects), {true, max_undirected, {}});
  std::vector<Edge> known;
  if (!refined || refined->values_contradict) {
    return known;
  }
  const auto shows = [&](uint32_t e, uint32_t f) {
    return !effects.is_store(f) && effects.source(f) == Relation::kNever &&
           refined->order.reaches(e, f);
  };
  for (const Edge& edge : build_event_graph(issues, accesses, max_undirected).undirected) {
    if (shows(edge.from, edge.to)) {
      known.push_back(edge);
    } else if (shows(edge.to, edge.from)) {
      known.push_back({edge.to, edge.from});
    }
  }
  return known;
}

}  // namespace tsomon
