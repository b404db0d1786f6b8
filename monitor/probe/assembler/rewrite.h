// The text that a compiler gives its assembler, with calls of the runtime in its asm statements.
//
// Purpose     What asm statements access is seen: each instruction in one (between #APP and #NO_APP,
//             as g++ and clang mark them) that accesses memory calls the runtime
//             (monitor/probe/assembly_site.h says how); what the compiler wrote stays as it is.
// Not understood
//             An instruction whose accesses are not known calls the runtime, too, with its place
//             and text, and stays as it is. So do statements that cannot grow (`loop`, distances
//             from `.`), repeat themselves or use macros, and everything in Intel's syntax.
// Also        A section of clang's whose type binutils does not know gets one that it knows.
// Complexity  One pass; text without any is only searched.
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tsomon::assembler {

enum class Rewrite {
  kInstructions,
  kPlacesOnly,  // nothing is taken for understood
};

// Nothing: the text stays as it is.
std::optional<std::string> rewrite(std::string_view text, Rewrite how);

}  // namespace tsomon::assembler
