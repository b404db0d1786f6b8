// What the windows of an input may cost together: bounds that grow with the input, so that neither
// a long input nor many hopeless windows make judging take longer than reading by much.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tsomon {

// Of events that are analysed again and again, as windows overlap: at first, and with every event.
inline constexpr uint64_t kAnalysedAtFirst = 4'000'000;
inline constexpr uint64_t kAnalysedPerEvent = 4;
// Of undirected edges, and of the search's work (AnalysisOptions): in as many analyses that reach
// their own bounds, and with every event.
inline constexpr uint64_t kAnalysesAtFirst = 2;
inline constexpr uint64_t kEdgesPerEvent = 8;
inline constexpr uint64_t kWorkPerEvent = 200;

// What such a bound still allows after `events` of the input.
inline uint64_t bound_left(uint64_t at_first, uint64_t per_event, uint64_t events, uint64_t used) {
  const uint64_t all = at_first + per_event * events;
  return all - std::min(all, used);
}

}  // namespace tsomon
