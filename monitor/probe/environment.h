// The one gate for what the environment tells the runtime.
//
// Purpose     A program that runs with more rights than its user (set-user-id, set-group-id, file
//             capabilities: AT_SECURE) obeys nobody's variables, and hands none on: what it executes may
//             have all rights and no AT_SECURE.
// Thread-safety: at the start of the process, when it has one thread.
#pragma once

namespace tsomon::probe {

// Removes all variables of ours from the environment where none is to be obeyed. Before variable().
void close_environment();
// nullptr: not set, or not to be obeyed.
const char* variable(const char* name);

}  // namespace tsomon::probe
