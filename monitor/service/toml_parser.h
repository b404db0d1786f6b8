// toml++, so that no file ends the program.
//
// toml++ 3.3 asserts what malformed input ("[[[") breaks, and behind that makes an error of it: this is not to end the program, nor
// to be relied on by compilers, as clang does with NDEBUG.
#pragma once

#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(condition) static_assert(true)
#define TOML_EXCEPTIONS 1
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")
