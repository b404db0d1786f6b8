// Where the files of code that another tool recorded are on this machine.
//
// Search      Of a file with a build-id the first with the same one: SYSROOT/path, the path itself
//             (not with a sysroot), ~/.debug/.build-id (perf's cache), /usr/lib/debug/.build-id,
//             both under the sysroot, too. Without a build-id the first that is there. None: the
//             path stays, and symbols.h says what is wrong with it.
// Code        find_code_file() leaves separate debugging data out, which has no code, and knows
//             where perf keeps the [vdso] of a build-id.
// Complexity  Every path and build-id is looked up once.
// Thread-safety: pure function of the file system.
#pragma once

#include <string>
#include <vector>

#include "decoders/capture/reader.h"
#include "decoders/perf/events.h"

namespace tsomon {

std::vector<capture::Module> find_modules(const std::vector<perf::CodeMapping>& mappings,
                                          const std::string& sysroot);

// The file that holds the code itself; "" when there is none (with that build-id).
std::string find_code_file(const std::string& path, const std::string& build_id,
                           const std::string& sysroot);

}  // namespace tsomon
