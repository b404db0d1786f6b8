#include "offline/linearizability/decide.h"

#include "offline/linearizability/monitors.h"

namespace tsomon::linearizability {

Decision decide(const History& history, const Part& part, const SearchBounds& bounds) {
  Decision decision;
  if (const auto seen = monitor(part)) {
    decision.answer = seen->linearizable ? Answer::kLinearizable : Answer::kViolation;
    decision.suspects = seen->suspects;
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
