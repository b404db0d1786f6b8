// Names of addresses in a process.
//
// Data        "counter", "accounts+0x8": the symbol and the offset in it; else the mapping,
//             "[stack]+0x10", "libfoo.so+0x4028"; else the address.
// Code        "function+0x1a (module)".
// Misses      Modules and mappings that the process has made since.
// Complexity  Opens every module once; a name takes O(modules log symbols).
// Memory      As images of all modules have it (monitor/process/elf_image.h).
// Thread-safety: const access is safe.
#pragma once

#include <cstdint>
#include <memory>
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
  std::string variable(uint64_t address) const {
    return name(&ElfImage::variables, address, false);
  }

 private:
  struct Image {
    std::unique_ptr<ElfImage> elf;
    uint64_t bias = 0;
    std::string name;
  };
  using Kind = const std::vector<Symbol>& (ElfImage::*)() const;

  std::string name(Kind kind, uint64_t address, bool with_module) const;

  std::vector<Image> images_;
  std::vector<Mapping> mappings_;
};

}  // namespace tsomon::attach
