// The calls by which one function of a program may lead to another one, from the code in its file.
//
// Purpose     A unit begins in one function, and an access lies in another one that was not inlined: which calls in
//             between may have led there. What was recorded does not say it.
// Method      Breadth first over direct calls, and jumps to another function, from the function around `from`. The
//             shortest ways to the function around `to` count, with all of their call sites.
// Misses      Calls through pointers, tables of virtual functions and the procedure linkage table, from one file to
//             another one; longer ways where there are shorter ones. So it says what may have been, not what was.
// Complexity  Each function is decoded once, for some 300 ns an instruction; each pair of functions
//             is searched once, kMostFunctions functions and kMostCalls levels at most. Memory: the calls of what was decoded.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "monitor/process/elf_image.h"

namespace tsomon {

// Return addresses, as the file counts addresses. First the calls of the function around `to`, then those of the
// functions that these lie in, and so on. Empty: the same function, or no way was found.
using CallPath = std::vector<std::vector<uint64_t>>;

class CallPaths {
 public:
  static constexpr size_t kMostFunctions = 256;
  static constexpr size_t kMostCalls = 8;  // nested
  static constexpr uint64_t kMostCode =
      64 * 1024;  // bytes of one function; larger ones have no calls

  // `image` must outlive it.
  explicit CallPaths(const attach::ElfImage& image) : image_(image) {}

  // Valid as long as this is.
  const CallPath& find(uint64_t from, uint64_t to);

 private:
  struct Call {
    uint64_t function = 0;  // where it begins
    uint64_t returns_to = 0;
  };
  // Where the function begins that has this address. Not those of the runtime.
  std::optional<uint64_t> function_at(uint64_t address) const;
  const std::vector<Call>& calls_of(uint64_t function);
  CallPath search(uint64_t first, uint64_t last);

  const attach::ElfImage& image_;
  std::unordered_map<uint64_t, std::vector<Call>> calls_;
  std::map<std::pair<uint64_t, uint64_t>, CallPath> found_;  // by functions
};

}  // namespace tsomon
