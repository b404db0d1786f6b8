// Names of addresses in a process.
//
// Data        "counter", "accounts+0x8": the symbol and the offset in it; else the mapping,
//             "[stack]+0x10", "libfoo.so+0x4028"; else the address.
// Code        "function+0x1a (module)".
// Misses      Modules and mappings that the process has made since.
// Complexity  Opens every module once; a name takes O(log symbols).
// Thread-safety: const access is safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "monitor/process/elf_image.h"
#include "monitor/process/target.h"

namespace tsomon::attach {

class AddressNames {
 public:
  explicit AddressNames(const Target& target);

  std::string data(uint64_t address) const;
  std::string code(uint64_t address) const;
  // As data(), but empty where that is the address.
  std::string variable(uint64_t address) const { return name(variables_, address, false); }

 private:
  struct Named {
    uint64_t end = 0;
    std::string name;
    std::string module;
  };
  using Table = std::map<uint64_t, Named>;  // by first address

  void add(const Module& module, const ElfImage& image, uint64_t bias);
  std::string name(const Table& table, uint64_t address, bool with_module) const;

  Table variables_;
  Table functions_;
  std::vector<Mapping> mappings_;
};

}  // namespace tsomon::attach
