// The verdict on one part of a history: a monitor where one applies, else the search.
//
// Thread-safety: a pure function.
#pragma once

#include "offline/linearizability/search.h"

namespace tsomon::linearizability {

struct Decision {
  Answer answer = Answer::kBound;
  uint64_t work = 0;
  std::vector<uint32_t> order;  // a linearization, where it was asked for or the search found it
  // Of a violation, perhaps: operations of the part that are a violation by themselves.
  std::vector<uint32_t> suspects;
};

Decision decide(const History& history, const Part& part, const SearchBounds& bounds,
                bool want_order = false);

}  // namespace tsomon::linearizability
