// The accesses of all threads of a process, with values carried through memory where the paths of
// all of them prove that nobody else has changed it.
//
// Method      One pass finds what every thread may have stored and when (interference.h); the next
//             one carries values along by that, and finds more addresses; so on while that helps,
//             at most kMostPasses times.
// Cost        Of every pass as find_accesses(), and O(log) for each load of a file's data.
// Thread-safety: distinct calls are independent.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "decoders/pt/memory/accesses.h"

namespace tsomon::pt {

struct ThreadToFind {
  const ThreadPath* path = nullptr;
  std::vector<PlacedSample> samples;
};

inline constexpr unsigned kMostPasses = 4;

// `threads`: all that ran in the process's memory while the trace was taken. `sink(i)`: a new sink
// for the accesses of a thread; it is asked for again in every pass, and what the one before was
// given no longer counts. Every sink is given one path, then the next one is asked for.
void find_with_proofs(const std::vector<ThreadToFind>& threads, const AccessOptions& options,
                      const std::function<AccessSink&(size_t)>& sink);

}  // namespace tsomon::pt
