// Where the files of code that was recorded are on this machine.
//
// Search      Of a file with a build-id the first with the same one: in the pack that the recording came in, of the process
//             that runs (OpenedFiles), SYSROOT/path, the path
//             itself (not with a sysroot), in the folders of --debug-paths, ~/.debug/.build-id (perf's cache), separate debugging
//             information in the pack and under .build-id of these folders and of /usr/lib/debug (both under the sysroot, too), a
//             debuginfod server. Without a build-id the first that is there. None: the path stays, and symbols.h says
//             what is wrong with it.
// Code        find_code_file() leaves separate debugging data out, which has no code, and knows
//             where perf keeps the [vdso] of a build-id.
// Build-ids   What is found by a build-id is opened and compared: a file with another one is not used, and said.
// Complexity  Every path and build-id is looked up once.
// Thread-safety: pure functions of the file system.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "decoders/capture/reader.h"
#include "decoders/perf/events.h"
#include "monitor/process/debug_session.h"
#include "monitor/process/file_search.h"

namespace tsomon {

std::vector<capture::Module> find_modules(const std::vector<perf::CodeMapping>& mappings,
                                          const FileSearch& search);

// The file that holds the code itself; "" when there is none (with that build-id).
std::string find_code_file(const std::string& path, const std::string& build_id,
                           const FileSearch& search);

struct ModuleFiles {
  std::string file;  // to be read for the module; empty: it has none
  std::string name;  // separate debugging information is looked for beside it
  DebugPlace debug;
  std::vector<std::string> warnings;
};
ModuleFiles find_module_files(const capture::Module& module, const FileSearch& search);

// Raw bytes, of the file itself; empty: it has none, or is no ELF file.
std::string build_id_of_file(const std::string& file);
// In hexadecimal; "none".
std::string build_id_text(std::string_view build_id);

}  // namespace tsomon
