#include "tso/model/finding.h"

#include <algorithm>
#include <map>
#include <tuple>
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

uint32_t begin_of(const std::vector<CycleEdge>& cycle) {
  uint32_t begin = UINT32_MAX;
  for (const CycleEdge& edge : cycle) {
    begin = std::min({begin, edge.from, edge.to});
  }
  return begin;
}

std::string kind_of(const Violation& violation, const std::vector<CycleEdge>& cycle,
                    const EventBlock& events, const UnitTable& units, size_t names) {
  const auto place = [&](uint32_t e) {
    const Event& event = events.events[e];
    const bool named = !is(event, kinds::kAccesses) || (event.size == 0 && event.address < names);
    return std::tuple(event.location, event.kind(), named ? event.address + 1 : uint64_t{0});
  };
  using Place = decltype(place(0));
  std::vector<std::tuple<uint32_t, Place, Place>> steps;
  steps.reserve(cycle.size());
  for (size_t i = 0; i < cycle.size(); ++i) {
    const UnitId unit = units.of_event(cycle[i].from);
    steps.emplace_back(unit == UnitTable::kNone ? Interner::kNone : units[unit].label,
                       place(cycle[(i + cycle.size() - 1) % cycle.size()].to),
                       place(cycle[i].from));
  }
  std::rotate(steps.begin(), std::min_element(steps.begin(), steps.end()), steps.end());
  std::string kind;
  const auto put = [&kind](uint64_t value) {
    for (int bits = 0; bits < 64; bits += 8) {
      kind.push_back(static_cast<char>(value >> bits));
    }
  };
  put(violation.verdict == Verdict::kDefinite ? 0 : violation.complete ? 1 : 2);
  for (const auto& [label, to, from] : steps) {
    put(label);
    for (const Place& one : {to, from}) {
      put((static_cast<uint64_t>(std::get<0>(one)) << 8) | static_cast<uint64_t>(std::get<1>(one)));
      put(std::get<2>(one));
    }
  }
  return kind;
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
  if (Repeats& repeats = finding.violation.repeats; index != nullptr && repeats.found.all() != 0) {
    repeats.first = (*index)[repeats.first];
    repeats.last = (*index)[repeats.last];
  }
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
