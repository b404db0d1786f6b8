// Trying for a lock that is taken, for a while, before the thread sleeps.
//
// Why         Recording makes critical sections longer, so more threads find a lock taken, and one
//             that sleeps holds up the others, too: the owner has to wake it, inside its next
//             section. A sleep costs as much as dozens of short operations, and programs of such
//             fall into a state in which up to one in four sleeps (docs/design/probe.md).
// How long    As long as sleeping and waking cost: then no more than twice the best is spent,
//             whenever the lock becomes free (Karlin, Li, Manasse, Owicki: Empirical studies of
//             competitive spinning for a shared-memory multiprocessor, SOSP 1991). Option spin.
// Where       Mutexes without priorities or robustness, and rwlocks, of threads that are recorded;
//             not in calls with a time limit, nor where a condition wait takes its mutex again.
// Changes     Who gets the lock next: a thread that spins overtakes those that sleep. The program
//             may run faster recorded than by itself. spin=0 leaves that as it is.
// Misses      Where the owner is off its processor, the time is spent for nothing.
#pragma once

#include "monitor/probe/runtime.h"

namespace tsomon::probe {

// Calls `try_lock` at least once, unless there is no spinning, until it returns true or time is up.
// Returns what it returned last.
template <typename TryLock>
bool spin(TryLock try_lock) {
  if (options.spin == 0 || local.thread == nullptr) {
    return false;
  }
  if (try_lock()) {
    return true;
  }
  const uint64_t begin = __builtin_ia32_rdtsc();
  do {
    __builtin_ia32_pause();
    if (try_lock()) {
      return true;
    }
  } while (__builtin_ia32_rdtsc() - begin < options.spin);
  return false;
}

}  // namespace tsomon::probe
