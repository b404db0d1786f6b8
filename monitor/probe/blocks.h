// Lifetimes of the program's memory: which bytes a thread was given, and when they were given back.
//
// Why         What is given out again at the same address is another variable: nothing that was
//             done to the old one races with what is done to the new one.
// Records     kBlock after the memory was obtained, kBlockEnd before it is given back.
// Stamps      A stamp for each would cost more than the rest of recording in a program that
//             allocates much. What has to be in order is an end and the block that follows in the
//             same memory. An end needs no stamp of its own: it begins at the last stamp of its
//             thread, and the block that follows is stamped later. It need not be where its own
//             thread alone has got and given back memory of the page since its last stamped block
//             there: the order of the thread says all.
// Table       For pages: whose they are, as long as nobody else gives back memory there, and the
//             last stamp. 1,024 entries, each of the page that was put there last; of others
//             nothing is known, so their next block is stamped. Who gives memory back writes there
//             before that, who gets it reads there after that: the allocator orders the two.
// Cost        5 to 10 ns a record, and the stamp. A locked instruction where a page changes hands.
// Thread-safety: as all hooks; async-signal-safe, no allocation.
#pragma once

#include <cstdint>

namespace tsomon::probe {

// Nothing when the thread is not recorded. bytes != 0.
void block_begins(uint64_t address, uint64_t bytes, uint64_t pc);
// bytes = 0: those of the block that begins there.
void block_ends(uint64_t address, uint64_t bytes, uint64_t pc);

}  // namespace tsomon::probe
