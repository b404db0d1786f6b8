#include "monitor/set_window.h"

#include <set>
#include <utility>

#include "tso/atomic_sets.h"

namespace tsomon {

Analysis analyse_set_windows(const Symbols& symbols, std::span<const DetectedWindow> windows,
                             const AnalysisOptions& options, Trace* stretch,
                             std::vector<uint64_t>* index) {
  EventBlock objects;
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
      objects.add(begin, kTimeMin, kTimeMin);
    }
  }
  stretch->symbols.labels = symbols.labels;
  for (const uint32_t set : sets) {
    stretch->symbols.sets.push_back(symbols.sets[set]);
  }
  const SetChoice choice = objects.events.empty() ? SetChoice::kDeclared : SetChoice::kObjects;
  if (choice == SetChoice::kObjects) {
    index->insert(index->begin(), objects.events.size(), 0);
    objects.append(*stretch);
    static_cast<EventBlock&>(*stretch) = std::move(objects);
  }
  return analyse_atomic_sets(
      *stretch, {choice, true, options.values, options.relation, options.max_undirected});
}

}  // namespace tsomon
