// What a program or library that was built with --dormant has two versions of.
//
// Input       An ELF file. Sections: tsomon_twins (32 bits for each function with a twin,
//             monitor/probe/assembler/twins.h), .tsomon.no_twin (strings: a name, a tab, why it has none).
// Errors      What open_regular_file() says; kMalformed: it is no ELF file.
// Complexity  O(size of these sections). Thread-safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decoders/capture/reader.h"
#include "monitor/process/file_search.h"
#include "tso/support/result.h"

namespace tsomon {

struct WithoutTwin {
  std::string function;  // demangled
  std::string why;
};

struct TwinFunction {
  uint64_t entry = 0;  // where it begins, and the byte is that decides
  uint64_t twin = 0;   // where its instrumented version begins
};

struct TwinsInFile {
  uint64_t twins = 0;  // 0: it was not built with --dormant
  std::vector<TwinFunction>
      functions;  // addresses as the file counts them; none of what is not linked yet
  std::vector<WithoutTwin> without;
};

Result<TwinsInFile> twins_in_file(const std::string& path);

// The functions without a twin of the libraries that are loaded, but for those that the library excludes from instrumentation itself:
// a sentence for each such library. Of the program the linker's wrapper tells it (UnseenCode, decoders/capture/entries.h). Files are
// looked at once in a process. Thread-safe.
std::vector<std::string> libraries_without_twins(const std::vector<capture::Module>& modules,
                                                 const FileSearch& search);

}  // namespace tsomon
