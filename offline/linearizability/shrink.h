// The smallest part of a violation that is still one, and proves that the whole is.
//
// Purpose     Few events for people to look at. Leaving out any operation will not do: a pop whose
//             push is left out cannot be linearized and says nothing about the object. Each step
//             below turns a linearization of the larger history into one of the smaller, so that
//             the smaller being a violation proves that the larger one is.
// Steps       - the end: what was called after some event, and returns after it (a history that is
//               linearizable is so at every moment);
//             - the return of a process's last operation: it may have taken effect, or not;
//             - an operation that only looks;
//             - of a container, all operations of one value: without it every state is as before
//               but for it;
//             - of a cell, a write or exchange whose value nothing else asks for;
//             - of a cell with few values, the begin: what returned before some event is left out,
//               what was open then becomes pending, and no value to start with makes up for it.
// Result      No single one of the steps above leaves a violation (1-minimal), unless the bound on
//             work was hit.
// Complexity  O(k log n) decisions for k operations that are left; each is bounded.
// Thread-safety: a pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "offline/linearizability/decide.h"

namespace tsomon::linearizability {

struct Shrunk {
  // By `call`. One that has become pending lacks its return.
  std::vector<Op> ops;
  bool complete = true;  // no bound was hit
};

// `suspects`: as Decision has them.
Shrunk shrink(const History& history, const Part& violation, const std::vector<uint32_t>& suspects,
              const SearchBounds& bounds);

// The parts that one step makes of `part`, but for its begin, for tests.
std::vector<Part> smaller_parts(const History& history, const Part& part);

}  // namespace tsomon::linearizability
