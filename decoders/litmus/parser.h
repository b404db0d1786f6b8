// Reads litmus tests in herd's X86 and X86_64 syntax.
//
// Format      docs/formats/litmus.md. Not read: addresses that depend on what is loaded,
//             addresses in memory, arrays, `observed`, mixed sizes, and other instructions than
//             those that decoders/litmus/mnemonics.cpp lists.
// Errors      kMalformed with the file, the line, what was expected and what was found; the first
//             one ends the file. No input crashes it: nesting is bounded.
// Cost        O(length) but for lookups of names: O(log).
// Thread-safety: no shared state.
#pragma once

#include <string>
#include <string_view>

#include "decoders/litmus/test.h"
#include "tso/support/result.h"

namespace tsomon::litmus {

inline constexpr uint32_t kMaxThreads = 64;
inline constexpr uint32_t kMaxNesting = 200;  // of conditions

// `input` is the name of the file, for errors.
Result<LitmusTest> parse_litmus(std::string_view text, const std::string& input);

}  // namespace tsomon::litmus
