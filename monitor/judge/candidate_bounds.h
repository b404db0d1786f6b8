// What the candidates of an input may cost together: bounds that grow with the input, so that neither
// a long input nor many hopeless candidates make judging take longer than reading by much.
//
// Complexity  O(1).
// Thread-safety: left() may be called while add() is.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "tso/check/analysis.h"
#include "tso/support/work.h"

namespace tsomon {

// Of events that are analysed again and again, as candidates overlap: at first, and with every event.
inline constexpr uint64_t kAnalysedAtFirst = 4'000'000;
inline constexpr uint64_t kAnalysedPerEvent = 4;
// Of undirected edges, and of the search's work (AnalysisOptions): in as many analyses that reach
// their own bounds, and with every event.
inline constexpr uint64_t kAnalysesAtFirst = 2;
inline constexpr uint64_t kEdgesPerEvent = 8;
inline constexpr uint64_t kWorkPerEvent = 100;

// A first search of a candidate, with nothing around it, has these bounds: values may say more of it in a larger slice.
inline constexpr uint64_t kFirstLookWork = 2'000'000;

// What such a bound still allows after `events` of the input.
inline uint64_t bound_left(uint64_t at_first, uint64_t per_event, uint64_t events, uint64_t used) {
  const uint64_t all = with_effort(at_first + per_event * events);
  return all - std::min(all, used);
}

// What one analysis may use of it.
struct CandidateShare {
  bool affordable = false;  // otherwise it is not to be analysed
  uint64_t undirected = 0;
  uint64_t work = 0;
  bool operator==(const CandidateShare&) const = default;

  void limit(AnalysisOptions* options) const {
    options->max_undirected = undirected;
    options->max_total_work = work;
  }
};

// What the candidates so far have used of it.
class CandidateCosts {
 public:
  // For a candidate with so many events, after `input` events. `each` has the bounds of one analysis.
  CandidateShare left(const AnalysisOptions& each, uint64_t input, uint64_t events) const {
    const uint64_t edges =
        bound_left(kAnalysesAtFirst * each.max_undirected, kEdgesPerEvent, input, edges_);
    const uint64_t work =
        bound_left(kAnalysesAtFirst * each.max_total_work, kWorkPerEvent, input, work_);
    if (edges == 0 || work == 0 ||
        bound_left(kAnalysedAtFirst, kAnalysedPerEvent, input, events_) < events) {
      return {};
    }
    return {true, std::min(each.max_undirected, edges), std::min(each.max_total_work, work)};
  }
  void add_events(uint64_t events) { events_ += events; }
  void add(const Analysis& analysis) {
    edges_ += analysis.open_edges;
    work_ += analysis.work;
  }

 private:
  std::atomic<uint64_t> events_{0};
  std::atomic<uint64_t> edges_{0};
  std::atomic<uint64_t> work_{0};
};

}  // namespace tsomon
