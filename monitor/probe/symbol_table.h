// The names in the executable's ELF symbol table, for the options that choose by name: unit=PATTERN
// (function_units.cpp), lock=PATTERN (named_locks.cpp), set=PATTERN (atomic_set_registry.cpp).
//
// Matching    A name as it stands there, or demangled, that of a function with or without its
//             parameters (function_name.h); endings like .cold, .part.0 or that of a static local
//             variable do not count.
// Misses      Shared libraries, and everything in a program without a symbol table (strip).
// Cost        Demangles every name, once. Before the program's own constructors; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tsomon::probe {

struct NamedSymbol {
  const char* name;   // as it stands there; only during the call
  const char* plain;  // demangled; of a function without parameters; likewise
  uint64_t address;
  uint64_t size;
  int pattern;  // the first that matches
};

// Calls `found` for each symbol of the ELF type STT_... that has a size and matches one of `count`
// patterns of fnmatch(3).
void find_symbols(int type, const char* const* patterns, int count,
                  void (*found)(const NamedSymbol& symbol));

// Says that no symbol of the type, `what` in words, matches the pattern of the option, and which
// one is near (nearest.h). `others`: what is known of the other patterns.
void warn_of_no_match(const char* option, int type, const char* what, const char* pattern,
                      const char* others);

}  // namespace tsomon::probe
