// `tsomon critical-races`: at which races of a real program it was decided that it goes wrong.
//
// Purpose     Walks the tree of all interleavings of a program (offline/explore/step_tree.h) and
//             labels it (offline/explain/critical_races.h). A leaf is faulty if the exploration
//             would report it: a failed assertion, a crash, threads that wait for ever, a violated
//             property that was asked for.
// Complete    As for explore: not when a bound was hit, a stop was asked for, or the program cannot
//             be controlled (`notes` say which).
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "monitor/explore/explore.h"
#include "offline/explain/critical_races.h"
#include "tso/support/result.h"

namespace tsomon::explore {

struct RacesExplored {
  std::string program;
  explain::CriticalRaces races;
  std::vector<ExploreFinding> faults;  // each with a schedule; `classes`: visited leaves
  uint64_t runs = 0;
  std::vector<std::string> notes;  // why it is not complete
  bool refused = false;            // the program calls what cannot be controlled
  double seconds = 0;

  bool complete() const { return notes.empty(); }
};

// Looks at these options: command, model, executions (runs), seconds, max_steps, fork, reuse,
// spurious, the properties.
Result<RacesExplored> explore_races(const ExploreOptions& options);

// The same of a program that `explore` has explored with `options`, for what was found there. Nothing where it would
// not be the whole answer: of an exploration that is not complete or has found nothing; where the walk takes more runs than
// the exploration had and kMostRunsDecided more, or more than is left of `seconds`; and where no interleaving is faulty,
// as what was found happens only beside the ones that are walked (memory used after it was freed).
inline constexpr uint64_t kMostRunsDecided = 2'000;
std::optional<RacesExplored> what_decided(ExploreOptions options, const Exploration& explored);

std::string races_text(const RacesExplored& explored, const ExploreOptions& options);
nlohmann::ordered_json races_json(const RacesExplored& explored, const ExploreOptions& options);
// The tree alone, in the same words.
nlohmann::ordered_json decided_json(const RacesExplored& explored);

}  // namespace tsomon::explore
