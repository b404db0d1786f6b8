#include "offline/explain/executions.h"

#include <algorithm>
#include <utility>

namespace tsomon::explain {
namespace {

// Of one execution, whose circles can each be ruled out.
CircleCauses causes_of_execution(const OrderedTrace& ordered, const Question& question,
                                 const UnitTable& units, const CodeMap& code,
                                 const RootCauseBounds& bounds) {
  CircleCauses all;
  const auto events = events_of_units(ordered.trace(), ordered.units());
  for (const std::vector<UnitId>& circle : ordered.circles()) {
    CircleCauses one = causes_of(ordered, circle, events, code, bounds);
    all.complete = all.complete && one.complete;
    all.without_code += one.without_code;
    for (auto& [set, occurrences] : one.sets) {
      for (Occurrence& found : occurrences) {
        found.first = question.origin[found.first];
        found.last = question.origin[found.last];
        found.unit = units.of_event(found.first);
      }
      all.sets.try_emplace(set, std::move(occurrences));
    }
  }
  return all;
}

}  // namespace

std::optional<std::vector<CircleCauses>> causes_in_executions(const ViolatedSlice& slice,
                                                              const UnitTable& units,
                                                              const OrderOptions& order,
                                                              const CodeMap& code,
                                                              const RootCauseBounds& bounds) {
  const Question& question = slice.question();
  const auto first = OrderedTrace::make(question.trace, order, {});
  if (!first) {
    return std::nullopt;
  }
  std::vector<Edge> open;
  for (const Edge& edge : first->open()) {
    if (slice.has(question.origin[edge.from]) && slice.has(question.origin[edge.to])) {
      open.push_back(edge);
    }
  }
  if (open.empty() || open.size() > kMaxOpen) {
    return std::nullopt;
  }
  std::vector<CircleCauses> executions;
  for (uint32_t choice = 0; choice < (1U << open.size()); ++choice) {
    std::vector<Edge> chosen = open;
    for (size_t i = 0; i < open.size(); ++i) {
      if ((choice >> i & 1U) != 0) {
        std::swap(chosen[i].from, chosen[i].to);
      }
    }
    const auto ordered = OrderedTrace::make(question.trace, order, {chosen});
    const bool as_chosen = ordered && std::all_of(chosen.begin(), chosen.end(), [&](const Edge& e) {
                             return ordered->place(e.from) < ordered->place(e.to);
                           });
    if (as_chosen && !ordered->circles().empty()) {
      executions.push_back(causes_of_execution(*ordered, question, units, code, bounds));
    }
  }
  return executions;
}

}  // namespace tsomon::explain
