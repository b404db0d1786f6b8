// Whether the program has ended although the process goes on: its last thread has left by the system
// call exit, which nothing tells the runtime, and the runtime's own threads would keep the process.
//
// Needs       /proc; without it the answer is no.
// Complexity  one system call, four where the answer may be yes.
// Thread-safety: any thread; async-signal-safe.
#pragma once

#include <cstdint>

namespace tsomon::probe {

// Beside `own` threads there is none but, perhaps, the first one's remains, which are there as long as
// the process is.
bool only_own_threads(uint32_t own);

// Now; false where it is not known.
bool has_threads(uint32_t count);

// As /proc/PID/stat, whose path it is, has it: R, S, T ...; 0: not known.
char process_state(const char* path);

// A thread leaves by the system call with this status: when it is the last, the process has that.
void note_exit(int status);
// What the last thread has to leave with so that the process has the status that it would have: that
// of the last note_exit(), else of the first thread's end.
int exit_status();

}  // namespace tsomon::probe
