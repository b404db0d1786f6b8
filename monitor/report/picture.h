// A finding as a time line, before it is written as one (perfetto.cpp, perfetto_trace.cpp).
//
// Shown       A track for each thread. Its steps are slices of one length, one after the other over all tracks; around
//             those of a unit lies a slice of the unit, up to where its thread goes on with something else. A commit is a
//             step of its own; one that comes later still stands outside of its unit: that is what store buffers do.
// Arrows      One for each edge of the cycle whose ends are shown, from slice to slice and forward in time: from what took
//             effect to what took effect, else between what was issued.
// Time        In tenths of a step. Nobody has measured any.
// Complexity  O(size). Slices of a track lie in each other or apart, whatever the finding has. Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "monitor/report/results.h"

namespace tsomon::report {

struct Slice {
  enum class Kind : uint8_t { kUnit, kStep, kCommit };

  Kind kind = Kind::kStep;
  size_t track = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string name;
  std::string place;                                      // of a step; empty: not known
  std::vector<std::pair<const char*, uint64_t>> numbers;  // events, by what they are to the slice
};

struct Arrow {
  size_t from = 0;  // a slice
  size_t to = 0;
  std::string name;
};

struct Picture {
  std::string name;
  std::vector<std::string> tracks;
  std::vector<Slice> slices;  // as they begin, the outer one first
  std::vector<Arrow> arrows;
};

// `number`: of the finding, from 1.
Picture picture_of(const Finding& finding, size_t number);
// "commit", for viewers that filter by it.
const char* category_of(Slice::Kind kind);

}  // namespace tsomon::report
