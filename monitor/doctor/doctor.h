// What this machine offers for recording and checking, and the remedy for what is missing.
//
// Every finding is measured or tried here and now (counters are compared between pinned threads,
// perf events and breakpoints are opened and closed again), never guessed from a version number.
// Misses      What another user, container or cgroup could do; counters that drift apart only
//             later; processors that this process may not run on.
// Cost        About 0.5 s, and 10 ms for each further processor.
// Thread-safety: one call at a time; no other thread should be busy meanwhile, the measurements
//             of time and reordering suffer.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tsomon {

struct MachineFinding {
  std::string name;  // stable, for programs: "tsc_synchronised"
  bool available = false;
  bool required = false;                   // `tsomon record` cannot be trusted without it
  std::string detail;                      // what was found
  std::string needed_by;                   // what uses it
  std::string remedy;                      // what to do when it is missing; empty when available
  std::optional<double> nanoseconds = {};  // of one hit, where that is what was measured
};

std::vector<MachineFinding> examine_machine();

}  // namespace tsomon
