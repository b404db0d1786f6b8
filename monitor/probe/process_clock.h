// The clock of the recorded process: how far the processors' counters differ, measured at the start
// and again while it runs (clock_meter.h), for the capture and its readers.
//
// Start       Before the program's threads: prepare_clock() sets
//             options.clock_unused where no order between threads can be claimed,
//             and says why.
// Running     The writer thread measures again a second later, then after twice as long each time,
//             up to eight seconds, as long as the margin does not grow, and never for more than a
//             thousandth of the time. A measurement that no processor had time for is left out,
//             and tried again.
// End         Once more, for up to half a second while messages are too slow for what readers of
//             live captures allow for (capture::allowed_margin()).
// Slices      Their end waits for a tenth of that: watching for a moment should take one.
// Memory      That of the meter, 25 KB.
// Thread-safety: prepare_clock() alone; the others on the writer thread.
#pragma once

#include <cstdint>

#include "decoders/capture/clock_entry.h"

namespace tsomon::probe {

void prepare_clock();
// In a child of fork, which has no other threads.
void prepare_clock_after_fork();

// The last measurement; nullptr: there is none.
const capture::ClockEntry* clock_entry();
// Milliseconds until it is time for the next measurement, 0: it is; -1: there will be none.
long next_measurement();
// True: there is a new one.
enum class ClockLook : uint8_t { kRuns, kEnds, kSliceEnds };
bool measure_clock(ClockLook look);

// How many threads measuring takes beside the caller's, and their end.
uint32_t clock_threads();
void end_clock();
// After that: measurements go on. False: there is no thread for it.
bool continue_clock();

}  // namespace tsomon::probe
