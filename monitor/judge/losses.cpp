#include "monitor/judge/losses.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "tso/check/cycle.h"
#include "tso/model/location_table.h"
#include "tso/model/property.h"
#include "tso/model/relation.h"
#include "tso/model/units.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

// A load may have been forwarded from a store that is missing: then it comes before the stores of
// others that it precedes, and before later loads of its thread, only if a fence is in between.
bool stands_without_stores(const Finding& finding) {
  const EventBlock& events = finding.events;
  const auto drained = [&](uint32_t load, uint32_t access, bool own) {
    const auto first = events.events.begin();
    return std::any_of(first + load + 1, events.events.end(), [&](const Event& event) {
      return event.thread == events.events[load].thread && is(event, kinds::kDrains) &&
             (own ? &event < &events.events[access] : events.hi(event) < events.events[access].lo);
    });
  };
  const std::vector<CycleEdge>& cycle = finding.violation.cycle;
  return std::all_of(cycle.begin(), cycle.end(), [&](const CycleEdge& edge) {
    if (events.events[edge.from].kind() != EventKind::kRead) {
      return true;
    }
    const bool own = edge.kind == EdgeKind::kProgramOrder;
    return edge.kind == EdgeKind::kThread ||
           (own && events.events[edge.to].kind() != EventKind::kRead) ||
           drained(edge.from, edge.to, own);
  });
}

// Whether a violation is one whatever was lost.
class Survival {
 public:
  // `own_stores`: of the threads may be missing, and be in their buffers.
  Survival(const Finding& finding, const Symbols& symbols, bool own_stores)
      : cycle_(finding.violation.cycle),
        finding_(finding),
        symbols_(symbols),
        own_stores_(own_stores) {}

  bool holds() const {
    return !cycle_.empty() && has_certain_orders(finding_.violation) &&
           (!own_stores_ || stands_without_stores(finding_)) &&
           std::all_of(cycle_.begin(), cycle_.end(), [this](const CycleEdge& edge) {
             return is_certain(edge) && counts(edge.from) && counts(edge.to);
           });
  }

 private:
  const Event& event(uint32_t e) const { return finding_.events.events[e]; }

  bool is_certain(const CycleEdge& edge) const {
    if (edge.kind == EdgeKind::kHandOver) {
      return event(edge.from).kind() != EventKind::kPost;  // another post may have let it go on
    }
    return edge.kind != EdgeKind::kConflict || !own_stores_ ||
           event(edge.from).kind() != EventKind::kWrite || commits(edge.from, event(edge.to).lo);
  }

  // A load that a store covers in part waits for it, but not where a store that is missing covers
  // it; and how many stores follow proves something only of a buffer whose size is known.
  bool commits(uint32_t store, int64_t before) const {
    const ThreadId thread = event(store).thread;
    constexpr uint32_t kHands = kind_mask(EventKind::kRelease) | kind_mask(EventKind::kSend);
    const auto& events = finding_.events.events;
    const auto shows = [&](const Event& later) {
      return later.thread == thread ? is(later, kHands) || (is(later, kinds::kDrains) &&
                                                            finding_.events.hi(later) < before)
                                    : later.kind() == EventKind::kJoin && later.address == thread;
    };
    return std::any_of(events.begin() + store + 1, events.end(), shows);
  }

  // It is no part of a waiting loop and counts no references, whatever was lost.
  bool counts(uint32_t e) const {
    const Event& one = event(e);
    const bool is_load = one.kind() == EventKind::kRead && one.has_read_value != 0;
    const bool is_locked = one.kind() == EventKind::kReadModifyWrite;
    if (!is_load && !is_locked) {
      return true;
    }
    const std::string place = symbols_.location_text(one.location);
    if (place.starts_with("0x")) {
      return false;  // of a module that is not known: nobody knows what the code does
    }
    return (is_locked && changes(one)) || stores_later(e);
  }

  bool changes(const Event& locked) const {
    const auto read = finding_.events.read_value(locked);
    return !read || read != finding_.events.write_value(locked);
  }

  // What others see ends a loop: a store of the unit that is on the cycle.
  bool stores_later(uint32_t e) const {
    const auto is_one = [&](uint32_t end) {
      const Event& other = event(end);
      return end > e && finding_.units.of_event(end) == finding_.units.of_event(e) &&
             (is(other, kinds::kStores) ||
              (other.kind() == EventKind::kReadModifyWrite && changes(other)));
    };
    return std::any_of(cycle_.begin(), cycle_.end(),
                       [&](const CycleEdge& edge) { return is_one(edge.from) || is_one(edge.to); });
  }

  const std::vector<CycleEdge>& cycle_;
  const Finding& finding_;
  const Symbols& symbols_;
  bool own_stores_;
};

