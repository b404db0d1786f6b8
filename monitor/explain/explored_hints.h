// What would rule out what `explore` has found, in one line each.
//
// Purpose     One execution that violates a property says which repairs rule that execution out
//             (explain_line.h). Each is put into the program, which is explored again. It is said
//             only if every class was explored, none violates the property at a place of the finding
//             (explain_explored.h), and nothing new goes wrong. Where fences leave a violation, those that this
//             one asks for are added; of what helps then no single fence can be left out.
// Bounds      The first kMostFindingsRepaired findings of a property; executions: as many as for the
//             exploration itself, and kMostExecutionsRepaired, for all repairs together; what is left of
//             ExploreOptions::seconds. Past them nothing is said.
// Misses      Repairs that the executions that are looked at do not show to be needed.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "monitor/explore/explore.h"

namespace tsomon {

inline constexpr size_t kMostFindingsRepaired = 8;
inline constexpr uint64_t kMostExecutionsRepaired = 2'000;

// `options`: with which it was explored; of clients those of the client that shows the findings.
void add_repairs(explore::ExploreOptions options, explore::Exploration* explored);

}  // namespace tsomon
