// Random small text traces for the report checker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tsomon::reports {

// A well-formed text trace of at most some 16 accesses in two or three threads, with units, perhaps
// locks, byte ranges, intervals that overlap, thread creation, and values of one TSO execution.
// The same seed gives the same text.
std::string random_text(uint64_t seed);

// Likewise, with all that makes verdicts sharper: values, intervals and locks, of an execution with
// store buffers of so many entries. No two stores bring the same value: a load whose repetition finds
// the same value looks like one that waits, and is left out of its unit.
std::string rich_text(uint64_t seed, size_t buffer);

}  // namespace tsomon::reports