// A cycle of certain orders among the same units. Empty: there is none, there are too many events, or work is to end.
std::vector<CycleEdge> cycle_without_loads(const Finding& finding, const RelationOptions& options) {
  constexpr size_t kMost = 1000;
  std::vector<UnitId> units;
  for (const CycleEdge& edge : finding.violation.cycle) {
    units.push_back(finding.units.of_event(edge.from));
    units.push_back(finding.units.of_event(edge.to));
  }
  Trace rest;
  std::vector<uint32_t> position;  // of the events of `rest`, in those of the finding
  std::vector<uint32_t> class_of;
  std::vector<uint32_t> events;
  for (uint32_t e = 0; e < finding.events.events.size(); ++e) {
    const Event& event = finding.events.events[e];
    if (event.kind() == EventKind::kRead) {
      continue;
    }
    const UnitId unit = finding.units.of_event(e);
    if (is(event, kinds::kNodes) && std::find(units.begin(), units.end(), unit) != units.end()) {
      events.push_back(static_cast<uint32_t>(rest.events.size()));
    }
    position.push_back(e);
    class_of.push_back(unit);
    rest.append(finding.events, e, e + 1);
  }
  if (events.size() > kMost) {
    std::erase_if(events, [&](uint32_t e) { return !is(rest.events[e], kinds::kLocked); });
  }
  if (events.size() > kMost) {
    return {};
  }
  const LocationTable locations(rest);
  const Relation relation(rest, locations, options);
  const OrientationOracle open = [](uint32_t, uint32_t) { return Order::kNone; };
  std::vector<CycleEdge> cycle;
  try {
    cycle = shortest_cycle_among(relation, class_of, events, open);
  } catch (const WorkEnded&) {
    return {};  // what was found before stands
  }
  for (CycleEdge& edge : cycle) {
    edge.from = position[edge.from];
    edge.to = position[edge.to];
  }
  return cycle;
}

}  // namespace

void distrust_losses(CheckReport* report) {
  const bool store_buffers = is_about_buffers(report->property);
  for (Finding& finding : report->findings) {
    if (!has_certain_orders(finding.violation) ||
        (store_buffers && !stands_without_stores(finding))) {
      finding.violation.verdict = Verdict::kPossible;
    }
    // Nobody knows it of those that are not shown.
    Violations& repeats = finding.violation.repeats.found;
    repeats = {0, repeats.all()};
  }
  report->more = {0, report->more.all()};
}

void leave_out_what_losses_may_rule_out(Damage damage, const Symbols& symbols, SetChoice sets,
                                        CheckReport* report) {
  const bool by_objects =
      report->property == Property::kAtomicSets &&
      (sets == SetChoice::kObjects || (sets == SetChoice::kAuto && symbols.sets.empty()));
  const bool own_stores = damage == Damage::kGaps && is_about_buffers(report->property);
  const uint64_t found = report->violations();
  std::erase_if(report->findings, [&](const Finding& finding) {
    return by_objects || !Survival(finding, symbols, own_stores).holds();
  });
  for (Finding& finding : report->findings) {
    finding.violation.verdict = Verdict::kDefinite;
    finding.violation.repeats = {};  // nobody knows it of those that are not shown
  }
  report->more = {};
  report->unfenced.clear();  // there may be fences that are missing
  if (report->notes.take_back("more than 0 undirected edges")) {
    report->missing("orders that are not certain were not looked at");
  }
  if (const uint64_t left_out = found - report->violations(); left_out > 0) {
    report->missing(fmt::format(
        "{} groups of units look violated and do not count: what is missing may rule them out",
        left_out));
  }
}

void keep_what_is_certain(const char* sample, const RelationOptions& relation,
                          CheckReport* report) {
  const auto is_certain = [](const Finding& finding) {
    return !finding.violation.cycle.empty() && has_certain_orders(finding.violation);
  };
  const bool looks_again = report->property == Property::kSerializability;
  const bool store_buffers = is_about_buffers(report->property);
  const uint64_t found = report->violations();
  std::vector<Finding> kept;
  for (Finding& finding : report->findings) {
    bool definite = is_certain(finding) && (!store_buffers || stands_without_stores(finding));
    if (!definite && looks_again) {
      if (auto cycle = cycle_without_loads(finding, relation); !cycle.empty()) {
        definite = true;
        if (!is_certain(finding)) {
          finding.violation.cycle = std::move(cycle);
        }
      }
    }
    if (definite || is_certain(finding)) {
      finding.violation.verdict = definite ? Verdict::kDefinite : Verdict::kPossible;
      finding.violation.repeats = {};  // what orders them is not known
      kept.push_back(std::move(finding));
    }
  }
  report->findings = std::move(kept);
  report->more = {};
  const uint64_t dropped = found - report->violations();
  const bool has_open = report->notes.take_back("more than 0 undirected edges");
  report->unfenced.clear();  // there may be fences that were not seen
  report->missing(
      fmt::format("{}: only cycles of certain orders count, and nothing is serializable", sample));
  if (has_open) {
    report->missing("orders that are not certain were not looked at");
  }
  if (dropped > 0) {
    report->missing(fmt::format(
        "{} more groups of units may be violated: some order in them is not certain, or they were "
        "not shown",
        dropped));
  }
}

void keep_nothing_clean(const std::string& why, CheckReport* report) {
  if (!why.empty() && report->violations() == 0) {
    report->missing(why);
  }
}

void keep_nothing(const std::string& why, CheckReport* report) {
  const uint64_t found = report->violations();
  report->findings.clear();
  report->more = {};
  report->unfenced.clear();
  report->notes.take_back("events were lost");
  report->missing(why);
  if (found > 0) {
    report->missing(fmt::format(
        "{} groups of units that look violated do not count: what orders them may be missing",
        found));
  }
}

}  // namespace tsomon
