// What an input lacks, as far as that decides what is said of the rest.
#pragma once

#include <cstdint>

namespace tsomon {

enum class Damage : uint8_t {
  kNone,
  kEnds,  // what is missing of a thread comes after all that there is of it: it was killed
  kGaps,  // it may have come before: a store, too, that a later load was forwarded from
};

}  // namespace tsomon
