// The last stamp that was taken under each lock, so that stamps of one lock grow from one critical
// section to the next, whatever the processors' counters say.
//
// Why         Two short critical sections may lie closer together than counters of different
//             processors agree. A lock that is handed over is a message: what its holder did comes
//             before what the next holder does. So a holder leaves its stamp, and the next one
//             takes a larger one (stamp.h argues why that is sound, from whatever lock it came).
//             How far the own stamp was behind shows whether the counters keep to their margin.
// Table       A slot belongs to the first lock that used it; only who holds that lock exclusively
//             writes there, with an ordinary store, so that the program's store buffers are not
//             drained. Locks whose slot is taken, and readers, of which several hold a lock, raise
//             a stamp by a locked instruction. A slot is never given up: 2,048 locks.
// Cost        A cache line more that is handed over with a contended lock.
// Thread-safety: for each lock, as far as it excludes. Async-signal-safe, no allocation.
#pragma once

#include <cstdint>

namespace tsomon::probe {

// While the lock is held: the last stamp under it; 0: none.
uint64_t last_stamp(uint64_t lock);
// Before it is given back. `shared`: others may hold it, too.
void leave_stamp(uint64_t lock, uint64_t stamp, bool shared);

// A stamp was smaller by so much than one before it.
void note_backwards(uint64_t cycles);
uint64_t most_backwards();

}  // namespace tsomon::probe
