// Random small text traces for the report checker.
#pragma once

#include <cstdint>
#include <string>

namespace tsomon::reports {

// A well-formed text trace of at most some 16 accesses in two or three threads, with units, perhaps
// locks, byte ranges, intervals that overlap, thread creation, and values of one TSO execution.
// The same seed gives the same text.
std::string random_text(uint64_t seed);

}  // namespace tsomon::reports
