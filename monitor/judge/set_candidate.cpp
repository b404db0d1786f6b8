#include "monitor/judge/set_candidate.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tso/check/atomic_sets.h"

namespace tsomon {
namespace {

// Each where it stands in the input.
void add_objects(const std::map<uint64_t, Event>& objects, Trace* slice,
                 std::vector<uint64_t>* index) {
  EventBlock events;
  std::vector<uint64_t> places;
  uint32_t pending_prefix = slice->pending_prefix;
  auto object = objects.begin();
  for (size_t i = 0; i < index->size(); ++i) {
    for (; object != objects.end() && object->first <= (*index)[i]; ++object) {
      if (object->first != (*index)[i]) {
        events.add(object->second, kTimeMin, kTimeMin);
        places.push_back(object->first);
        pending_prefix += i < slice->pending_prefix ? 1 : 0;
      }
    }
    events.append(*slice, i, i + 1);
    places.push_back((*index)[i]);
  }
  slice->pending_prefix = pending_prefix;
  static_cast<EventBlock&>(*slice) = std::move(events);
  *index = std::move(places);
}

// Without the values of loads that may not have been over where the slice ends.
Trace without_late_values(const Trace& trace) {
  Trace result;
  result.symbols = trace.symbols;
  result.pending_prefix = trace.pending_prefix;
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
}

}  // namespace

Analysis analyse_set_candidates(const Symbols& symbols,
                                std::span<const DetectedCandidate> candidates,
                                const AnalysisOptions& options, Trace* slice,
                                std::vector<uint64_t>* index) {
  std::map<uint64_t, Event> objects;
  std::set<uint32_t> sets;
  uint64_t first = UINT64_MAX;
  uint64_t last = 0;
  for (const DetectedCandidate& candidate : candidates) {
    for (const DetectedUnit& unit : candidate.units) {
      first = std::min(first, unit.first);
      last = std::max(last, unit.last);
    }
    if (candidate.set != Interner::kNone) {
      sets.insert(candidate.set);
    }
    if (candidate.object.size != 0) {
      Event begin;
      begin.set_kind(EventKind::kAllocate);
      begin.thread = candidate.units.front().thread;
      begin.address = candidate.object.address;
      begin.size = candidate.object.size & Event::kMaxSize;
      objects[candidate.object_begin] = begin;
    }
  }
  slice->symbols.labels = symbols.labels;
  for (const uint32_t set : sets) {
    slice->symbols.sets.push_back(symbols.sets[set]);
  }
  if (!objects.empty()) {
    add_objects(objects, slice, index);
  }
  AtomicSetOptions choice{objects.empty() ? SetChoice::kDeclared : SetChoice::kObjects, true,
                          options.values, options.relation, options.max_undirected};
  const auto place = [&](auto at) { return static_cast<uint32_t>(at - index->begin()); };
  choice.first = place(std::lower_bound(index->begin(), index->end(), first));
  choice.last = place(std::upper_bound(index->begin(), index->end(), last)) - 1;
  Analysis analysis = analyse_atomic_sets(*slice, choice);
  if (analysis.verdict() == Verdict::kDefinite &&
      (!objects.empty() ||
       (options.values && analyse_atomic_sets(without_late_values(*slice), choice).verdict() !=
                              Verdict::kDefinite))) {
    make_possible(&analysis);
  }
  return analysis;
}

}  // namespace tsomon
