// Is there a linearization? By search, for any object.
//
// Source      Wing and Gong (J. Parallel Distrib. Comput. 1993); Lowe (Concurrency Computat.:
// Pract.
//             Exper. 2017): calls and returns in a linked list, from which a linearized operation
//             is lifted; configurations (which operations, which state) that led nowhere are kept.
// Exact       A configuration is kept and compared whole: the linearized operations, as the last of
//             them and those before it that are missing, and the state. Only configurations that
//             have failed are kept: one on the way cannot be met again, since the way only adds
//             operations.
// Cuts        - An operation that only looks is taken as soon as it may be, and never tried later:
//               in any linearization that has it later it could be moved to here, past operations
//               that it does not change and that no real time puts before it.
//             - Pending operations are tried last. Where several are alike only the first called is
//               tried; none that would change nothing; and no write right after one, which could as
//               well be left out. A configuration that is given up for that alone has a
//               linearization only if the one before the pending operation has it, too, no longer,
//               and that one is still on the way: so none is missed.
// Bounds      Work (entries looked at) and memory; past either the answer is kBound.
// Complexity  O(n * processes) where it need not turn back; exponential in the worst case, the
//             problem is NP-complete (Gibbons and Korach, SIAM J. Comput. 1997).
// Thread-safety: a pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "offline/linearizability/operation.h"

namespace tsomon::linearizability {

struct SearchBounds {
  uint64_t max_work = 200'000'000;
  uint64_t max_bytes = uint64_t{1} << 30;
};

enum class Answer : uint8_t { kLinearizable, kViolation, kBound };

struct SearchResult {
  Answer answer = Answer::kBound;
  std::vector<uint32_t> order;  // a linearization, as indices of Part::ops
  uint64_t work = 0;
};

SearchResult search(const History& history, const Part& part, const SearchBounds& bounds);

}  // namespace tsomon::linearizability
