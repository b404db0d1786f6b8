// The memory of the program at one point of time, brought back after each execution.
//
// Purpose     All writable private memory is protected from writing. The first write to a page
//             faults: its content is kept and the page is writable from then on. restore() compares
//             those pages with what was kept, and copies back what differs. Executions of one
//             client write to the same pages, so after the first ones nothing faults.
// Complexity  restore(): a pass over the pages that were written to lately, some 100 nanoseconds
//             each. Pages that many executions have left alone are protected again.
// Errors      all but restore() say false when there are too many pages or regions.
// Misses      Memory shared with other processes, as with fork.
// Thread-safety: none; note_write() may be called by a signal handler of any thread while the others
//             sleep.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tsomon::explore::image {

// What the tables take; zeroed.
size_t memory_size();
// Memory that the kernel may write to at any time: brought back, and never protected.
struct Open {
  uint64_t begin = 0;
  uint64_t size = 0;
};
// Protects what there is, but for `memory` and the ranges that leave_out() named. False: it failed.
bool begin(void* memory, const Open& open);
// Of memory that is not the program's: at most 16 ranges, before begin().
void leave_out(const void* begin, size_t size);
// New memory: it is protected, and what it holds is what it goes back to.
bool add(uint64_t begin, uint64_t size, const Open& open = {});
// Somebody cannot write to the page. True: now they can.
bool note_write(uint64_t address);
// The kernel writes to it, or will.
bool let_write(uint64_t address, uint64_t size);
bool is_in(uint64_t address);
void restore();
// From now on memory goes back to what it holds now.
bool renew();

}  // namespace tsomon::explore::image
