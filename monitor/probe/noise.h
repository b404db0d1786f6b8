// Noise: delays at random places, so that threads meet in ways that are rare without them.
//
// Source      Edelstein, Farchi, Nir, Ratsaby, Ur: Multithreaded Java program test generation (IBM
//             Systems Journal, 2002): yields and sleeps at synchronisation.
// Where       Before a lock is taken and after it is given back; before atomic operations, fences,
//             semaphores and barriers; after a unit begins and before it ends. Never at plain
//             accesses. The delay lies outside the interval of every record but those of plain
//             accesses, whose intervals grow by it.
// What        With probability noise/1000 one of: nothing but a yield; 256 to 65,536 cycles of
//             pauses; the shortest sleep of the kernel (some 60 microseconds).
// Seed        Every thread draws from a sequence of its own, given by noise_seed and the thread's
//             number: the same places of a thread are delayed while it does the same. The
//             scheduler stays as it is, so a run cannot be repeated by its seed.
// Cost        noise=0: a test of a constant in memory. No allocation, no lock, errno is kept.
// Misses      A delay between a store and a later load lets the store commit: noise makes rare
//             interleavings frequent, but late commits rarer.
#pragma once

#include "monitor/probe/runtime.h"

namespace tsomon::probe {

void make_noise();

inline void noise() {
  if (TSOMON_UNLIKELY(options.noise != 0)) {
    make_noise();
  }
}

}  // namespace tsomon::probe
