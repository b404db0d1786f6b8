#include "monitor/judge/cycle_finding.h"

#include <algorithm>
#include <map>

#include "tso/check/witness.h"
#include "tso/model/units.h"

namespace tsomon {
namespace {

Event boundary_of(EventKind kind, ThreadId thread, uint64_t address) {
  Event event;
  event.set_kind(kind);
  event.thread = thread;
  event.address = address;
  return event;
}

}  // namespace

Finding finding_of_cycle(const DetectedCycle& cycle, Property property,
                         const RelationOptions& relation) {
  std::map<uint64_t, Event> lines;
  for (const DetectedStep& step : cycle.steps) {
    lines.emplace(step.from.index, event_of(step.from));
    lines.emplace(step.to.index, event_of(step.to));
  }
  for (const DetectedStep& step : cycle.steps) {
    if (step.unit.label == Interner::kNone) {
      continue;
    }
    // A unit that begins where another one of its thread ends is the part after a condition wait.
    const auto add = [&](uint64_t index, EventKind kind, uint64_t address) {
      const auto [at, is_new] = lines.emplace(index, boundary_of(kind, step.unit.thread, address));
      if (!is_new && at->second.kind() != kind &&
          is(at->second, kind_mask(EventKind::kUnitBegin) | kind_mask(EventKind::kUnitEnd))) {
        at->second = boundary_of(EventKind::kWait, step.unit.thread, 0);
      }
    };
    add(step.unit.first, EventKind::kUnitBegin, step.unit.label);
    if (step.unit.finished) {
      add(step.unit.last, EventKind::kUnitEnd, 0);
    }
  }
  Finding finding;
  for (const auto& [index, event] : lines) {
    const auto time = static_cast<int64_t>(index);
    finding.events.add(event, time, time);
    finding.index.push_back(index);
  }
  const auto place = [&](uint64_t index) {
    return static_cast<uint32_t>(
        std::lower_bound(finding.index.begin(), finding.index.end(), index) -
        finding.index.begin());
  };
  finding.units = UnitTable(finding.events);
  const UnitTable& units = finding.units;
  finding.violation.verdict = cycle.certain() ? Verdict::kDefinite : Verdict::kPossible;
  for (const DetectedStep& step : cycle.steps) {
    const uint32_t from = place(step.from.index);
    const uint32_t to = place(step.to.index);
    // What a thread does comes after its start, and before its end is waited for.
    const bool other_thread = step.from.thread != step.to.thread;
    const EdgeKind kind =
        step.kind == EdgeKind::kProgramOrder && other_thread ? EdgeKind::kThread : step.kind;
    finding.violation.cycle.push_back({units.of_event(from), from, to, kind});
    finding.violation.slice.insert(finding.violation.slice.end(), {from, to});
  }
  auto& candidate = finding.violation.slice;
  std::sort(candidate.begin(), candidate.end());
  candidate.erase(std::unique(candidate.begin(), candidate.end()), candidate.end());
  // Every store committing at once, in the order of the input, is one of the executions.
  auto& witness = finding.violation.witness;
  for (const uint32_t e : candidate) {
    witness.push_back({false, e});
    if (is(finding.events.events[e], kinds::kBuffered)) {
      witness.push_back({true, e});
    }
  }
  if (property != Property::kAtomicSets &&
      !check_witness(finding.events, witness,
                     {property, relation, WitnessValues::kIgnored, false})) {
    witness.clear();  // what orders its events inside of a thread has left the history
  }
  return finding;
}

bool shows(const Finding& finding, const DetectedCycle& cycle) {
  return std::any_of(
      finding.violation.cycle.begin(), finding.violation.cycle.end(), [&](const CycleEdge& edge) {
        const uint64_t unit = finding.index[edge.from];
        return std::any_of(cycle.steps.begin(), cycle.steps.end(), [&](const DetectedStep& step) {
          return step.unit.first <= unit && unit <= step.unit.last &&
                 step.unit.thread == finding.events.events[edge.from].thread;
        });
      });
}

DetectorPolicy policy_of(Property property) {
  switch (property) {
    case Property::kScSerializability:
      return DetectorPolicy::kSc;
    case Property::kAtomicSets:
      return DetectorPolicy::kAtomicSets;
    case Property::kRobustness:
      return DetectorPolicy::kRobustness;
    case Property::kSerializability:
      break;
  }
  return DetectorPolicy::kTso;
}

uint64_t begin_of(const DetectedCycle& cycle) {
  uint64_t begin = UINT64_MAX;
  for (const DetectedStep& step : cycle.steps) {
    begin = std::min({begin, step.from.index, step.to.index});
  }
  return begin;
}

std::string kind_of(const DetectedCycle& cycle, size_t names) {
  EventBlock accesses;
  std::vector<Unit> units;
  std::vector<UnitId> of_event;
  std::vector<CycleEdge> edges;
  Violation violation;
  violation.verdict = cycle.certain() ? Verdict::kDefinite : Verdict::kPossible;
  const size_t size = cycle.steps.size();
  for (size_t i = 0; i < size; ++i) {
    const DetectedStep& step = cycle.steps[i];
    // What leads away from the unit, and what the step leads to, which is of the next one.
    for (const DetectedAccess* const access : {&step.from, &step.to}) {
      accesses.add(event_of(*access), 0, 0);
    }
    units.push_back({step.unit.thread, step.unit.label, 0, 0, true});
    of_event.insert(of_event.end(), {static_cast<UnitId>(i), static_cast<UnitId>((i + 1) % size)});
    const auto from = static_cast<uint32_t>(2 * i);
    edges.push_back({static_cast<UnitId>(i), from, from + 1, step.kind});
  }
  return kind_of(violation, edges, accesses, UnitTable(std::move(units), std::move(of_event)),
                 names);
}

}  // namespace tsomon
