// The names that users give to code and data (plan.h lists the forms). Pure functions; kUsage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tso/support/result.h"

namespace tsomon::attach {

struct CodeName {
  enum class Kind : uint8_t {
    kPattern,  // first: of functions
    kFile,     // begin and end (0: not given) as the file of `module` counts
    kMemory,   // ... in the memory of the process
    kMarkers,  // provider, first, last
  };
  Kind kind = Kind::kPattern;
  std::string module;  // a pattern; empty: any
  std::string provider;
  std::string first;
  std::string last;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct DataName {
  std::string symbol;  // empty: the address
  uint64_t address = 0;
  uint64_t size = 0;  // 0: not given
};

Result<CodeName> parse_code_name(const std::string& text);
Result<DataName> parse_watch_name(const std::string& text);

// The three at most of `names` that somebody who wrote `name` may have meant, the likeliest first:
// a few letters differ, or one is a part of the other. O(names * length^2).
std::vector<std::string> similar_to(const std::string& name, std::vector<std::string> names);

}  // namespace tsomon::attach
