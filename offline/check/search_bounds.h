// How the searches inside a component count what they do against OrientationBounds.
#pragma once

#include <cstdint>

namespace tsomon {

// An edge, a rule or a set of units that is tried counts as a part of a decision.
inline constexpr uint64_t kTriesPerStep = 50;
// How far what the orders really cost may exceed OrientationBounds::max_work, which counts tries.
inline constexpr uint64_t kWorkFactor = 6;

}  // namespace tsomon
