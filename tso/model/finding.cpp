#include "tso/model/finding.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tsomon {

const char* edge_name(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::kProgramOrder:
      return "program-order";
    case EdgeKind::kConflict:
      return "conflict";
    case EdgeKind::kValues:
      return "implied";
    case EdgeKind::kReordering:
      return "reordering";
    case EdgeKind::kThread:
      return "thread";
    case EdgeKind::kOverlap:
      return "overlap";
    case EdgeKind::kHandOver:
      return "hand-over";
  }
  return "";
}

bool has_certain_orders(const Violation& violation) {
  return std::all_of(violation.cycle.begin(), violation.cycle.end(), [](const CycleEdge& edge) {
    return edge.kind == EdgeKind::kProgramOrder || edge.kind == EdgeKind::kConflict ||
           edge.kind == EdgeKind::kThread || edge.kind == EdgeKind::kHandOver;
  });
}

Finding make_finding(Violation violation, const EventBlock& events, const UnitTable& units,
                     const std::vector<uint64_t>* index) {
  // The units on the cycle whole, the events of the witness, and what the edges lead to.
  std::vector<uint32_t> wanted = violation.slice;
  for (const CycleEdge& edge : violation.cycle) {
    wanted.insert(wanted.end(), {edge.from, edge.to});
    const Unit& unit = units[edge.unit];
    wanted.push_back(unit.first_event);
    for (uint32_t e = unit.first_event; e <= unit.last_event; ++e) {
      if (units.of_event(e) == edge.unit) {
        wanted.push_back(e);
      }
    }
  }
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());

  Finding finding;
  const auto place = [&](uint32_t e) {
    return static_cast<uint32_t>(std::lower_bound(wanted.begin(), wanted.end(), e) -
                                 wanted.begin());
  };
  for (const uint32_t e : wanted) {
    finding.events.append(events, e, e + 1);
    finding.index.push_back(index == nullptr ? e : (*index)[e]);
  }
  std::vector<UnitId> of_event;
  std::vector<Unit> own;
  std::map<UnitId, UnitId> number;
  for (const uint32_t e : wanted) {
    const UnitId unit = units.of_event(e);
    if (unit == UnitTable::kNone) {
      of_event.push_back(UnitTable::kNone);
      continue;
    }
    const auto [known, is_new] = number.try_emplace(unit, static_cast<UnitId>(own.size()));
    if (is_new) {
      own.push_back(units[unit]);
      own.back().first_event = place(units[unit].first_event);
    }
    own[known->second].last_event = place(e);
    of_event.push_back(known->second);
  }
  finding.units = UnitTable(std::move(own), std::move(of_event));
  finding.violation = std::move(violation);
  for (CycleEdge& edge : finding.violation.cycle) {
    edge.unit = number[edge.unit];
    edge.from = place(edge.from);
    edge.to = place(edge.to);
  }
  for (uint32_t& e : finding.violation.slice) {
    e = place(e);
  }
  for (Step& step : finding.violation.witness) {
    step.event = place(step.event);
  }
  return finding;
}

}  // namespace tsomon
