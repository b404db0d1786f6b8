// Which data of a running process is worth watching: what several threads access and some write.
//
// Purpose     Proposals for --watch, from samples of memory accesses (memory_samples.h).
// Places      8 bytes, aligned: what one watch point covers. An access across two is counted for
//             the first.
// Order       By threads, then by stores, then by loads, then by address.
// Errors      kEnvironment as MemorySampler says; kUnreadable when the process has gone.
// Misses      What was not sampled; what one thread alone writes and reads while it is sampled.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "monitor/perf_events/memory_samples.h"
#include "monitor/process/target.h"
#include "tso/support/result.h"

namespace tsomon::attach {

struct SharedPlace {
  uint64_t address = 0;  // aligned
  uint64_t loads = 0;    // samples
  uint64_t stores = 0;
  uint32_t threads = 0;
  uint32_t storing_threads = 0;
  uint64_t busiest_ip = 0;  // with the most samples; of several the lowest
};

inline constexpr uint64_t kPlaceBytes = 8;

// Places of two or more threads with at least one store, best first, at most `limit`. O(n log n).
std::vector<SharedPlace> rank_shared_places(const std::vector<MemorySample>& samples, size_t limit);

struct Proposal {
  SharedPlace place;
  std::string watch;  // what to give to --watch
  std::string data;   // "symbol+0x8", "[heap]+0x10", else the address
  std::string code;   // that accesses it most: "function+0x1a (module)"
};

// Names of addresses in the process.
std::vector<Proposal> name_places(const Target& target, const std::vector<SharedPlace>& places);

struct Discovery {
  std::vector<Proposal> proposals;
  std::string events;  // that were sampled
  uint64_t samples = 0;
  uint64_t lost = 0;
};

// Samples for `seconds`, or until the process ends.
Result<Discovery> discover(const Target& target, double seconds, size_t limit);

}  // namespace tsomon::attach
