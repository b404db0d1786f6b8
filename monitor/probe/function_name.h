// Where the parameters in the demangled name of a function begin.
//
// Purpose     Patterns and unit labels name functions without them. A name can have parentheses of
//             other kinds before them: of an anonymous namespace, of operator(), of template
//             arguments, and the parameters of a function around it (local classes, lambdas).
// Misses      A function template that returns a pointer to a function is cut behind the pointer's
//             parameters. The result of a template stands in front of its name and stays.
// Complexity  O(length).
#pragma once

#include <cstddef>
#include <cstring>

namespace tsomon::probe {

// The length of the name without parameters and what follows them (" const", " [clone .cold]");
// of all of it when there are none.
inline size_t name_length(const char* demangled) {
  const size_t whole = std::strlen(demangled);
  const char* const last = std::strrchr(demangled, ')');
  if (last == nullptr || (last[1] != '\0' && last[1] != ' ')) {
    return whole;
  }
  int open = 0;
  for (const char* at = last + 1; at-- > demangled;) {
    open += *at == ')' ? 1 : *at == '(' ? -1 : 0;
    if (open == 0) {
      return at > demangled ? static_cast<size_t>(at - demangled) : whole;
    }
  }
  return whole;
}

}  // namespace tsomon::probe
