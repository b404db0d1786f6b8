// Code that runs in the program without hooks: what it accesses is not seen.
//
// Linked      objects that tools/tsomon-not-instrumented found when the program was linked.
// Loaded      modules that refer to no hook. Of those of the system (/usr/lib, /lib) only the
//             number is told: nobody builds them anew.
// Assembly    asm statements that have been executed and are not understood (assembly_site.h).
// Children    processes that it forked and that are not recorded.
// Misses      Objects without instrumentation in a module that has some; programs that are linked
//             without the wrappers.
#pragma once

#include <cstdint>

#include <link.h>

namespace tsomon::probe {

// A module that was not there before. With the loader's lock.
void look_at_code(const dl_phdr_info* info, const char* path);

// Its place and instruction. Async-signal-safe.
// What the program does from here on is not recorded: `why` is a phrase.
void note_end_of_recording(const char* why);
void note_not_understood(const char* text);

// The program has memory that other processes may write: how it got it.
void note_shared_memory(const char* how);
// Whether the code there belongs to a library of the system. Such a library shares memory for its own
// ends: OpenMP's to know whether it was loaded twice. Not async-signal-safe.
bool is_in_system_library(uint64_t pc);
void shares_with_child();  // before or after fork (mappings.cpp)
void count_child();        // of fork, that is not followed

// Appends what is new as TextEntry (NotInstrumented in decoders/capture/format.h); returns the
// place after. Of the thread that writes.
char* copy_not_instrumented(char* at, char* end);
// Likewise of asm statements, which are told before what was recorded behind them.
char* copy_not_understood(char* at, char* end);
void forget_not_instrumented();  // after fork: it is to be told again

}  // namespace tsomon::probe
