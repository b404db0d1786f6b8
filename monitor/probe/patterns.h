// Units from function names, see patterns.cpp.
#pragma once

namespace tsomon::probe {

// Looks the functions up; false, with a message, when patterns were given and nothing matches.
bool find_unit_functions();

}  // namespace tsomon::probe
