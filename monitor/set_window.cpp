#include "monitor/set_window.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tso/atomic_sets.h"

namespace tsomon {
namespace {

// Each where it stands in the input.
void add_objects(const std::map<uint64_t, Event>& objects, Trace* stretch,
                 std::vector<uint64_t>* index) {
  EventBlock events;
  std::vector<uint64_t> places;
  auto object = objects.begin();
  const auto add_up_to = [&](uint64_t place) {
    for (; object != objects.end() && object->first <= place; ++object) {
      if (object->first != place) {
        events.add(object->second, kTimeMin, kTimeMin);
        places.push_back(object->first);
      }
    }
  };
  for (size_t i = 0; i < index->size(); ++i) {
    add_up_to((*index)[i]);
    events.append(*stretch, i, i + 1);
    places.push_back((*index)[i]);
  }
  static_cast<EventBlock&>(*stretch) = std::move(events);
  *index = std::move(places);
}

// Without the values of loads that may not have been over where the stretch ends.
Trace without_late_values(const Trace& trace) {
  Trace result;
  result.symbols = trace.symbols;
  const int64_t end = trace.events.empty() ? kTimeMin : trace.events.back().lo;
  for (const Event& event : trace.events) {
    const int64_t hi = trace.hi(event);
    Event bare = event;
    bare.has_hi = bare.has_read_value = bare.has_write_value = 0;
    result.add(bare, event.lo, hi, hi < end ? trace.read_value(event) : std::nullopt,
               trace.write_value(event));
  }
  return result;
}

void make_possible(Analysis* analysis) {
  for (Violation& violation : analysis->findings) {
    violation.verdict = Verdict::kPossible;
  }
  analysis->verdict = Verdict::kPossible;
}

}  // namespace

Analysis analyse_set_windows(const Symbols& symbols, std::span<const DetectedWindow> windows,
                             const AnalysisOptions& options, Trace* stretch,
                             std::vector<uint64_t>* index) {
  std::map<uint64_t, Event> objects;
  std::set<uint32_t> sets;
  for (const DetectedWindow& window : windows) {
    if (window.set != Interner::kNone) {
      sets.insert(window.set);
    }
    if (window.object.size != 0) {
      Event begin;
      begin.set_kind(EventKind::kAllocate);
      begin.thread = window.units.front().thread;
      begin.address = window.object.address;
      begin.size = window.object.size & Event::kMaxSize;
      objects[window.object_begin] = begin;
    }
  }
  stretch->symbols.labels = symbols.labels;
  for (const uint32_t set : sets) {
    stretch->symbols.sets.push_back(symbols.sets[set]);
  }
  if (!objects.empty()) {
    add_objects(objects, stretch, index);
  }
  const AtomicSetOptions choice{objects.empty() ? SetChoice::kDeclared : SetChoice::kObjects, true,
                                options.values, options.relation, options.max_undirected};
  Analysis analysis = analyse_atomic_sets(*stretch, choice);
  if (analysis.verdict == Verdict::kDefinite &&
      (!objects.empty() ||
       (options.values && analyse_atomic_sets(without_late_values(*stretch), choice).verdict !=
                              Verdict::kDefinite))) {
    make_possible(&analysis);
  }
  return analysis;
}

}  // namespace tsomon
