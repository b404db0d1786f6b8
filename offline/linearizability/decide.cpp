#include "offline/linearizability/decide.h"

#include "offline/linearizability/monitors.h"

namespace tsomon::linearizability {

Decision decide(const History& history, const Part& part, const SearchBounds& bounds,
                bool want_order) {
  Decision decision;
  if (auto seen = monitor(part, want_order)) {
    decision.answer = seen->linearizable ? Answer::kLinearizable : Answer::kViolation;
    decision.suspects = std::move(seen->suspects);
    decision.order = std::move(seen->order);
    decision.work = part.ops.size();
    return decision;
  }
  SearchResult result = search(history, part, bounds);
  decision.answer = result.answer;
  decision.work = result.work + part.ops.size();
  decision.order = std::move(result.order);
  return decision;
}

}  // namespace tsomon::linearizability
