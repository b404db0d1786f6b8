// One ELF file as libdwfl reads it, with its separate debugging information.
//
// Search      The file that is named; else as debuggers look for it: in the folders, by build-id or .gnu_debuglink, and, where
//             DEBUGINFOD_URLS is set, on these servers (debuginfod.h).
// Thread-safety: none.
#pragma once

#include <string>

#include <elfutils/libdwfl.h>

namespace tsomon {

struct DebugPlace {
  std::string file;     // that has been found and has the right build-id; empty: to be looked for
  std::string folders;  // in libdwfl's syntax; empty: libdwfl's own
};

class DebugSession {
 public:
  explicit DebugSession(DebugPlace place);
  DebugSession(const DebugSession&) = delete;
  DebugSession& operator=(const DebugSession&) = delete;
  ~DebugSession();

  // `name`: debugging information is looked for beside it. Addresses are as the file counts them. Closes `fd`, also when it fails:
  // nullptr, and dwfl_errmsg(-1) says why.
  Dwfl_Module* open(const std::string& name, int fd);

  // What there is of debugging information, which is looked for now.
  struct Found {
    bool any = false;
    bool shared = false;  // it refers to a file that several have in common (dwz)
    std::string file;     // that it is in; empty: in the file itself
  };
  Found look();

 private:
  static int find(Dwfl_Module* module, void** session, const char* name, Dwarf_Addr base,
                  const char* file, const char* link, GElf_Word link_crc, char** found);

  DebugPlace place_;
  char* folders_;
  Dwfl_Callbacks callbacks_;
  Dwfl* dwfl_;
  Dwfl_Module* module_ = nullptr;
};

}  // namespace tsomon
