// Units from function names, see function_units.cpp.
#pragma once

namespace tsomon::probe {

struct Thread;

// Looks the functions up; false, with a message, when memory is short. When patterns were given and
// nothing matches there is a message, and if one is `required` the answer is false.
bool find_unit_functions(bool required);

// The calls of the one that is left are kept, those of the other go on: each has its stack.
void exchange_calls(Thread* from, Thread* to);

// When the thread has ended and records no more.
void leave_calls();

}  // namespace tsomon::probe
