// Units from function names, see patterns.cpp.
#pragma once

namespace tsomon::probe {

// Looks the functions up; false, with a message, when memory is short. When patterns were given and
// nothing matches there is a message, and if one is `required` the answer is false.
bool find_unit_functions(bool required);

// When the thread has ended and records no more.
void leave_calls();

}  // namespace tsomon::probe
