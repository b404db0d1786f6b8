// The functions of a running process that have a twin (docs/guide/dormant.md).
//
// Purpose     From what a slice shows, instruction pointers in twins, to the functions to be watched in the next one; and
//             from names to such functions.
// How         The twin whose symbol has the instruction, parts of it in other sections ("f.tsomon.cold") included. Without
//             symbols the last one that begins before it.
// Misses      Specialised copies ("f.tsomon.constprop.0"): no entry leads there, only another twin does; entries_of() counts
//             them. Libraries that were loaded after the target was read. A module whose file cannot be read has none.
// Complexity  To make: O(functions and symbols), opens each module once. Then O(log functions) each.
// Thread-safety: const access is safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/process/target.h"

namespace tsomon {

class TwinFunctions {
 public:
  explicit TwinFunctions(const attach::Target& target);

  size_t size() const { return entries_.size(); }
  // Where the functions begin that have these return addresses in their twins, ascending. `without`: how many of the
  // addresses are in none.
  std::vector<uint64_t> entries_of(const std::vector<uint64_t>& addresses, size_t* without) const;
  // Those whose readable name matches the shell pattern, ascending.
  std::vector<uint64_t> named(const std::string& pattern) const;

 private:
  struct Code {
    uint64_t end = 0;
    uint64_t entry = 0;  // 0: no twin that an entry leads to
  };
  void add(const std::string& file, const std::string& shown, uint64_t offset, uint64_t begin);

  std::map<uint64_t, uint64_t> twins_;       // begin of a twin: its entry
  std::map<uint64_t, Code> code_;            // symbols of twins, by where they begin
  std::map<uint64_t, std::string> entries_;  // readable names; "" where no symbol says it
};

}  // namespace tsomon
