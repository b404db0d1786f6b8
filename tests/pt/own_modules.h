// The files that this process runs, as a recording would tell of them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <link.h>

#include "decoders/pt/packets/input.h"

namespace tsomon::test {

struct OwnModules {
  std::vector<pt::CodeSection> code;
  std::vector<std::pair<uint64_t, uint64_t>> read_only;  // segments: address, size
  std::vector<std::pair<uint64_t, uint64_t>> writable;
};

inline OwnModules own_modules(int process) {
  OwnModules modules;
  const auto add = [&](const dl_phdr_info& info) {
    const std::string name = info.dlpi_name[0] == '\0' ? "/proc/self/exe" : info.dlpi_name;
    if (name[0] != '/') {
      return;  // the kernel's
    }
    for (unsigned i = 0; i < info.dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = info.dlpi_phdr[i];
      if (segment.p_type != PT_LOAD) {
        continue;
      }
      const uint64_t address = info.dlpi_addr + segment.p_vaddr;
      if ((segment.p_flags & PF_X) != 0) {
        const uint64_t in_page = address % 4096;
        modules.code.push_back({name, segment.p_offset - in_page, segment.p_filesz + in_page,
                                address - in_page, kTimeMin, process});
      }
      ((segment.p_flags & PF_W) != 0 ? modules.writable : modules.read_only)
          .push_back({address, segment.p_filesz});
    }
  };
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        (*static_cast<decltype(add)*>(to))(*info);
        return 0;
      },
      const_cast<void*>(static_cast<const void*>(&add)));
  return modules;
}

}  // namespace tsomon::test
