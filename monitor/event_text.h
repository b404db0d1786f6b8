// One event in words, as reports show it: "store x := 5", "load 0x7f10+8 = 3", "fence".
//
// Thread-safety: a pure function of its arguments.
#pragma once

#include <cstdint>
#include <string>

#include "tso/trace.h"

namespace tsomon {

std::string event_text(const EventBlock& events, const Symbols& symbols, uint32_t e);

}  // namespace tsomon
