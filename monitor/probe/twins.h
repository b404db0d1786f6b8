// Programs built with --dormant: which of the two versions of their functions run.
//
// Purpose     Where a function begins one byte decides whether it runs itself or its instrumented twin
//             (monitor/probe/assembler/twins.h). Programs start with themselves, and pay nothing; what is recorded or
//             explored from its start runs as twins from its start.
// How         The bytes are written through /proc/self/mem, so no page is ever writable and executable, and
//             mappings stay those of their files. Both instructions are whole and of one length and differ in
//             one byte, so a thread that comes there runs one or the other; membarrier(2) makes sure that
//             all processors have seen the new one (Intel SDM 3A, 8.1.3, asks for a
//             serialising instruction, which that is).
// Choice      All of them, only those that begin at certain addresses, or all but those: so what is watched of a
//             program can be what is worth it (monitor/slices/plan.h). What is left out runs as it is, unseen.
// Cost        A write for each page with functions, at most, and a search in the choice for each function.
// Misses      A function that runs goes on as what it is until it returns.
// Errors      watch_twins() says what the kernel refuses. Thread-safety: all of it; a module that goes meanwhile is
//             such a refusal.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tsomon::probe {

struct TwinChoice {
  enum Kind : uint8_t { kNone, kAll, kOnly, kBut };
  Kind kind = kNone;
  // The addresses at which functions begin, ascending. They stay until another choice was made.
  const uint64_t* entries = nullptr;
  size_t count = 0;

  bool has(uint64_t entry) const;
};

// From now on, also of modules that are loaded later. False: not all of them, which it has told.
bool watch_twins(const TwinChoice& choice);
inline bool watch_twins(bool watched) {
  return watch_twins(TwinChoice{watched ? TwinChoice::kAll : TwinChoice::kNone});
}
// Whether the code at `pc` is that of a twin that is watched. Of a place that was asked for before at once; else a look at all
// functions. Misses parts of a twin that the compiler has moved elsewhere (NAME.tsomon.cold).
bool is_in_watched_twin(uint64_t pc);
// In the child, nothing is watched.
void unwatch_twins_after_fork();

}  // namespace tsomon::probe
