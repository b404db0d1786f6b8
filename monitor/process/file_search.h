// Where the files are looked for that a recording names, beside where it says that they are.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace tsomon {

class PackedFiles;  // packed_files.h

struct FileSearch {
  // The folder with the recorded machine's files, which are not looked for at their own paths then; empty: these are they.
  std::string sysroot = {};
  // Folders with .build-id/12/3456... (code) and .build-id/12/3456....debug (separate debugging information).
  std::vector<std::string> debug_paths = {};
  // Where the recording comes from: looked at first. Null: it is no pack.
  std::shared_ptr<const PackedFiles> pack = {};
};

}  // namespace tsomon
