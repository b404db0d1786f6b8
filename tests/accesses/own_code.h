// The code of a program that was compiled by the wrapper, and what its pieces are called.
//
// Purpose     The linker's map says which ranges of code come from the program's own objects, not from
//             the runtime, the compiler's start files or libraries.
// Addresses   As the file counts them.
// Errors      Exceptions: this is a tool of the tests.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "monitor/process/elf_image.h"

namespace tsomon::testing {

class OwnCode {
 public:
  OwnCode(const std::string& program, const std::string& map);

  bool contains(uint64_t address) const;
  // The name of the function around the address, without the suffixes that compilers give to parts and copies.
  std::string function(uint64_t address) const;
  const std::vector<uint64_t>& functions() const { return functions_; }  // where they begin
  uint64_t address_of(const std::string& function) const;                // 0: there is none

 private:
  std::unique_ptr<attach::ElfImage> image_;
  std::map<uint64_t, uint64_t> ranges_;  // begin, end
  std::vector<uint64_t> functions_;
};

}  // namespace tsomon::testing
