// Where the files are looked for that a recording names, beside where it says that they are.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace tsomon {

class PackedFiles;       // packed_files.h
class KnownSymbolisers;  // location_texts.h

// Files of a process that runs, which may lie where this process cannot find them.
class OpenedFiles {
 public:
  virtual ~OpenedFiles() = default;
  // What to open it by, of what the process calls `path`; empty: it has none of that name. Thread-safety: any thread.
  virtual std::string file_at(const std::string& path) const = 0;
};

struct FileSearch {
  // The folder with the recorded machine's files, which are not looked for at their own paths then; empty: these are they.
  std::string sysroot = {};
  // Folders with .build-id/12/3456... (code) and .build-id/12/3456....debug (separate debugging information).
  std::vector<std::string> debug_paths = {};
  // Where the recording comes from: looked at first. Null: it is no pack.
  std::shared_ptr<const PackedFiles> pack = {};
  // Looked at before paths are. Null: the process does not run any more, or its files are here.
  std::shared_ptr<const OpenedFiles> opened = {};
  // What was read before for recordings of the same code. Null: each is read anew.
  std::shared_ptr<KnownSymbolisers> known = {};
};

}  // namespace tsomon
