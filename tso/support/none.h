// The index that names nothing: of an event, thread, unit, location or node that is not there or
// not known.
#pragma once

#include <cstdint>

namespace tsomon {

inline constexpr uint32_t kNone = 0xFFFFFFFFU;

}  // namespace tsomon
