#include "monitor/process/debug_session.h"

#include <cstring>
#include <utility>

#include <elfutils/libdwelf.h>
#include <unistd.h>

#include "monitor/process/debuginfod.h"
#include "tso/support/open_file.h"

namespace tsomon {

DebugSession::DebugSession(DebugPlace place)
    : place_(std::move(place)),
      folders_(place_.folders.data()),
      callbacks_{dwfl_build_id_find_elf, find, dwfl_offline_section_address,
                 place_.folders.empty() ? nullptr : &folders_},
      dwfl_(dwfl_begin(&callbacks_)) {}

DebugSession::~DebugSession() { dwfl_end(dwfl_); }

Dwfl_Module* DebugSession::open(const std::string& name, int fd) {
  if (dwfl_ != nullptr) {
    dwfl_report_begin(dwfl_);
    // Base 0: addresses are as the file counts them. The module closes the descriptor.
    module_ = dwfl_report_elf(dwfl_, name.c_str(), name.c_str(), fd, 0, true);
    dwfl_report_end(dwfl_, nullptr, nullptr);
  }
  if (module_ == nullptr) {
    ::close(fd);
    return nullptr;
  }
  void** own = nullptr;
  dwfl_module_info(module_, &own, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  *own = this;
  return module_;
}

DebugSession::Found DebugSession::look() {
  Found found;
  Dwarf_Addr bias = 0;
  Dwarf* const dwarf = module_ == nullptr ? nullptr : dwfl_module_getdwarf(module_, &bias);
  if (dwarf == nullptr) {
    return found;
  }
  found.any = true;
  const char* name = nullptr;
  const void* build_id = nullptr;
  found.shared = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &build_id) > 0;
  const char* main = nullptr;
  const char* debug = nullptr;
  dwfl_module_info(module_, nullptr, nullptr, nullptr, nullptr, nullptr, &main, &debug);
  found.file = debug == nullptr || (main != nullptr && std::strcmp(main, debug) == 0) ? "" : debug;
  return found;
}

int DebugSession::find(Dwfl_Module* module, void** own, const char* name, Dwarf_Addr base,
                       const char* file, const char* link, GElf_Word link_crc, char** found) {
  const auto& session = *static_cast<const DebugSession*>(*own);
  if (!session.place_.file.empty()) {
    const int fd = open_regular_file(session.place_.file);
    if (fd >= 0) {
      *found = ::strdup(session.place_.file.c_str());
      return fd;
    }
  }
  const DebuginfodTurn turn(session.dwfl_);
  return dwfl_standard_find_debuginfo(module, own, name, base, file, link, link_crc, found);
}

}  // namespace tsomon
