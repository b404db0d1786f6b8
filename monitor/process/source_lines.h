// Lines of source files, as far as they are here.
//
// Purpose     Reports show the line that an access is in. The names of source files come from debugging information,
//             that is from an input: only regular files are opened, without blocking, and only absolute names.
// Out of date A file that was changed after the module was built has other lines: none is given.
// Misses      Files that are elsewhere than the compiler found them.
// Memory      At most kMostFiles files of at most kMostBytes each.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "monitor/process/symbols.h"

namespace tsomon {

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
