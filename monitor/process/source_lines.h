// Lines of source files, as far as they are here.
//
// Purpose     Reports show the line that an access is in. The names of source files come from debugging information,
//             that is from an input: only regular files are opened, without blocking, and only absolute names.
// Out of date A file that was changed after the module was built has other lines: none is given.
// Packs       Of a place that came in one the lines do, too, or there are none.
// Misses      Files that are elsewhere than the compiler found them.
// Memory      At most kMostFiles files of at most kMostBytes each.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "monitor/process/symbols.h"

namespace tsomon {

// Its name: relative ones are of the folder that the compiler ran in.
std::string source_path(const SourcePlace& place);
// The file that a place is in, by these rules. Empty: it cannot be read, is too large, or is newer than what was built from it.
std::string source_text(const SourcePlace& place);

class SourceLines {
 public:
  static constexpr size_t kMostFiles = 64;
  static constexpr size_t kMostBytes = size_t{4} << 20;

  // Without the blanks around it; empty: it is not known.
  std::string line(const SourcePlace& place);

 private:
  std::unordered_map<std::string, std::string> files_;
};

}  // namespace tsomon
