// One part of several of a piece of work whose items are counted: K of N.
//
// Thread-safety: plain data.
#pragma once

#include <cstdint>

namespace tsomon {

// A part has every `of`th item; its first one is item `number` - 1, counted from 0.
struct PartChoice {
  uint64_t number = 1;
  uint64_t of = 1;

  bool has(uint64_t item) const { return item % of == number - 1; }
};

}  // namespace tsomon
