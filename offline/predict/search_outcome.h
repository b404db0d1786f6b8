// What the search for one kind of finding came to, besides what it found.
//
// Purpose     Races, deadlocks and atomicity violations are counted and bounded alike: their results have this in
//             common, and windows of one input add it up.
// Thread-safety: that of its parts.
#pragma once

#include <cstdint>
#include <optional>

#include "tso/support/work.h"

namespace tsomon::predict {

struct SearchOutcome {
  uint64_t candidates = 0;       // tuples of locations that could not be ruled out at once
  uint64_t refused = 0;          // of these, no reordering was found
  uint64_t invalid = 0;          // reorderings that the validator did not accept: an internal error
  uint64_t without_witness = 0;  // witnesses that were kept in short
  bool bounded = false;          // of some candidates not all events were tried
  bool windowed = false;         // some orders were looked for among the latest events alone
  std::optional<WorkLimit> ended;  // why it stopped before the end

  bool operator==(const SearchOutcome&) const = default;
  bool complete() const { return !ended && !bounded && !windowed && invalid == 0; }
  // All but the candidates, which other windows may have had too.
  void add_bounds(const SearchOutcome& more) {
    invalid += more.invalid;
    without_witness += more.without_witness;
    bounded = bounded || more.bounded;
    windowed = windowed || more.windowed;
    ended = ended ? ended : more.ended;
  }
};

}  // namespace tsomon::predict
