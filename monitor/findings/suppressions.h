// What users wrote down so that it is not shown again.
//
// Form        A line KIND:PATTERN. Kinds: `function`, `file`, `unit` (a label), `module`,
//             `fingerprint`. PATTERN is a shell pattern (fnmatch(3)) of the whole name; of functions
//             also of the name without its scope, of files and modules of the last part of the path.
//             Lines that begin with # and blank ones are skipped, and so are blanks around a line.
// Errors      kUnreadable; kMalformed with the line.
// Complexity  Matching takes O(lines x names). Thread-safety: none, uses are counted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/findings/finding_places.h"
#include "tso/support/result.h"

namespace tsomon {

struct Suppression {
  enum class Kind : uint8_t { kFunction, kFile, kUnit, kModule, kFingerprint };
  Kind kind = Kind::kFunction;
  std::string pattern;
  std::string line_text;  // "function:deposit"
  std::string place;      // "known.supp:3"
  uint64_t uses = 0;      // findings
};

bool matches(const Suppression& suppression, const FindingPlaces& places);

// Of a file whose name is `file`.
Result<std::vector<Suppression>> parse_suppressions(std::string_view text, const std::string& file);

}  // namespace tsomon
