#include "tso/atomic_sets.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "tso/cycle.h"
#include "tso/location_table.h"
#include "tso/units.h"

namespace tsomon {
namespace {

constexpr uint32_t kNone = 0xFFFFFFFFU;

// The unit of every access with regard to one set.
std::vector<uint32_t> units_of_set(const Trace& trace, std::string_view set, uint32_t* count) {
  struct Frame {
    bool declared = false;
  };
  struct Thread {
    std::vector<Frame> open;
    uint32_t unit = kNone;  // of the outermost declared frame
    size_t outermost = 0;
  };
  std::vector<Thread> threads;
  std::vector<uint32_t> unit_of(trace.events.size(), kNone);
  for (size_t e = 0; e < trace.events.size(); ++e) {
    const Event& event = trace.events[e];
    threads.resize(std::max<size_t>(threads.size(), event.thread + 1));
    Thread& thread = threads[event.thread];
    switch (event.kind()) {
      case EventKind::kUnitBegin: {
        const auto sets =
            unit_sets(trace.symbols.labels.text(static_cast<uint32_t>(event.address)));
        // A unit that names no set is declared on all of them.
        const bool declared =
            sets.empty() || std::find(sets.begin(), sets.end(), set) != sets.end();
        if (declared && thread.unit == kNone) {
          thread.unit = (*count)++;
          thread.outermost = thread.open.size();
        }
        thread.open.push_back({declared});
        break;
      }
      case EventKind::kUnitEnd:
        if (!thread.open.empty()) {
          thread.open.pop_back();
          if (thread.unit != kNone && thread.open.size() == thread.outermost) {
            thread.unit = kNone;
          }
        }
        break;
      case EventKind::kWait:
        if (thread.unit != kNone) {
          thread.unit = (*count)++;
        }
        break;
      default:
        if (is(event, kinds::kAccesses) && !is(event, kinds::kLocks)) {
          unit_of[e] = thread.unit != kNone ? thread.unit : (*count)++;
        }
        break;
    }
  }
  return unit_of;
}

class SetCheck {
 public:
  SetCheck(const Trace& trace, const LocationTable& locations, std::string_view name,
           const std::vector<LocationKey>* members)
      : trace_(trace), locations_(locations), members_(members) {
    unit_of_ = units_of_set(trace, name, &units_);
  }

  std::vector<CycleEdge> cycle() {
    std::vector<CycleEdge> edges;
    struct LastAccess {
      uint32_t write = kNone;
      std::vector<uint32_t> reads;  // since then
    };
    std::vector<LastAccess> last(locations_.size());
    for (uint32_t e = 0; e < trace_.events.size(); ++e) {
      if (unit_of_[e] == kNone || !is_member(e)) {
        continue;
      }
      const LocationId here = locations_.of_event(e);
      const bool writes = trace_.events[e].kind() != EventKind::kRead;
      for (const LocationId other : locations_.overlapping(here)) {
        const auto link = [&](uint32_t from) {
          if (from != kNone && unit_of_[from] != unit_of_[e]) {
            edges.push_back({0, from, e, EdgeKind::kConflict});
            check_overlap(from, e);
          }
        };
        link(last[other].write);
        if (writes) {
          std::for_each(last[other].reads.begin(), last[other].reads.end(), link);
        }
      }
      if (writes) {
        last[here] = {e, {}};
      } else if (last[here].reads.empty() || unit_of_[last[here].reads.back()] != unit_of_[e]) {
        last[here].reads.push_back(e);
      }
    }
    return shortest_cycle(edges, unit_of_);
  }

  bool ordered() const { return ordered_; }
  uint32_t units() const { return units_; }

 private:
  bool is_member(uint32_t e) const {
    if (members_ == nullptr) {
      return true;
    }
    const Event& event = trace_.events[e];
    return std::any_of(members_->begin(), members_->end(), [&](const LocationKey& member) {
      return overlap(member, {event.address, event.size});
    });
  }
  void check_overlap(uint32_t e, uint32_t f) {
    const bool certain = trace_.hi(trace_.events[e]) < trace_.events[f].lo;
    ordered_ = ordered_ && (certain || trace_.events[e].thread == trace_.events[f].thread);
  }

  const Trace& trace_;
  const LocationTable& locations_;
  const std::vector<LocationKey>* members_;
  std::vector<uint32_t> unit_of_;
  uint32_t units_ = 0;
  bool ordered_ = true;
};

}  // namespace

Analysis analyse_atomic_sets(const Trace& trace) {
  Analysis result;
  const LocationTable locations(trace);
  const UnitTable units(trace);
  result.units = units.size();
  if (!trace.complete) {
    result.complete = false;
    result.notes.emplace_back("events were lost");
  }
  const auto check = [&](std::string_view name, const std::vector<LocationKey>* members) {
    SetCheck set(trace, locations, name, members);
    ++result.parts;
    std::vector<CycleEdge> cycle = set.cycle();
    if (!set.ordered()) {
      result.complete = false;
      result.notes.push_back(
          fmt::format("the order of conflicting accesses to set '{}' is not certain", name));
    }
    if (cycle.empty()) {
      return;
    }
    ++result.violated_parts;
    Violation finding;
    finding.verdict = Verdict::kDefinite;
    for (CycleEdge& edge : cycle) {
      edge.unit = units.of_event(edge.from);
      finding.window.insert(finding.window.end(), {edge.from, edge.to});
    }
    std::sort(finding.window.begin(), finding.window.end());
    finding.window.erase(std::unique(finding.window.begin(), finding.window.end()),
                         finding.window.end());
    finding.cycle = std::move(cycle);
    result.findings.push_back(std::move(finding));
  };
  for (const AtomicSet& set : trace.symbols.sets) {
    check(set.name, &set.members);
  }
  if (trace.symbols.sets.empty()) {
    check("all", nullptr);
  }
  result.verdict = result.violated_parts > 0 ? Verdict::kDefinite
                   : result.complete         ? Verdict::kClean
                                             : Verdict::kInconclusive;
  return result;
}

}  // namespace tsomon
